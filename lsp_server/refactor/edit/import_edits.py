"""The imports that go along with an edit: added where they belong, removed when nothing uses them any longer."""

import re
import sys
from collections.abc import Mapping, Sequence

import attrs

from lsp_server.refactor.code.bindings import ImportTable, Scopes, imports_of
from lsp_server.refactor.code.import_parts import ImportPart
from lsp_server.refactor.code.imports import Import, ImportEdit
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.code.used_names import used_names
from lsp_server.refactor.edit.layout import ByteEdit, deleted_line


def import_edits(wanted: ImportEdit, before: Syntax, after: Syntax, newline: str) -> list[ByteEdit]:
    """Return edits of `before`, the file as it is. `after` is the file with its places edited, imports apart.

    An import is added if its name is used after the edit, and removed if its name is not.
    """
    used = used_names(after.root, Scopes(after, imports_of(after)))
    table = imports_of(before)
    gone = [part for part in table.parts if part.what in wanted.removed and part.what.bound not in used]
    new = [one for one in wanted.added if one not in table.all and (one.bound in used or one.kind == "bare")]
    follows = [(old, one) for old, one in wanted.follows if old in table.all and one.bound in used]
    gone += [part for part in table.parts if part.what.bound not in used and part.what in dict(follows)]
    new += [one for one in dict.fromkeys(one for _, one in follows) if one not in (*table.all, *new)]
    return _Editor(before, table, newline, dict([*follows, *wanted.replaced])).edits(gone, new)


def edits_without(names: Sequence[Node], syntax: Syntax, newline: str) -> list[ByteEdit]:
    """Return edits that take imported names away, which are the nodes of their imports."""
    table = imports_of(syntax)
    gone = [part for part in table.parts if any(part.node is one for one in names)]
    return _Editor(syntax, table, newline, {}).edits(gone, []) if gone else []


