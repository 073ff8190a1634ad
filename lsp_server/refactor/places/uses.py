"""The uses of a renamed declaration: which follow it, and which may mean something else."""

import posixpath
import re
from collections.abc import Callable, Iterator

import attrs

from lsp_server.refactor.change.import_roots import MODULE, SORT, module_uses, roots
from lsp_server.refactor.code.bindings import Scopes, imports_of, origin, same_origin
from lsp_server.refactor.code.declarations import Declaration, Names, is_prototype, names_of, strings_with
from lsp_server.refactor.code.grammar import callee_of, is_call, is_import, is_string_content
from lsp_server.refactor.code.import_parts import path_before
from lsp_server.refactor.code.imports import Import
from lsp_server.refactor.code.member import constructed, is_member, last_name, receiver
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax, parse
from lsp_server.refactor.code.used_names import used_names
from lsp_server.refactor.places.members import Members, is_shorthand, member_of_keys, rivalry
from lsp_server.refactor.rules.pattern import Leaf
from lsp_server.refactor.rules.rule import Rule
from lsp_server.refactor.rules.task import Rename

_LEAST = 3
"""The letters of a name whose other declarations are listed: `i` is declared everywhere."""
_FILE_OF_MODULE = re.compile(r"((^|/)(__init__|index))?\.\w+$|(^|/)(mod|lib)\.rs$")
_OWN_CRATE, _STANDARD = frozenset({"crate", "self", "super"}), frozenset({"std", "core", "alloc"})
_PACKAGED = frozenset({"java", "kotlin", "scala", "php", "csharp", "cpp"})
_RELATIVE = frozenset({"cpp", "php"})
"""Where a path may begin in a package around it. In the others its first name may be a variable's."""
_CONTENT_CALLS = frozenset({"usefixtures", "getfixturevalue"})


@attrs.frozen(eq=False)
class Use:
    """A name that follows a declaration: `before` is kept before the new name, `behind` behind it; see `doubt`."""

    leaf: Node
    doubt: str = ""
    before: str = ""
    behind: str = ""


def uses_in(rule: Rule, syntax: Syntax, digest: str, path: str) -> list[Use]:
    """Return the uses of a renamed declaration in the file `path`. `digest` names its text, as in Own."""
    rename = rule.task
    assert isinstance(rename, Rename)
    own = rename.digest == digest
    if rename.sort == SORT:
        return [Use(leaf, doubt, behind=rest) for leaf, doubt, rest in roots(rename, syntax, path)]
    if rename.gone is not None:
        return [Use(node, doubt) for node, doubt in _unused(rename.gone.seen_from(rule.path, path), syntax, path)]
    if rename.sort == MODULE:
        return [Use(leaf, doubt) for leaf, doubt in module_uses(rule, syntax, own)]
    if rename.qualifier:
        return _qualified_uses(rule, rename, names_of(syntax), own)
    if own:
        return _own_uses(rule, rename, syntax)
    if rename.is_of_file:
        return []
    names = names_of(syntax)
    if rename.sort != "import":
        return list(Uses(rule, names, None).all())
    imports = [one for one in names.declared(rule.words[0]).values() if one.sort == "import"]
    same = [one for one in imports if same_origin(one.owner, rename.owner)]
    if same:
        return list(Uses(rule, names, same[0]).all())
    is_meant = _is_imported_from(rule, rename.owner, path)
    if is_meant or rename.owner.startswith(".") or not names.traits.names_all:
        return _uses_in_module(rule, rename, names) if is_meant else []
    # A package may hand on what one of its files has.
    return _uses_in_module(rule, rename, names, "another module may have it")


def _unused(gone: Import, syntax: Syntax, path: str) -> Iterator[tuple[Node, str]]:
    """Yield the imports of a name that nothing in a file uses, each with its doubt."""
    parts = [part for part in imports_of(syntax).parts if part.what == gone]
    used = used_names(syntax.root, Scopes(syntax, imports_of(syntax))) if parts else set[str]()
    doubt = "others may import it from here" if posixpath.basename(path) == "__init__.py" else ""
    yield from ((part.node, doubt) for part in parts if gone.bound not in used)


