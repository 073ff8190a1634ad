"""The registry of languages, over the official grammar wheels.

Each language has its own wheel: `tree-sitter-languages` is abandoned, and its successor downloads parsers at run time.
"""

from functools import partial
from pathlib import PurePath

from lsp_server.languages.language import Grammar, Language, Opener

_C_LIKE = ("//",)
_PLAIN_QUOTES = ('"', "'")
_BRACE = Opener(r"\{$")
_COMMENT = frozenset({"comment"})
_LINE_AND_BLOCK_COMMENT = frozenset({"line_comment", "block_comment"})
_SCRIPT_BLOCKS = frozenset({"statement_block", "class_body", "switch_body", "object"})
_SCRIPT_QUOTES = ("`", '"', "'")
_C_STRINGS = frozenset({"string_literal", "char_literal", "system_lib_string"})
_C_BLOCKS = frozenset({"compound_statement", "field_declaration_list", "declaration_list", "enumerator_list"})
_BRACES_AND_BRACKETS = (Opener(r"[{\[]$"),)
_BRACED = partial(Language, line_comments=_C_LIKE, quotes=_PLAIN_QUOTES, comments=_COMMENT, openers=(_BRACE,))
"""Most languages with bodies in braces have these; a language names what it has else."""
_SCRIPT = partial(
    _BRACED,
    quotes=_SCRIPT_QUOTES,
    strings=frozenset({"string", "template_string", "regex"}),
    comments=frozenset({"comment", "html_comment"}),
    blocks=_SCRIPT_BLOCKS | {"interface_body", "enum_body", "object_type"},
    indent_width=2,
)

