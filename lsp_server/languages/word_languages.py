"""Languages with bodies marked by words or by indentation."""

from lsp_server.languages.language import Grammar, Language, Opener

_PLAIN_QUOTES = ('"', "'")
_BRACE = Opener(r"\{$")
_COMMENT = frozenset({"comment"})

WORD_LANGUAGES: tuple[Language, ...] = (
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
)