def of_module(rule: Rule, syntax: Syntax) -> list[Rule]:
    """Return the same rule for the other names that a file imports from the module of a name that got a qualifier."""
    rename, rules, old = rule.task, list[Rule](), rule.pattern[0]
    if not (isinstance(rename, Rename) and rename.qualifier and rename.module and isinstance(old, Leaf)):
        return []
    if rename.module.startswith("use ") and re.findall(r"\w+", rename.module)[-1] != rename.qualifier_name:
        return rules  # of another module than that of the import: `Result` of this crate becomes `anyhow::Result`
    for one in imports_of(syntax).all:
        if one.bound != rule.words[0] and module_of(one) and same_origin(module_of(one), rename.module):
            pattern = (attrs.evolve(old, text=one.bound),)
            template = (attrs.evolve(old, text=rename.qualifier + one.bound),)
            other = attrs.evolve(rename, owner=origin(one))
            rules.append(attrs.evolve(rule, pattern=pattern, template=template, task=other))
    return rules


def module_of(what: Import) -> str:
    """Return the module that an imported name is of, as it is written; "" if none is."""
    if what.kind != "text":
        return what.source if what.name else ""
    module = what.source.rpartition(what.bound)[0]
    return module if module.endswith((".", "::", "\\")) else ""


def _qualified_uses(rule: Rule, rename: Rename, names: Names, own: bool) -> list[Use]:
    """Return the uses of an imported name that gets a qualifier; the import itself is none."""
    imports = [one for one in names.declared(rule.words[0]).values() if one.sort == "import"]
    same = next((one for one in imports if same_origin(one.owner, rename.owner)), None)
    if same is None:
        return []
    first = rename.qualifier_name
    is_known = own or first in rule.new_names.unbound or not rename.module or bool(names.declared(first))
    doubt = "" if is_known else f"`{first}`, which the edit uses, is not known here"
    uses = Uses(rule, names, same, clash="").all()
    apart = (one for one in uses if not any(is_import(above) for above in one.leaf.ancestors()))
    return [Use(one.leaf, doubt, one.before) for one in apart]


def _uses_in_module(rule: Rule, rename: Rename, names: Names, doubt: str = "") -> list[Use]:
    """Return the declaration of an import that got another name, and its uses in the file that has it."""
    old, new = rule.words
    found = [one for one in names.declared(old).values() if one.sort == "global"]
    if not found:
        return []
    of_global = attrs.evolve(rename, sort="global", clash=doubt or taken(new, names))
    return list(Uses(attrs.evolve(rule, task=of_global), names, found[0]).all())


def _is_imported_from(rule: Rule, owner: str, path: str) -> bool:
    """Return whether an import from `owner` in the example names a file of Python, JavaScript or TypeScript."""
    module, _, name = owner.rpartition(".")
    if name != rule.words[0] or not rule.path:
        return False
    if rule.language == "python":
        dots = len(module) - len(module.lstrip("."))
        module = "/".join([".", *[".."] * (dots - 1), *filter(None, module.split("."))][0 if dots else 1 :])
    elif not module.startswith("."):
        return False
    whole = posixpath.normpath(posixpath.join(posixpath.dirname(rule.path), module)) if module[:1] == "." else module
    return f"/{module_path(path)}".endswith(f"/{re.sub(r'[.][cm]?[jt]sx?$', '', whole)}")


def module_path(path: str) -> str:
    """Return the path that imports name a file by: that of its folder if it is the folder's module."""
    return _FILE_OF_MODULE.sub("", path)


