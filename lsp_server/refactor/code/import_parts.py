"""What import statements bind, each as its language writes it."""

import re
from collections.abc import Callable, Iterator, Sequence

import attrs

from lsp_server.refactor.code.grammar import is_access, is_import, is_name
from lsp_server.refactor.code.imports import Import
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of

_GROUP = re.compile(r"group|selectors|^use_list$")
_VERSION = re.compile(r"^v\d+$")


@attrs.frozen(eq=False)
class ImportPart:
    """One imported name: `node` is its own part of `statement`, and the statement itself when it has no other."""

    what: Import
    node: Node
    statement: Node


def parts_of(node: Node, syntax: Syntax) -> Sequence[ImportPart]:
    """Return the names that an import statement binds, in their order."""
    language = syntax.language.id
    if node.kind == "using_declaration" and any(child.text == "namespace" for child in node.children):
        return []
    return _READERS.get(traits_of(language).family or language, _read_text)(node, syntax)


def path_before(leaf: Node) -> list[str]:
    """Return the names before a name in its path: in an import, also those that are before its group."""
    statement = next(filter(is_import, leaf.ancestors()), None)
    node, path = leaf, list[str]()
    while node is not statement and (above := node.parent) is not None and (statement or is_access(above)):
        before = above.children[: node.index] if not _GROUP.search(above.kind) else ()
        before = before[max((at + 1 for at, one in enumerate(before) if one.text == "="), default=0) :]
        # `use A, B` is no path: what a clause lists is beside it.
        heads = [one for one in before if one.kind != node.kind or not node.kind.endswith("clause")]
        path = [one.text for child in heads for one in child.leaves() if is_name(one)] + path
        node = above
    return path


def use_tree(node: Node, before: list[str]) -> Iterator[tuple[list[str], str, Node]]:
    """Yield the paths that the argument of a `use` of Rust names, with the name that each binds, and its own node.

    `before` is the path around the node. What `*` binds is unknown: "".
    """
    if node.kind == "use_list":
        for one in node.parts:
            yield from use_tree(one, before)
    elif node.kind == "scoped_use_list":
        way, inner = node.child("path"), node.child("list")
        steps = [*before, *(_steps(way) if way is not None else [])]
        yield from use_tree(inner, steps) if inner is not None else ()
    elif node.kind == "use_as_clause":
        way, alias = node.child("path"), node.child("alias")
        if way is not None and alias is not None:
            yield [*before, *_steps(way)], alias.text, node
    elif node.kind == "use_wildcard":
        yield [*before, *_steps(node)], "", node
    elif node.text == "self":
        yield before, before[-1] if before else "", node
    elif not node.children or is_access(node):
        steps = [*before, *_steps(node)]
        yield steps, steps[-1], node


def _steps(way: Node) -> list[str]:
    return [one.text for one in way.leaves() if one.text != "::"]


def _read_python(node: Node, syntax: Syntax) -> list[ImportPart]:
    is_from = node.kind != "import_statement"
    module = node.child("module_name")
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
    module = node.child("source")
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
        alias = spec.children[0].tokens if len(spec.children) > 1 else ""
        what = Import(path, "", alias or _go_name(path), "go")
        parts.append(ImportPart(what, spec if len(specs) > 1 else node, node))
    return parts


def _go_name(path: str) -> str:
    """Return the name that a Go package most likely has, if its path's last part is none."""
    steps = path.split("/")
    last = steps[-2] if len(steps) > 1 and _VERSION.match(steps[-1]) else steps[-1]
    return last.partition(".")[0].removeprefix("go-")


def _read_rust(node: Node, syntax: Syntax) -> Sequence[ImportPart]:
    """Return the names of a group each as a `use` of its own has it, so that it is the same in all files."""
    argument = node.child("argument")
    uses = list(use_tree(argument, [])) if argument is not None else []
    if len(uses) < 2 or argument is None:
        return _read_text(node, syntax)
    head = syntax.text(node.start, argument.start)
    parts: list[ImportPart] = []
    for steps, bound, part in uses:
        alias = f" as {bound}" if part.kind == "use_as_clause" else ""
        text = f"{head}{'::'.join(steps)}{alias};"
        parts.append(ImportPart(Import(text, "", bound or text, "text"), part, node))
    return parts


def _read_php(node: Node, syntax: Syntax) -> Sequence[ImportPart]:
    """Return the names of a group, or of a list, each as a `use` of its own has it."""
    clauses = [one for one in node.walk() if one.kind == "namespace_use_clause"]
    if len(clauses) < 2:
        return _read_text(node, syntax)
    words = [child for child in node.children if child.text in ("function", "const")]
    sort = "".join(f"{one.text} " for one in words)
    way = "".join(f"{child.tokens}\\" for child in node.children if child.kind == "namespace_name")
    parts: list[ImportPart] = []
    for clause in clauses:
        text = f"use {sort}{way}{_text(clause, syntax)};"
        parts.append(ImportPart(Import(text, "", [*clause.leaves()][-1].text, "text"), clause, node))
    return parts


def _read_text(node: Node, syntax: Syntax) -> list[ImportPart]:
    names = [leaf.text for leaf in node.leaves() if leaf.named and leaf.text.isidentifier()]
    text = _text(node, syntax)
    return [ImportPart(Import(text, "", names[-1] if names else "", "text"), node, node)]


def _text(node: Node, syntax: Syntax) -> str:
    return syntax.text(node.start, node.end)


_READERS: dict[str, Callable[[Node, Syntax], Sequence[ImportPart]]] = {  # by language, or family of languages
    "python": _read_python,
    "go": _read_go,
    "script": _read_script,
    "rust": _read_rust,
    "php": _read_php,
}
