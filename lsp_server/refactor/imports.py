"""The imports of a file: what they name, and which names they bind."""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from weakref import WeakKeyDictionary

import attrs

from lsp_server.refactor.grammar import is_import
from lsp_server.refactor.node import Node
from lsp_server.refactor.pattern import Import, ImportEdit
from lsp_server.refactor.syntax import Syntax

_VERSION = re.compile(r"^v\d+$")
SCRIPTS = frozenset({"javascript", "typescript", "typescriptreact"})
_TABLES: "WeakKeyDictionary[Syntax, ImportTable]" = WeakKeyDictionary()


@attrs.frozen(eq=False)
class ImportPart:
    """One imported name: `node` is its own part of `statement`, and the statement itself when it has no other."""

    what: Import
    node: Node
    statement: Node


@attrs.frozen(eq=False)
class ImportTable:
    """The imported names of a file, in their order."""

    parts: tuple[ImportPart, ...]

    @property
    def all(self) -> list[Import]:
        return [part.what for part in self.parts]

    def binding(self, name: str) -> str | None:
        """Return what the import that binds a name names, such as "os.path"; None if no import binds it."""
        for part in self.parts:
            if part.what.bound == name:
                return origin(part.what)
        return None


def origin(what: Import) -> str:
    """Return what an import names, as one text: the same for the same thing in two files."""
    if what.kind == "python" and not what.name:
        return what.source if what.alias else what.source.partition(".")[0]
    return f"{what.source}.{what.name}" if what.name else what.source


def same_origin(one: str, other: str) -> bool:
    """Return whether two origins can be one. Relative ones depend on the folder of the file."""
    if one == other:
        return True
    if one.startswith(".") or other.startswith("."):
        return re.split(r"[./]", one)[-1] == re.split(r"[./]", other)[-1]
    return False


def imports_of(syntax: Syntax) -> ImportTable:
    """Return the imports of a file, also those inside of functions. They are looked for once in each tree."""
    known = _TABLES.get(syntax)
    if known is not None:
        return known
    read = _READERS.get(syntax.language.id, _read_text)
    parts = [
        part for node in _statements(syntax.root) for part in read(node, syntax) if part.what.source or part.what.name
    ]
    table = _TABLES[syntax] = ImportTable(tuple(parts))
    return table


def import_edit(before: Syntax, after: Syntax) -> ImportEdit:
    """Return the imports that an example added and removed."""
    old, new = imports_of(before).all, imports_of(after).all
    added = tuple(dict.fromkeys(one for one in new if one not in old))
    removed = tuple(dict.fromkeys(one for one in old if one not in new))
    pairs: list[tuple[Import, Import]] = []
    for tag, low, high, new_low, new_high in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and high - low == new_high - new_low:
            pairs += zip(old[low:high], new[new_low:new_high], strict=True)
    return ImportEdit(added, removed, tuple(pairs))


def _statements(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if is_import(node):
            yield node
        else:
            waiting.extend(reversed(node.children))


def _read_python(node: Node, syntax: Syntax) -> list[ImportPart]:
    is_from = node.kind != "import_statement"
    module = next((child for child in node.children if child.field == "module_name"), None)
    source = _text(module, syntax) if module is not None else ("__future__" if "future" in node.kind else "")
    names = [child for child in node.children if child.field == "name"]
    parts: list[ImportPart] = []
    for name in names:
        alias = ""
        inner = name
        if name.kind == "aliased_import":
            inner, alias = name.children[0], _text(name.children[-1], syntax)
        text = _text(inner, syntax)
        what = Import(source, text, alias, "python") if is_from else Import(text, "", alias, "python")
        parts.append(ImportPart(what, name if len(names) > 1 else node, node))
    if any(child.kind == "wildcard_import" for child in node.children):
        parts.append(ImportPart(Import(source, "*", "", "python"), node, node))
    return parts


def _read_script(node: Node, syntax: Syntax) -> list[ImportPart]:
    module = next((child for child in node.children if child.field == "source"), None)
    if module is None:
        return []
    source = _text(module, syntax)[1:-1]
    kind = "type" if any(child.text == "type" for child in node.children) else "named"
    clause = next((child for child in node.children if child.kind == "import_clause"), None)
    if clause is None:
        return [ImportPart(Import(source, "", "", "bare"), node, node)]
    found: list[tuple[Import, Node]] = []
    for child in clause.children:
        if child.kind == "identifier":
            found.append((Import(source, "default", child.text, "default"), child))
        elif child.kind == "namespace_import":
            found.append((Import(source, "*", child.children[-1].text, "namespace"), child))
        elif child.kind == "named_imports":
            for one in child.children:
                names = [leaf.text for leaf in one.children if leaf.named]
                if one.named and names:
                    found.append((Import(source, names[0], names[1] if len(names) > 1 else "", kind), one))
    return [ImportPart(what, part if len(found) > 1 else node, node) for what, part in found]


def _read_go(node: Node, syntax: Syntax) -> list[ImportPart]:
    specs = [one for one in node.walk() if one.kind == "import_spec"]
    parts: list[ImportPart] = []
    for spec in specs:
        path = _text(spec.children[-1], syntax)[1:-1]
        alias = spec.children[0].text if len(spec.children) > 1 else ""
        what = Import(path, "", alias or _go_name(path), "go")
        parts.append(ImportPart(what, spec if len(specs) > 1 else node, node))
    return parts


def _go_name(path: str) -> str:
    """Return the name that a Go package most likely has, if its path's last part is none."""
    steps = path.split("/")
    last = steps[-2] if len(steps) > 1 and _VERSION.match(steps[-1]) else steps[-1]
    return last.partition(".")[0].removeprefix("go-")


def _read_text(node: Node, syntax: Syntax) -> list[ImportPart]:
    names = [leaf.text for leaf in node.leaves() if leaf.named and leaf.text.isidentifier()]
    text = _text(node, syntax)
    return [ImportPart(Import(text, "", names[-1] if names else "", "text"), node, node)]


def _text(node: Node, syntax: Syntax) -> str:
    return syntax.text(node.start, node.end)


_READERS: dict[str, Callable[[Node, Syntax], Sequence[ImportPart]]] = {
    "python": _read_python,
    "go": _read_go,
    **dict.fromkeys(SCRIPTS, _read_script),
}