def _own_uses(rule: Rule, rename: Rename, syntax: Syntax) -> list[Use]:
    """Return the uses in the example's file: where its declaration has its old name again they are bound to it."""
    old, new = rule.words
    plain, start = syntax.data.replace(b"\r\n", b"\n"), rename.start
    start += plain[:start].count(b"\n") if len(plain) < len(syntax.data) else 0
    end = start + len(new.encode())
    if syntax.data[start:end] != new.encode():
        return []
    undone = parse(syntax.data[:start] + old.encode() + syntax.data[end:], syntax.language)
    names = names_of(undone) if undone is not None else None
    declared = names.declared(old) if names is not None else {}
    one = member_of_keys(declared.values()) if rename.is_key else declared.get(start)
    if names is None or one is None:
        return []
    moved = len(new.encode()) - len(old.encode())
    there = {leaf.start: leaf for leaf in names_of(syntax).leaves(old)}
    uses: list[Use] = []
    for use in Uses(rule, names, one, rename.clash).all():  # some uses may have the new name already
        at = use.leaf.start + (moved if use.leaf.start > start else 0)
        if use.leaf.start != start and at in there:
            uses.append(attrs.evolve(use, leaf=there[at]))
    return uses


class Uses:
    """The uses of a renamed declaration in one file; `own` is the declaration if the file has it.

    `clash` says why the new name is not free there; None looks for it.
    """

    def __init__(self, rule: Rule, names: Names, own: Declaration | None, clash: str | None = None) -> None:
        rename = rule.task
        assert isinstance(rename, Rename)
        self._old, self._new = rule.words
        self._rename, self._names, self._own = rename, names, own
        self._imports = imports_of(names.syntax)
        parts = self._imports.parts
        self._named_imports = [one for one in parts if one.what.name == self._old and self._is_module(one.what)]
        self._traits = names.traits
        self._has_package = rename.sort == "global" and names.language in _PACKAGED
        self._members = Members(self._old, rename, names, own)
        self._rivalry = rivalry(self._old, rename, own)
        sort = {"local": self._local, "member": self._members.doubt, "fixture": self._fixture}
        self._classify: Callable[[Node], str | None] = sort.get(rename.sort, self._global)
        is_known = (own is not None and rename.sort != "import") or rename.sort == "member"
        self._clash = clash if clash is not None else rename.clash if is_known else taken(self._new, names)

    def all(self) -> Iterator[Use]:
        """Yield the uses in their order. Those that a text names too are all doubtful."""
        doubt = self._clash
        if self._own is not None and any(self._is_inside(one) for one in strings_with(self._old, self._names.syntax)):
            doubt = doubt or "a text has the name too"
        for leaf in self._names.leaves(self._old):
            reason = self._classify(leaf)
            if reason is not None:
                yield self._use(leaf, reason or doubt)

    def _is_inside(self, node: Node) -> bool:
        return self._own is not None and self._own.scope.start <= node.start < self._own.scope.end

    def _use(self, leaf: Node, doubt: str) -> Use:
        above = leaf.parent
        is_handed_on = self._rename.sort == "import" or _export_around(leaf) is not None
        if is_handed_on and above is not None and above.kind == "export_specifier":
            return Use(leaf, doubt, behind=f" as {self._old}" if len(above.children) == 1 else "")
        if not is_shorthand(leaf):
            return Use(leaf, doubt)
        if self._rename.sort == "member":
            return Use(leaf, doubt, behind=f": {self._old}")
        return Use(leaf, doubt, before=f"{self._old}: ")

    # Locals, globals and fixtures.

    def _local(self, leaf: Node) -> str | None:
        if is_string_content(leaf):
            return None
        found = self._names.resolved(leaf)
        if found is None or found.sort != "local" or self._own is None:
            return self._argument(leaf)
        if found is self._own:
            return self._of_other_loop(leaf)
        if _receiver_type(found) == _receiver_type(self._own) != "":
            return taken(self._new, self._names, found.scope)
        if len(self._old) < _LEAST:
            return None
        is_meant = self._rename.is_of_all
        return taken(self._new, self._names, found.scope) if is_meant else "another declaration has this name"

    def _argument(self, leaf: Node) -> str | None:
        """Return the doubt of a name that an argument is given by, if the parameter of a function was renamed."""
        call = leaf.parent.parent if leaf.parent is not None and is_member(leaf) else None
        call = call.parent if call is not None and not is_call(call) else call
        last = last_name(callee_of(call)) if call is not None and is_call(call) else None
        if last is None or last.text != self._rename.owner:
            return None
        known, own = self._names.resolved(last), self._own
        is_own = known is not None and own is not None and known.leaf.parent is own.scope
        return "" if is_own else "an argument of this name may be another function's"

    def _global(self, leaf: Node) -> str | None:
        if is_string_content(leaf):
            return None
        if (owner := constructed(leaf)) is not None:
            leaf = owner
        if self._own is not None:
            found = self._names.resolved(leaf)
            # An inner module of Rust may import what is around it.
            is_above = found is not None and found.owner == f"use super::{self._old};" and self._rename.sort == "global"
            return self._of_other_loop(leaf) if found is self._own or is_above else None
        if any(is_import(above) for above in leaf.ancestors()):
            return self._imported(leaf)
        if (source := _export_around(leaf)) is not None:
            is_meant = leaf.field != "alias" and self._is_module(Import(source.tokens.strip("\"'")))
            return self._rivalry if is_meant else None
        if is_member(leaf):
            return self._of_module(leaf)
        if leaf.parent is not None and leaf.parent.kind == "variable_name":
            return None
        found = self._names.resolved(leaf)
        if found is not None and found.sort != "import":
            return self._rivalry if found.sort == "global" and is_prototype(found) else None
        if self._named_imports:
            return None if any(part.what.alias for part in self._named_imports) else self._rivalry
        if found is not None and self._has_package:
            return self._imported(found.leaf)
        return self._of_crate() if not self._traits.names_all else None

    def _of_other_loop(self, leaf: Node) -> str:
        """Return the doubt of a use in another loop of Python that sets the same variable: it is another one there."""
        loop = self._own.holder if self._own is not None else leaf
        if not loop.kind.startswith("for_") or loop.start <= leaf.start < loop.end:
            return ""
        left = [above.child("left") for above in leaf.ancestors() if above.kind == loop.kind]
        names = (one for node in left if node is not None for one in node.leaves())
        is_other = any(one.start in self._names.declared(self._old) for one in names)
        return "another loop sets it" if is_other else ""

    def _is_module(self, what: Import) -> bool:
        source = re.sub(r"\.[cm]?[jt]sx?$| as \w+;$|;$", "", what.source)
        last = re.split(r"[./\s]|::", source)[-1]
        return bool(last) and last == self._rename.module

    def _imported(self, leaf: Node) -> str | None:
        if self._has_package:
            return self._rivalry if self._is_of_package(leaf) else None
        for part in self._named_imports:
            if part.statement.start <= leaf.start < part.statement.end and part.node.end >= leaf.end > part.node.start:
                return self._rivalry if leaf.field != "alias" else None
        is_last = not self._traits.names_all and self._old in {one.bound for one in self._imports.all}
        return self._of_crate() if is_last else None

    def _is_of_package(self, leaf: Node) -> bool:
        """Return whether the path before a name, or the import of its first name, is the declaration's package."""
        path, package = path_before(leaf), re.findall(r"\w+", self._rename.owner)
        is_use = not any(map(is_import, leaf.ancestors()))
        used = next((one.source for one in self._imports.all if one.bound == path[0]), "") if path and is_use else ""
        if used:
            path = [*re.findall(r"\w+", used)[1:], *path[1:]]
        is_inner = self._names.language in _RELATIVE and package[len(package) - len(path) :] == path != []
        return bool(is_inner or (path == package and (path or not is_use or not is_member(leaf))))

    def _of_crate(self) -> str | None:
        """Return the doubt of a name that a file of Rust takes from a crate; None if that is the standard library."""
        used = next((one.source for one in self._imports.all if one.bound == self._old), "")
        steps = re.findall(r"\w+", used.partition("use ")[2])
        if self._names.language != "rust" or len(steps) < 2 or steps[0] in {*_OWN_CRATE, self._rename.owner}:
            return self._rivalry
        if steps[0] in _STANDARD:
            return None
        return self._rivalry if steps[-2] == self._rename.module else f"`{steps[0]}` may be another crate"

    def _of_module(self, leaf: Node) -> str | None:
        """Return the doubt of `module.name`; None if that is no module, or another one."""
        if self._has_package:
            return self._rivalry if self._is_of_package(leaf) else None
        owner = receiver(leaf)
        if owner is not None and is_call(owner):
            return None
        last = last_name(owner)
        is_of_crate = owner is not None and next(owner.leaves()).text in {*_OWN_CRATE, self._rename.owner}
        if self._names.language == "rust" and is_of_crate and last is not None and last.text == self._rename.module:
            return self._rivalry
        whole = owner.tokens if owner is not None else ""  # `import a.b` is used as `a.b`
        part = next((one for one in self._imports.parts if last is not None and one.what.bound == last.text), None)
        part = part or next((one for one in self._imports.parts if one.what == Import(whole, kind="python")), None)
        if part is None:
            return None
        what = part.what
        is_whole = what.name in ("", "*", "default") and self._is_module(what)
        return self._rivalry if is_whole or what.name == self._rename.module else None

    def _fixture(self, leaf: Node) -> str | None:
        names = self._names
        if self._own is None and self._rename.module != "conftest" and not self._named_imports:
            return None
        if self._own is None and any(map(is_fixture, names.declared(self._old).values())):
            return None  # the file has one of its own
        if is_string_content(leaf):
            calls = [one for above in leaf.ancestors() if is_call(above) for one in above.children[0].leaves()]
            return "" if any(one.text in _CONTENT_CALLS for one in calls) else None
        found = names.resolved(leaf)
        if found is None or not found.is_parameter:
            return self._global(leaf)
        function = found.scope.child("name")
        is_test = function is not None and function.text.startswith("test")
        if is_test or _is_decorated(found.scope, "fixture"):
            return self._rivalry
        return "it is the parameter of a function that is no test and no fixture" if self._own is not None else None


