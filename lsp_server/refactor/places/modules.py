"""Which names of a file mean what another file declares: imports are followed to the file that they name.

Python, JavaScript, TypeScript, Go and Rust. What an import brings without naming it, and what a module hands on, stays
unknown: where nothing says for sure what a name means, it is none.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import attrs

from engine.reading import read_text
from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.bindings import imports_of
from lsp_server.refactor.code.declarations import Names
from lsp_server.refactor.code.grammar import is_import
from lsp_server.refactor.code.import_parts import use_tree
from lsp_server.refactor.code.member import is_member, receiver
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax, parse
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.places.uses import Uses, module_path
from lsp_server.refactor.rules.pattern import Leaf
from lsp_server.refactor.rules.rule import Rule
from lsp_server.refactor.rules.task import Rename

_GO_MODULE = re.compile(r"^module\s+(\S+)", re.M)
_CRATE = re.compile(r"^\s*name\s*=\s*\"([\w-]+)\"", re.M)
_SCRIPT_ENDING = re.compile(r"\.[cm]?[jt]sx?$")
_OF_CRATES = frozenset({"src", "tests", "benches", "examples"})
_MOST_USES = 4
"""Names of Rust that bind each other in a circle mean nothing."""
_REQUIRED = re.compile(r"^require\([\"'](.+)[\"']\)$")


@attrs.frozen
class Declared:
    """What the file `path` declares, as other files see it: a function, a type, or the method of the type `owner`.

    `exports` are the names by which a script hands it out, "default" among them. `package` is what others call the
    file's package: Go's import path, Rust's crate; "" if unknown. `own_package` is the name that Go's file begins with.
    `handed_on` are Python's packages around the file that import the name from it, so that others take it from there.
    """

    language: str
    path: str
    name: str
    owner: str = ""
    exports: frozenset[str] = frozenset()
    own_package: str = ""
    package: str = ""
    handed_on: tuple[str, ...] = ()

    @property
    def outer(self) -> str:
        """The name that belongs to the file: that of the type, of a method."""
        return self.owner or self.name

    def is_of(self, language: str) -> bool:
        """Return whether a file of a language can name it."""
        return language == self.language or (traits_of(language).is_script and traits_of(self.language).is_script)

    def located(self, folder: str) -> "Declared":
        """Return the same with its packages. Reads the disk: go.mod, Cargo.toml or __init__.py around the file."""
        if self.language == "python":
            around = (folder.as_posix() for folder in PurePosixPath(self.path).parents if folder.name)
            packages = (f"{each}/__init__.py" for each in around)
            return attrs.evolve(self, handed_on=tuple(one for one in packages if _hands_on(self, folder, one)))
        if self.language == "go":
            return attrs.evolve(self, package=_go_package(folder, self.path))
        if self.language == "rust":
            root, _ = _crate(self.path)
            found = _CRATE.search(read_text(folder, posixpath.join(root, "Cargo.toml")) or "")
            return attrs.evolve(self, package=found[1].replace("-", "_") if found is not None else "")
        return self


def declared_as(leaf: Node, owner: str, syntax: Syntax, path: str) -> Declared:
    """Return what a name declares in its file: `owner` is its type, "" for what belongs to the file."""
    clause = next((one for one in syntax.root.children if one.kind == "package_clause"), None)
    package = clause.children[-1].text if clause is not None else ""
    is_script = traits_of(syntax.language.id).is_script
    exports = frozenset(_exports(owner or leaf.text, syntax) if is_script else ())
    return Declared(syntax.language.id, path, leaf.text, owner, exports, package)


def uses_elsewhere(what: Declared, names: Names, path: str) -> list[Node]:
    """Return the names in the file `path` that surely mean what another file declares."""
    outer = attrs.evolve(what, name=what.outer, owner="")
    if not what.is_of(names.language) or path == what.path:
        return []
    found = list(_rust_uses(outer, names, path)) if names.language == "rust" else list(_uses(outer, names, path))
    return found if not what.owner else [*_members(what, found, names)]


def _members(what: Declared, types: list[Node], names: Names) -> Iterator[Node]:
    """Yield the uses of a method: of the type itself, and of what is declared with the type. `types` name it."""
    written = {one.text for one in types}
    leaf = Leaf("identifier", what.name, True)
    rename = Rename("member", "", 0, owner=what.owner, is_function=True, family=frozenset(written))
    rule = Rule(names.language, (leaf,), (leaf,), rename, path=what.path)
    # A name that means another type elsewhere in the file says nothing.
    if written and all(any(each is one for one in types) or _is_imported(each) for each in _all_of(written, names)):
        yield from (use.leaf for use in Uses(rule, names, None, "").all() if not use.doubt)


def _all_of(texts: set[str], names: Names) -> Iterator[Node]:
    return (leaf for text in texts for leaf in names.leaves(text))


def _is_imported(leaf: Node) -> bool:
    return any(map(is_import, leaf.ancestors()))


@attrs.frozen(eq=False)
class _Bound:
    """A name, with dots if need be, that stands for the declaration, or for its module. `holder` binds it."""

    name: str
    is_module: bool
    holder: Node


def _uses(what: Declared, names: Names, path: str) -> Iterator[Node]:
    if what.language == "go" and posixpath.dirname(path) == posixpath.dirname(what.path):
        clause = next((one for one in names.syntax.root.children if one.kind == "package_clause"), None)
        if clause is not None and clause.children[-1].text == what.own_package:
            bare = (leaf for leaf in names.leaves(what.name) if not is_member(leaf))
            yield from (leaf for leaf in bare if names.resolved(leaf) is None and not names.declared(what.name))
        return
    homes = [what, *(attrs.evolve(what, path=each) for each in what.handed_on if each != path)]
    bound = [one for home in homes for one in _imported(home, names.syntax, path)]
    bound += _required(what, names.syntax, path)
    for one in bound:
        for leaf in names.leaves(what.name if one.is_module else one.name):
            first = _first_of(receiver(leaf), one.name) if one.is_module else leaf
            is_whole = first is not None and (one.is_module or not is_member(leaf))
            if is_whole and first is not None and _binds(one, first, names) and not _is_imported(leaf):
                yield leaf


def _first_of(owner: Node | None, name: str) -> Node | None:
    """Return the first name of a module's if the code before a member is that module."""
    return next(owner.leaves()) if owner is not None and owner.tokens == name else None