LANGUAGES: tuple[Language, ...] = (
    # Bodies in braces.
    _SCRIPT(
        "javascript",
        extensions=(".js", ".mjs", ".cjs", ".jsx"),
        aliases=("javascriptreact", "js", "jsx"),
        grammar=Grammar("tree_sitter_javascript"),
        blocks=_SCRIPT_BLOCKS,
    ),
    _SCRIPT(
        "typescript",
        extensions=(".ts", ".mts", ".cts"),
        aliases=("ts",),
        grammar=Grammar("tree_sitter_typescript", "language_typescript"),
    ),
    _SCRIPT(
        "typescriptreact",
        extensions=(".tsx",),
        aliases=("tsx",),
        grammar=Grammar("tree_sitter_typescript", "language_tsx"),
    ),
    _BRACED(
        "go",
        extensions=(".go",),
        aliases=("golang",),
        grammar=Grammar("tree_sitter_go"),
        quotes=_SCRIPT_QUOTES,
        strings=frozenset({"interpreted_string_literal", "raw_string_literal", "rune_literal"}),
        blocks=frozenset({"block", "field_declaration_list", "interface_type", "literal_value"}),
        openers=(_BRACE, Opener(r"\b(?:import|var|const|type)\s*\($")),
        indents_with_tabs=True,
    ),
    _BRACED(
        "rust",
        extensions=(".rs",),
        aliases=("rs",),
        grammar=Grammar("tree_sitter_rust"),
        quotes=('"',),
        strings=frozenset({"string_literal", "raw_string_literal", "char_literal"}),
        comments=_LINE_AND_BLOCK_COMMENT,
        blocks=frozenset({"block", "declaration_list", "field_declaration_list", "enum_variant_list", "match_block"}),
    ),
    _BRACED(
        "java",
        extensions=(".java",),
        grammar=Grammar("tree_sitter_java"),
        quotes=('"""', '"', "'"),
        strings=frozenset({"string_literal", "character_literal"}),
        comments=_LINE_AND_BLOCK_COMMENT,
        blocks=frozenset({"block", "class_body", "interface_body", "enum_body", "constructor_body", "switch_block"}),
    ),
    _BRACED("c", extensions=(".c", ".h"), grammar=Grammar("tree_sitter_c"), strings=_C_STRINGS, blocks=_C_BLOCKS),
    _BRACED(
        "cpp",
        extensions=(".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".cu", ".cuh"),
        aliases=("c++", "cuda-cpp", "cuda"),
        grammar=Grammar("tree_sitter_cpp"),
        strings=_C_STRINGS | {"raw_string_literal"},
        blocks=_C_BLOCKS,
    ),
    _BRACED(
        "csharp",
        extensions=(".cs", ".csx"),
        aliases=("c#", "cs"),
        grammar=Grammar("tree_sitter_c_sharp"),
        strings=frozenset(
            {
                "string_literal",
                "verbatim_string_literal",
                "raw_string_literal",
                "character_literal",
                "interpolated_string_expression",
            }
        ),
        blocks=frozenset({"block", "declaration_list", "enum_member_declaration_list", "switch_body"}),
    ),
    _BRACED(
        "php",
        extensions=(".php", ".phtml"),
        grammar=Grammar("tree_sitter_php", "language_php"),
        line_comments=("//", "#"),
        strings=frozenset({"string", "encapsed_string", "heredoc_body", "nowdoc_body"}),
        blocks=frozenset(
            {"compound_statement", "declaration_list", "enum_declaration_list", "match_block", "switch_block"}
        ),
    ),
    _BRACED(
        "kotlin",
        extensions=(".kt", ".kts"),
        aliases=("kt",),
        grammar=Grammar("tree_sitter_kotlin"),
        quotes=('"""', '"', "'"),
        strings=frozenset({"string_literal", "multiline_string_literal", "character_literal"}),
        comments=_LINE_AND_BLOCK_COMMENT,
        blocks=frozenset({"block", "class_body", "enum_class_body", "lambda_literal"}),
        openers=(_BRACE, Opener(r"\{[^{}]*->$")),
    ),
    _BRACED(
        "swift",
        extensions=(".swift",),
        grammar=Grammar("tree_sitter_swift"),
        quotes=('"""', '"'),
        strings=frozenset({"line_string_literal", "multi_line_string_literal", "raw_string_literal"}),
        comments=frozenset({"comment", "multiline_comment"}),
        blocks=frozenset({"class_body", "enum_class_body", "protocol_body", "function_body"}),
        openers=(_BRACE, Opener(r"\{[^{}]*\bin$")),
    ),
    _BRACED(
        "scala",
        extensions=(".scala", ".sc", ".sbt"),
        grammar=Grammar("tree_sitter_scala"),
        quotes=('"""', '"'),
        strings=frozenset({"string", "interpolated_string", "character_literal"}),
        comments=frozenset({"comment", "block_comment"}),
        blocks=frozenset({"block", "template_body", "case_block", "enum_body", "indented_block"}),
        openers=(_BRACE, Opener(r"(?:=|=>|:|\bthen|\bdo)$")),
        indent_width=2,
    ),
    # Bodies marked by words or by indentation.
    Language(
        "python",
        extensions=(".py", ".pyi", ".pyw"),
        grammar=Grammar("tree_sitter_python"),
        line_comments=("#",),
        quotes=('"""', "'''", '"', "'"),
        strings=frozenset({"string"}),
        comments=_COMMENT,
        blocks=frozenset({"block"}),
        openers=(Opener(r":$"),),
        indentation_is_syntax=True,
    ),
    Language(
        "ruby",
        extensions=(".rb", ".rake", ".gemspec"),
        aliases=("rb",),
        grammar=Grammar("tree_sitter_ruby"),
        line_comments=("#",),
        quotes=_PLAIN_QUOTES,
        strings=frozenset({"string", "heredoc_body", "regex", "string_array", "subshell"}),
        comments=_COMMENT,
        blocks=frozenset({"body_statement", "then", "do_block", "block"}),
        openers=(
            Opener(r"^\s*(?:def|class|module|if|unless|while|until|case|for|begin)\b(?!.*\bend$)", "\nend"),
            Opener(r"\bdo(?:\s*\|[^|]*\|)?$", "\nend"),
            Opener(r"^\s*(?:else|elsif|when|in|rescue|ensure)\b", "\nend"),
            Opener(r"\{(?:\s*\|[^|]*\|)?$"),
        ),
        indent_width=2,
    ),
    Language(
        "shellscript",
        extensions=(".sh", ".bash", ".zsh", ".bats"),
        aliases=("bash", "sh", "shell", "zsh"),
        grammar=Grammar("tree_sitter_bash"),
        line_comments=("#",),
        quotes=_PLAIN_QUOTES,
        strings=frozenset({"string", "raw_string", "ansi_c_string", "heredoc_body"}),
        comments=_COMMENT,
        blocks=frozenset({"compound_statement", "do_group"}),
        openers=(
            _BRACE,
            Opener(r"\b(?:then|else)$", "\n:\nfi"),
            Opener(r"\bdo$", "\n:\ndone"),
            Opener(r"\bcase\b.*\bin$", "\nesac"),
        ),
        indent_width=2,
    ),
    Language(
        "lua",
        extensions=(".lua",),
        grammar=Grammar("tree_sitter_lua"),
        line_comments=("--",),
        quotes=_PLAIN_QUOTES,
        strings=frozenset({"string"}),
        comments=_COMMENT,
        blocks=frozenset({"block", "table_constructor"}),
        openers=(
            _BRACE,
            Opener(r"\b(?:then|do|else)$|\bfunction\b[^()]*\([^()]*\)$", " end"),
            Opener(r"\brepeat$", " until true"),
        ),
        indent_width=2,
    ),
    Language(
        "sql",
        extensions=(".sql",),
        aliases=("postgres", "mysql", "plsql"),
        grammar=Grammar("tree_sitter_sql"),
        line_comments=("--",),
        quotes=("'", '"'),
        comments=frozenset({"comment", "marginalia"}),
        blocks=frozenset({"column_definitions"}),
        openers=(Opener(r"\($"), Opener(r"(?i)\b(?:begin|as|select|from|where|then|else)$")),
    ),
    # Documents, styles and data.
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

_BY_ID = {name: language for language in LANGUAGES for name in (language.id, *language.aliases)}
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}


def language_for(language_id: str, path: str) -> Language:
    """Return the language with the editor's id, else the one of the path's extension, else one without a grammar."""
    known = _BY_ID.get(language_id.lower()) or _BY_EXTENSION.get(PurePath(path).suffix.lower())
    return known or Language(language_id or "plaintext", quotes=('"',))