class _Editor:
    def __init__(self, syntax: Syntax, table: ImportTable, newline: str, replaced: Mapping[Import, Import]) -> None:
        self._syntax, self._table, self._newline = syntax, table, newline
        self._replaced = replaced
        self._language = syntax.language.id

    def edits(self, gone: Sequence[ImportPart], new: Sequence[Import]) -> list[ByteEdit]:
        edits: list[ByteEdit] = []
        whole, parts = self._split(gone)
        new, parts = self._renamed(new, parts, edits)
        new = self._joined(new, whole, edits)
        edits += [self._without(part, parts) for part in parts]
        freed = sorted({id(part.statement): part for part in whole}.values(), key=lambda part: part.statement.start)
        for part in freed:
            node = part.node if self._language == "go" else part.statement
            like = next((one for one in new if one == self._replaced.get(part.what)), None)
            if like is not None:
                is_spec = node.kind == "import_spec"
                text = spec_text(like) if is_spec else statement_text(like, self._syntax, self._table)
                edits.append(ByteEdit(node.start, node.end, text))
                new = [one for one in new if one is not like]
            else:
                edits.append(self._deleted(node))
        edits += [self._inserted(one) for one in new]
        return _merged(edits, self._newline)

    def _renamed(
        self, new: Sequence[Import], parts: Sequence[ImportPart], edits: list[ByteEdit]
    ) -> tuple[list[Import], list[ImportPart]]:
        """Put new names in the places of names that go from the same statement; return what is left of both."""
        left, staying = list(new), list[ImportPart]()
        for part in parts:
            like = next((one for one in left if one.source == part.what.source and one.kind == part.what.kind), None)
            if like is None or not like.name:
                staying.append(part)
                continue
            left.remove(like)
            edits.append(ByteEdit(part.node.start, part.node.end, like.clause))
        return left, staying

    def _split(self, gone: Sequence[ImportPart]) -> tuple[list[ImportPart], list[ImportPart]]:
        """Return the parts whose whole statement goes, and those whose statement stays with other names."""
        if self._language == "go":
            return list(gone), []
        going = {id(part.node) for part in gone}
        whole: list[ImportPart] = []
        parts: list[ImportPart] = []
        for part in gone:
            (whole if all(id(one.node) in going for one in self._together(part)) else parts).append(part)
        return whole, parts

    def _joined(self, new: Sequence[Import], whole: Sequence[ImportPart], edits: list[ByteEdit]) -> list[Import]:
        """Add names to statements that take others from the same module; return the imports that found none."""
        going = {id(part.statement) for part in whole}
        left: list[Import] = []
        for one in new:
            host = next((part for part in self._table.parts if self._takes(part, one, going)), None)
            edit = self._beside(host, one) if host is not None else self._beside_default(one, going)
            if edit is None:
                left.append(one)
            else:
                edits.append(edit)
        return left

    def _beside(self, host: ImportPart, one: Import) -> ByteEdit:
        """Return the edit that adds a name to the statement of another one, in order if the names are."""
        others = self._together(host)
        names = [part.what.name for part in others]
        at = next((at for at, name in enumerate(names) if names == sorted(names) and name > one.name), len(names))
        node = self._name_node(others[0]) if len(others) == 1 else others[min(at, len(others) - 1)].node
        if at < len(names):
            return ByteEdit(node.start, node.start, f"{one.clause}, ")
        return ByteEdit(node.end, node.end, f", {one.clause}")

    def _beside_default(self, one: Import, going: set[int]) -> ByteEdit | None:
        """Return the edit that adds a name to `import X from "m"`; None if there is no such statement."""
        for part in self._table.parts:
            is_alone = part.what.kind == "default" and len(self._together(part)) == 1
            if is_alone and id(part.statement) not in going and part.what.source == one.source and one.kind == "named":
                clause = next(child for child in part.statement.children if child.kind == "import_clause")
                return ByteEdit(clause.end, clause.end, f", {{ {one.clause} }}")
        return None

    def _together(self, part: ImportPart) -> list[ImportPart]:
        """Return the parts of the statement that has a part."""
        return [other for other in self._table.parts if other.statement is part.statement]

    def _takes(self, part: ImportPart, one: Import, going: set[int]) -> bool:
        kinds = ("python", "named", "type")
        what = part.what
        same_module = what.source == one.source and what.kind == one.kind and what.kind in kinds
        return same_module and bool(one.name) and what.name not in ("", "*") and id(part.statement) not in going

    def _name_node(self, part: ImportPart) -> Node:
        """Return the node of the only name of a statement."""
        wanted = ("aliased_import", "import_specifier")
        inner = [node for node in part.statement.walk() if node.field == "name" or node.kind in wanted]
        return inner[0] if inner else part.statement

    def _without(self, part: ImportPart, gone: Sequence[ImportPart]) -> ByteEdit:
        going = {id(other.node) for other in gone}
        around = part.node.parent if part.what.kind == "text" else None  # a group of Rust may be in another one
        others = around.parts if around is not None else [other.node for other in self._together(part)]
        index = next(at for at, other in enumerate(others) if other is part.node)
        if any(id(other) not in going for other in others[:index]):
            return ByteEdit(others[index - 1].end, part.node.end, "")
        end = others[index + 1].start if index + 1 < len(others) else part.node.end
        return ByteEdit(part.node.start, end, "")

    def _deleted(self, node: Node) -> ByteEdit:
        """Delete a statement with its line."""
        data, whole = self._syntax.data, deleted_line(self._syntax, node.start, node.end)
        start, end = whole.start, whole.end
        if (start, end) == (node.start, node.end):
            return whole
        if data[end:].lstrip(b" \t").startswith(b")") and data[:start].endswith(b"\n\n"):
            return ByteEdit(start - 1, end, "")  # the last import of a group of Go goes with the blank line before it
        after = (part.statement.start for part in self._table.parts if part.statement.start >= end)
        is_last = not any(not data[end:start_of].strip() for start_of in after)
        if start == 0 and data[end : end + 1] == b"\n":
            return ByteEdit(start, end + 1, "")
        if is_last and data[end : end + 1] == b"\n" and (start == 0 or data[start - 2 : start] == b"\n\n"):
            end += 1
        return ByteEdit(start, end, "")

    def _inserted(self, one: Import) -> ByteEdit:
        if self._language == "go":
            return self._inserted_go(one)
        top = [part for part in self._table.parts if part.statement.parent is self._syntax.root]
        top = [part for part in top if part.what.source != "__future__"]
        text = statement_text(one, self._syntax, self._table)
        if not top:
            at = self._first_line()
            return ByteEdit(at, at, text + self._newline)
        # Statements of the same origin are grouped: the standard library, other packages, this project.
        group = [part for part in top if _group_of(part.what) == _group_of(one)] or top
        keys = [_key(part.what) for part in group]
        if keys == sorted(keys) and keys[-1] > _key(one) and self._language == "python":
            at = next(part for part in group if _key(part.what) > _key(one)).statement.start
            return ByteEdit(at, at, text + self._newline)
        at = self._line_end(group[-1].statement.end)
        return ByteEdit(at, at, self._newline + text)

    def _inserted_go(self, one: Import) -> ByteEdit:
        specs = [part for part in self._table.parts if part.node.kind == "import_spec"]
        if not self._table.parts:
            at = next((child.end for child in self._syntax.root.children if child.kind == "package_clause"), 0)
            return ByteEdit(at, at, f"{self._newline * 2}{statement_text(one, self._syntax, self._table)}")
        if not specs:
            part = self._table.parts[0]
            spec = next(node for node in part.statement.walk() if node.kind == "import_spec")
            if "(" not in self._syntax.text(part.statement.start, spec.start):
                lines = sorted([self._syntax.text(spec.start, spec.end), spec_text(one)])
                block = "".join(f"\t{line}{self._newline}" for line in lines)
                return ByteEdit(part.statement.start, part.statement.end, f"import ({self._newline}{block})")
            specs = [attrs.evolve(part, node=spec)]
        group = [part for part in specs if _group_of(part.what) == _group_of(one)] or specs
        after = next((part for part in group if part.what.source > one.source), None)
        text = spec_text(one)
        if after is not None:
            return ByteEdit(after.node.start, after.node.start, f"{text}{self._newline}\t")
        at = self._line_end(group[-1].node.end)
        return ByteEdit(at, at, f"{self._newline}\t{text}")

    def _line_end(self, end: int) -> int:
        """Return the end of the line that a statement ends in: after white space and a comment."""
        data = self._syntax.data
        at = data.find(b"\n", end)
        at = len(data) if at == -1 else at
        at -= data[at - 1 : at] == b"\r"
        comments = [one for one in self._syntax.comments if end <= one.start and one.end <= at]
        rest = data[end : comments[0].start] if comments else data[end:at]
        return at if not rest.strip(b"; \t") else end

    def _first_line(self) -> int:
        """Return where the first import goes: after the docstring, the comment at the top and __future__."""
        data, at = self._syntax.data, 0
        for child in self._syntax.root.children:
            is_docstring = (
                child.kind == "expression_statement" and child.children and child.children[0].kind == "string"
            )
            if not (is_docstring or "future" in child.kind or child.kind in ("package_clause", "package_declaration")):
                break
            at = data.find(b"\n", child.end) + 1 or len(data)
            if data[at : at + 1] == b"\n":
                at += 1
        if at == 0:
            leading = re.match(rb"(?:#!.*\n)?(?:#(?=.*coding).*\n)?", data)
            at = leading.end() if leading else 0
        return at