def _binds(one: _Bound, leaf: Node, names: Names) -> bool:
    """Return whether a name means what `one` binds, and nothing nearer."""
    found = names.resolved(leaf)
    others = [part for part in imports_of(names.syntax).parts if part.what.bound == one.name.partition(".")[0]]
    if found is None:
        return all(part.statement.start <= one.holder.start < part.statement.end for part in others) or "." in one.name
    return one.holder.start <= found.leaf.start < one.holder.end


def _imported(what: Declared, syntax: Syntax, path: str) -> Iterator[_Bound]:
    for part in imports_of(syntax).parts:
        one = part.what
        if what.language == "go":
            if one.source == what.package and what.package and what.name[:1].isupper():
                yield _Bound(one.bound, True, part.statement)
            continue
        is_script = traits_of(what.language).is_script
        if _names_file(one.source, what, path):
            if one.name == "*" or not one.name:
                is_bound = one.alias if is_script else one.alias or one.source
                if is_bound and (not is_script or what.name in what.exports) and (is_script or not one.name):
                    yield _Bound(is_bound, True, part.statement)
            elif one.name in what.exports if is_script else one.name == what.name:
                is_own = one.name in ("default", what.name)
                yield from [_Bound(one.bound, False, part.statement)] if is_own else []
        elif not is_script and one.name and _names_file(f"{one.source.rstrip('.')}.{one.name}", what, path, one.source):
            yield _Bound(one.bound, True, part.statement)


def _required(what: Declared, syntax: Syntax, path: str) -> Iterator[_Bound]:
    """Yield what a script takes of a module by `require`."""
    for node in syntax.root.walk() if traits_of(what.language).is_script else ():
        value = node.child("value") if node.kind == "variable_declarator" else None
        found = _REQUIRED.match(value.tokens) if value is not None else None
        name = node.child("name")
        if found is None or name is None or not _names_file(found[1], what, path):
            continue
        if not name.children:
            is_whole = "default" in what.exports
            if is_whole or what.name in what.exports:
                yield _Bound(name.text, not is_whole, node)
        for one in name.parts if what.name in what.exports else ():
            key, local = next(one.leaves()).text, [*one.leaves()][-1].text
            if key == what.name and one.kind in ("shorthand_property_identifier_pattern", "pair_pattern"):
                yield _Bound(local, False, node)


def _names_file(source: str, what: Declared, path: str, dots: str = "") -> bool:
    """Return whether the module that an import of the file `path` names is the file of a declaration."""
    declared = module_path(what.path)
    if traits_of(what.language).is_script:
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), source))
        return source.startswith(".") and module_path(_SCRIPT_ENDING.sub("", whole)) in (declared, what.path)
    relative = dots or source
    up = len(relative) - len(relative.lstrip("."))
    module = "/".join(filter(None, source.split(".")))
    if up:
        around = posixpath.dirname(path)
        for _ in range(up - 1):
            around = posixpath.dirname(around)
        return posixpath.normpath(posixpath.join(around, module)) == declared
    # What is above the packages is where Python looks: the root of the project, its "src", or the folder of the file.
    above = declared.removesuffix(module).rstrip("/") if f"/{declared}".endswith(f"/{module}") else None
    return bool(module) and (above in ("", "src", "lib") or above == posixpath.dirname(path))