def taken(name: str, names: Names, scope: Node | None = None) -> str:
    """Return a doubt if something has a name in a file, or in a scope of it; else ""."""
    inside = (leaf for leaf in names.leaves(name) if scope is None or scope.start <= leaf.start < scope.end)
    is_free = all(is_member(leaf) or is_string_content(leaf) for leaf in inside)
    return "" if is_free else f"`{name}` is something else there"


def _receiver_type(one: Declaration) -> str:
    """Return the type whose method of Go has a declaration as its receiver; "" if it is none."""
    lists = [above for above in one.leaf.ancestors() if above.field == "receiver"]
    kind = one.holder.child("type") if lists else None
    return next((leaf.text for leaf in kind.leaves() if leaf.named), "") if kind is not None else ""


def _export_around(leaf: Node) -> Node | None:
    """Return the module that a name is exported from again: `export { name } from "./m"`; None for other names."""
    if leaf.parent is None or leaf.parent.kind != "export_specifier":
        return None
    return next(above.child("source") for above in leaf.ancestors() if above.kind == "export_statement")


def is_fixture(one: Declaration) -> bool:
    return one.is_function and _is_decorated(one.holder, "fixture")


def _is_decorated(holder: Node, word: str) -> bool:
    above = holder.parent
    decorators = [child for child in above.children if child.kind == "decorator"] if above is not None else []
    texts = [leaf.text for child in decorators for leaf in child.leaves()]
    return word in texts and "name" not in texts  # a fixture with a name of its own is used by that
