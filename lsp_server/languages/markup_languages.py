"""Languages for documents, styles and data."""

from lsp_server.languages.language import Grammar, Language, Opener

_C_LIKE = ("//",)
_PLAIN_QUOTES = ('"', "'")
_BRACE = Opener(r"\{$")
_BRACES_AND_BRACKETS = (Opener(r"[{\[]$"),)
_COMMENT = frozenset({"comment"})

MARKUP_LANGUAGES: tuple[Language, ...] = (
    Language(
        "html",
        extensions=(".html", ".htm", ".xhtml"),
        grammar=Grammar("tree_sitter_html"),
        quotes=_PLAIN_QUOTES,
        strings=frozenset({"quoted_attribute_value"}),
        comments=_COMMENT,
        openers=(Opener(r"<[A-Za-z](?:[^<>]*[^<>/])?>$"),),
        indent_width=2,
    ),
    Language(
        "css",
        extensions=(".css",),
        aliases=("scss", "less"),
        grammar=Grammar("tree_sitter_css"),
        quotes=_PLAIN_QUOTES,
        strings=frozenset({"string_value"}),
        comments=frozenset({"comment", "js_comment"}),
        blocks=frozenset({"block", "keyframe_block_list"}),
        openers=(_BRACE,),
        indent_width=2,
    ),
    Language(
        "json",
        extensions=(".json", ".jsonc", ".json5", ".webmanifest"),
        aliases=("jsonc", "json5", "jsonl"),
        grammar=Grammar("tree_sitter_json"),
        line_comments=_C_LIKE,
        quotes=('"',),
        strings=frozenset({"string"}),
        comments=_COMMENT,
        blocks=frozenset({"object", "array"}),
        openers=_BRACES_AND_BRACKETS,
        indent_width=2,
    ),
    Language(
        "yaml",
        extensions=(".yaml", ".yml"),
        aliases=("yml", "dockercompose"),
        grammar=Grammar("tree_sitter_yaml"),
        line_comments=("#",),
        quotes=_PLAIN_QUOTES,
        strings=frozenset({"double_quote_scalar", "single_quote_scalar", "block_scalar"}),
        comments=_COMMENT,
        openers=(Opener(r":$"), *_BRACES_AND_BRACKETS),
        indent_width=2,
        indentation_is_syntax=True,
    ),
    Language(
        "toml",
        extensions=(".toml",),
        grammar=Grammar("tree_sitter_toml"),
        line_comments=("#",),
        quotes=('"""', "'''", '"', "'"),
        strings=frozenset({"string", "quoted_key"}),
        comments=_COMMENT,
        blocks=frozenset({"array"}),
        openers=(Opener(r"=\s*\[$"),),
    ),
    Language(
        "markdown",
        extensions=(".md", ".markdown", ".mdx"),
        aliases=("mdx", "quarto"),
        grammar=Grammar("tree_sitter_markdown"),
        indent_width=2,
    ),
)