def _exports(name: str, syntax: Syntax) -> Iterator[str]:
    """Yield the names by which a script hands a declaration of its own out."""
    for node in syntax.root.children:
        tokens = node.tokens if node.kind in ("export_statement", "expression_statement") else ""
        if node.kind == "export_statement":
            inner = next((one for one in node.children if one.child("name") is not None), None)
            own = inner.child("name") if inner is not None else node.child("value")
            if own is not None and own.text == name:
                yield "default" if any(one.text == "default" for one in node.children) else name
            for one in node.walk():
                if one.kind == "export_specifier" and len(one.children) == 1 and one.tokens == name:
                    yield name
            if inner is None and any(_declares(one, name) for one in node.parts):
                yield name
        elif re.match(rf"(module\.)?exports\.{re.escape(name)}=\s*({re.escape(name)}\b|function|async|\()", tokens):
            yield name
        elif re.match(rf"module\.exports={re.escape(name)}\W*$", tokens):
            yield "default"
        elif tokens.startswith("module.exports={"):
            value = [one for one in node.walk() if one.kind == "shorthand_property_identifier" and one.text == name]
            yield from [name] if value else []


def _declares(node: Node, name: str) -> bool:
    """Return whether `const name = ...` is among what a declaration declares."""
    names = [one.child("name") for one in node.children if one.kind == "variable_declarator"]
    return any(one is not None and one.text == name for one in names)


def _hands_on(what: Declared, folder: str, path: str) -> bool:
    """Return whether a package of Python imports what a file declares, under its name."""
    text = read_text(folder, path) if path != what.path else None
    syntax = parse(text.encode(), language_for("", path)) if text is not None and what.outer in text else None
    outer = attrs.evolve(what, name=what.outer, owner="")
    bound = _imported(outer, syntax, path) if syntax is not None else iter(())
    return any(one.name == what.outer and not one.is_module for one in bound)


def _go_package(folder: str, path: str) -> str:
    """Return what other packages import the package of a file as: that of go.mod, with the folders below it."""
    around = below = posixpath.dirname(path)
    while True:
        found = _GO_MODULE.search(read_text(folder, posixpath.join(around, "go.mod")) or "")
        if found is not None:
            inside = posixpath.relpath(below, around or ".") if below != around else ""
            return posixpath.join(found[1], inside).rstrip("/")
        if not around:
            return ""
        around = posixpath.dirname(around)


# Rust.


def _crate(path: str) -> tuple[str, tuple[str, ...] | None]:
    """Return the folder of a file's crate, and the way to its module there; None for a program of its own."""
    parts = path.split("/")
    at = next((at for at in range(len(parts) - 2, -1, -1) if parts[at] in _OF_CRATES), None)
    if at is None:
        return posixpath.dirname(path), None
    inside = [*parts[at + 1 : -1], parts[-1].removesuffix(".rs")]
    if inside[-1] == "mod" or (len(inside) == 1 and inside[0] in ("lib", "main")):
        inside.pop()
    return "/".join(parts[:at]), tuple(inside) if parts[at] == "src" and inside[:1] != ["bin"] else None


def _rust_uses(what: Declared, names: Names, path: str) -> Iterator[Node]:
    root, module = _crate(what.path)
    if module is None:
        return
    wanted, here = (*module, what.name), _Here(what, names.syntax, path)
    for leaf in _all_of({what.name, *here.bound}, names):
        whole = leaf
        while whole.parent is not None and "scoped" in whole.parent.kind and whole.field == "name":
            whole = whole.parent
        found = names.resolved(leaf) if whole is leaf else None
        is_other = found is not None and found.sort != "import"
        if _is_imported(leaf) or is_other or (whole is leaf and is_member(leaf)):
            continue
        steps = [one.text for one in whole.leaves() if one.text != "::"]
        if here.absolute(steps, leaf) == (root, wanted):
            yield leaf


class _Here:
    """What paths mean in a file of Rust, as the folder of a crate and the way from its root."""

    def __init__(self, what: Declared, syntax: Syntax, path: str) -> None:
        self._what = what
        self._root, self._module = _crate(path)
        self._children = {
            name.text
            for one in syntax.root.children
            if one.kind == "mod_item" and one.child("body") is None and (name := one.child("name")) is not None
        }
        self.bound: dict[str, tuple[list[str], Node]] = {}
        for node in (one for one in syntax.root.walk() if one.kind == "use_declaration"):
            argument = node.child("argument")
            for steps, bound, _ in use_tree(argument, []) if argument is not None else ():
                self.bound.setdefault(bound, (steps, node))

    def absolute(self, steps: list[str], at: Node, most: int = _MOST_USES) -> tuple[str, tuple[str, ...]] | None:
        """Return what a path means at a node, through at most so many uses; None if that is unknown."""
        inner = tuple(
            name.text
            for above in reversed([*at.ancestors()])
            if above.kind == "mod_item" and (name := above.child("name")) is not None
        )
        module = (*self._module, *inner) if self._module is not None else None
        first, rest = steps[0], tuple(steps[1:])
        if first in self.bound and first != "crate":
            used, node = self.bound[first]
            return self.absolute([*used, *rest], node, most - 1) if most and node is not at else None
        if first == self._what.package and rest:
            return _crate(self._what.path)[0], rest
        if module is None:
            return None
        if first == "crate":
            return self._root, rest
        if first == "super":
            module, left = module[:-1], [*rest]
            while left[:1] == ["super"]:
                module, left = module[:-1], left[1:]
            return self._root, (*module, *left)
        if first == "self":
            return self._root, (*module, *rest)
        return (self._root, (*module, first, *rest)) if first in self._children and rest and not inner else None
