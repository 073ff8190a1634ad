"""Imports as the language and the file write them."""

from lsp_server.refactor.imports import SCRIPTS, ImportTable
from lsp_server.refactor.pattern import Import
from lsp_server.refactor.syntax import Syntax


def statement_text(one: Import, syntax: Syntax, table: ImportTable) -> str:
    """Return a statement that imports one name."""
    if syntax.language.id == "python":
        alias = f" as {one.alias}" if one.alias else ""
        return f"from {one.source} import {one.name}{alias}" if one.name else f"import {one.source}{alias}"
    if syntax.language.id == "go":
        return f"import {spec_text(one)}"
    return _script(one, syntax, table) if syntax.language.id in SCRIPTS else one.source


def spec_text(one: Import) -> str:
    """Return an import of Go without its keyword, as in a group."""
    default = one.source.rpartition("/")[2]
    alias = f"{one.alias} " if one.alias != default and one.alias not in one.source else ""
    return f'{alias}"{one.source}"'


def _script(one: Import, syntax: Syntax, table: ImportTable) -> str:
    text = syntax.data.decode("utf-8", "surrogatepass")
    statements = [syntax.text(part.statement.start, part.statement.end) for part in table.parts]
    quote = '"' if any('"' in statement for statement in statements) or (not statements and '"' in text) else "'"
    end = "" if statements and not statements[-1].endswith(";") else ";"
    module = f"{quote}{one.source}{quote}{end}"
    if one.kind == "bare":
        return f"import {module}"
    alias = f"{one.name} as {one.alias}" if one.alias else one.name
    clause = {"default": one.alias, "namespace": f"* as {one.alias}"}.get(one.kind, f"{{ {alias} }}")
    return f"import {'type ' if one.kind == 'type' else ''}{clause} from {module}"