def _key(one: Import) -> tuple[bool, str]:
    return (bool(one.name), one.source.lower())


def _group_of(one: Import) -> str:
    """Return which group of imports one belongs to, as people sort them."""
    root = one.source.partition(".")[0]
    if one.kind == "python":
        return "relative" if not root else "standard" if root in sys.stdlib_module_names else "package"
    if one.kind == "go":
        return "package" if "." in one.source.partition("/")[0] else "standard"
    return "relative" if one.source.startswith(".") else "package"


def _merged(edits: Sequence[ByteEdit], newline: str) -> list[ByteEdit]:
    """Return the edits in their order; several insertions at one place become one, also where a line goes."""
    merged: list[ByteEdit] = []
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        last = merged[-1] if merged else None
        if last is not None and last.end >= edit.start and last.start == edit.start == last.end:
            merged[-1] = ByteEdit(last.start, edit.end, last.text + edit.text)
        elif last is None or last.end <= edit.start:
            merged.append(edit)
        elif edit.start == edit.end:
            merged[-1] = ByteEdit(last.start, last.end, f"{last.text}{edit.text.removeprefix(newline)}{newline}")
    return merged


def statement_text(one: Import, syntax: Syntax, table: ImportTable) -> str:
    """Return a statement that imports one name."""
    if syntax.language.id == "python":
        alias = f" as {one.alias}" if one.alias else ""
        return f"from {one.source} import {one.clause}" if one.name else f"import {one.source}{alias}"
    if syntax.language.id == "go":
        return f"import {spec_text(one)}"
    return _script(one, syntax, table) if traits_of(syntax.language.id).is_script else one.source


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
    clause = {"default": one.alias, "namespace": f"* as {one.alias}"}.get(one.kind, f"{{ {one.clause} }}")
    return f"import {'type ' if one.kind == 'type' else ''}{clause} from {module}"
