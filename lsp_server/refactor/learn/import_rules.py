"""Rules from an example in which only imports changed: a module moved, or an import goes."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher

import attrs

from lsp_server.refactor.change.generalise import Side
from lsp_server.refactor.change.import_roots import root_rule
from lsp_server.refactor.code.bindings import import_statements, imports_of, is_relative_import
from lsp_server.refactor.code.grammar import is_name
from lsp_server.refactor.code.imports import Import
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.learn.wide import sure_and_wide
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest
from lsp_server.refactor.rules.rule import Rule
from lsp_server.refactor.rules.task import ImportSort, Rename

_LISTS = frozenset({"import_clause", "use_list", "namespace_use_group", "namespace_selectors"})


@attrs.frozen(eq=False)
class ImportRules:
    """The rules of imports that changed alone."""

    sure: tuple[Rule, ...] = ()
    wide: tuple[Rule, ...] = ()


def import_rules(before: Syntax, after: Syntax, gone: Collection[str], path: str) -> ImportRules:
    """Return the rules of an example that changed nothing but imports of the file `path`. What it only adds gives none.

    `gone` are names that only have another name after it, see renames.py.
    """
    sure: list[Rule] = []
    wide: list[Rule] = []
    for first, second in _changed(before, after):
        if any(leaf.text in gone for leaf in first.leaves()):
            continue
        if second is None:
            sure.append(Rule(before.language.id, (_Reader(before, varying=()).read(first),), (), "removal"))
        elif gone_names := _gone(first, second, before, after):
            digest = hashlib.sha256(after.data).hexdigest()
            for what in gone_names:
                sides = (Leaf("identifier", what.bound, named=True),), (Leaf("identifier", "", named=True),)
                sure.append(Rule(before.language.id, *sides, Rename("import", digest, 0, gone=what)))
        else:
            one, wider = _statement_rules(first, second, before, after, path)
            own = root_rule(first, second, before.language.id, path)
            sure += one if own is None else [*one, own]
            wide += wider
    return ImportRules(tuple(attrs.evolve(one, path=path) for one in sure), tuple(wide))


def joined_rules(examples: Sequence[ImportRules]) -> ImportRules:
    """Return the rules of several examples: a wide one that two of them have is sure."""
    sure, wide = sure_and_wide([rule for one in examples for rule in one.wide])
    own = dict.fromkeys(rule for one in examples for rule in one.sure)
    return ImportRules((*own, *sure), wide)


def _changed(before: Syntax, after: Syntax) -> list[tuple[Node, Node | None]]:
    """Return the changed imports, each with what took its place; None if it went, and the example added none."""
    old, new = (list(_parts(syntax)) for syntax in (before, after))
    digests = [node.digest for node in old], [node.digest for node in new]
    pairs: list[tuple[Node, Node | None]] = []
    removed: list[Node] = []
    added = 0
    for tag, low, high, new_low, new_high in SequenceMatcher(None, *digests, autojunk=False).get_opcodes():
        if tag == "replace" and high - low == new_high - new_low:
            pairs += zip(old[low:high], new[new_low:new_high], strict=True)
        elif tag != "equal":
            removed += old[low:high]
            added += new_high - new_low
    return pairs if added else [*pairs, *((node, None) for node in removed)]


def _parts(syntax: Syntax) -> Iterator[Node]:
    """Yield the imports of a file: in Go without their keyword, as in a group."""
    for node in import_statements(syntax.root):
        specs = [one for one in node.walk() if one.kind == "import_spec"]
        yield from specs or [node]


def _statement_rules(old: Node, new: Node, before: Syntax, after: Syntax, path: str) -> tuple[list[Rule], list[Rule]]:
    """Return the sure rules and the wide ones of an import that changed and binds the same names.

    Where the last part of the module's name stays, the module moved with all that is in it, so other names move too.
    Where only the form changed, that of a module of the own package or of any package changes with it.
    """
    names, others = _names(old), _names(new)
    known, bound = _bound(old, before), _bound(new, after)
    if known and bound and known != bound:
        return [], []
    if len(names) != len(others) or not all(map(same, names, others)):
        return [], []
    module, moved = _module(old, names), _module(new, others)
    is_whole = bool(module) and bool(moved) and module[-1] == moved[-1]
    language = before.language.id
    sort: ImportSort = "relative" if moved != module and is_relative_import(new, language) else "statement"

    def rules(varying: Sequence[Node], varied: Sequence[Node], wide: str = "") -> list[Rule]:
        found: list[Rule] = []
        for is_inside in (False, True) if varying and old.kind == "import_from_statement" else (False,):
            pattern = _Reader(before, varying=varying, in_parentheses=is_inside).read(old)
            template = _Reader(after, varying=varied, in_parentheses=is_inside).read(new)
            found.append(Rule(language, (pattern,), (template,), sort, wide=wide))
        return found

    if not is_whole:
        return rules((), ()), rules(names, others, _reason(old, names)) if names else []
    if _is_own_package(old, new, path) or _is_own_package(new, old, path):
        sort = "relative"
        return rules([*names, _last(old, names)], [*others, _last(new, others)]), []
    source, target = _source(old), _source(new)
    if module != moved or source is None or target is None:
        return rules(names, others), []
    if _has(old, "require") and _has(new, "*") and not is_relative_import(old, language):
        sort = "package"
        return rules([*names, source], [*others, target]), []
    return rules(names, others), rules([*names, source], [*others, target], _reason(old, [*names, source]))


def _gone(old: Node, new: Node, before: Syntax, after: Syntax) -> list[Import]:
    """Return the names that went from an import which keeps others; none if it changed otherwise."""
    was, stays = (
        [part.what for part in imports_of(syntax).parts if part.statement is node]
        for node, syntax in ((old, before), (new, after))
    )
    return [one for one in was if one not in stays] if stays and all(one in was for one in stays) else []


def _has(statement: Node, word: str) -> bool:
    return any(leaf.text == word for leaf in statement.leaves())


def _last(statement: Node, names: Sequence[Node]) -> Node:
    """Return the last part of the name of the module that an import names."""
    taken = {id(leaf) for name in names for leaf in name.leaves()}
    return [leaf for leaf in statement.leaves() if leaf.named and id(leaf) not in taken][-1]


def _is_own_package(absolute: Node, relative: Node, path: str) -> bool:
    """Return whether two imports of Python name a module beside the file: `a.b` and, in the folder `a`, `.b`."""
    modules = [one.child("module_name") for one in (absolute, relative)]
    if modules[0] is None or modules[1] is None or modules[1].kind != "relative_import":
        return False
    *folders, name = modules[0].tokens.split(".")
    is_beside = modules[1].tokens == f".{name}"
    return is_beside and bool(folders) and path.split("/")[:-1][-len(folders) :] == folders


def _source(statement: Node) -> Node | None:
    """Return the text that names the module."""
    return next((node for node in statement.walk() if node.field == "source"), None)


def _bound(statement: Node, syntax: Syntax) -> set[str]:
    """Return the names by which a file knows what an import brings: in Python the whole `a.b` of `import a.b`."""
    inside = (statement, *statement.ancestors())
    table = imports_of(syntax)
    parts = [part.what for part in table.parts if part.node in inside or part.statement is statement]
    found = {one.source if one.kind == "python" and not (one.name or one.alias) else one.bound for one in parts}
    return {name for name in found if name.replace(".", "").isidentifier()}


def _names(statement: Node) -> list[Node]:
    """Return what an import takes: a list of names, names of their own, or the last part of the path."""
    found = next((node for node in statement.walk() if node.kind in _LISTS and len(list(node.leaves())) > 1), None)
    if found is not None and found.kind != "import_clause":
        return [found]
    named = [child for child in statement.children if child.field == "name"]
    if statement.kind == "import_from_statement":
        return named
    if found is not None and any(node.kind == "named_imports" for node in found.walk()):
        return [found]
    return [leaf for leaf in statement.leaves() if is_name(leaf)][-1:]


def _module(statement: Node, names: Sequence[Node]) -> list[str]:
    """Return the parts of the name of the module that an import names."""
    taken = {id(leaf) for name in names for leaf in name.leaves()}
    leaves = [leaf for leaf in statement.leaves() if leaf.named and id(leaf) not in taken]
    return [part for leaf in leaves for part in leaf.text.replace("\\", "/").split("/") if part]


def _reason(statement: Node, varying: Sequence[Node]) -> str:
    """Return why the places of a wide rule are doubtful: only these words are as in the example."""
    taken = {id(leaf) for node in varying for leaf in node.leaves()}
    words = [leaf.text for leaf in statement.leaves() if id(leaf) not in taken]
    return f"only `{' '.join(word for word in words if word[:1].isalpha())}` is as in the example"


@attrs.define
class _Reader(Side):
    """Reads one side. The nodes of `varying` are variables; all names that Python lists are one."""

    varying: Sequence[Node] = attrs.field(kw_only=True)
    in_parentheses: bool = attrs.field(default=False, kw_only=True)

    def read(self, node: Node) -> Pattern:
        """Return a node as a pattern."""
        gap = self.gap(node)
        at = next((at for at, one in enumerate(self.varying) if one is node), None)
        if at is None and node.children:
            return Branch(node.kind, tuple(self._children(node)), node.field)
        self.end = node.end
        if at is not None:
            return Hole(f"V{at}", frozenset({node.kind}), gap=gap)
        return Leaf(node.kind, node.text, node.named, gap)

    def _children(self, node: Node) -> Iterator[Pattern]:
        is_list = node.kind == "import_from_statement" and any(one in node.children for one in self.varying)
        for at, child in enumerate(node.children):
            yield self.read(child)
            if is_list and child.text == "import":
                names = Rest("VS", "" if self.in_parentheses else self.gap(node.children[at + 1]), ", ")
                brackets = (Leaf("(", "(", named=False, gap=" "), Leaf(")", ")", named=False))
                yield from (brackets[0], names, brackets[1]) if self.in_parentheses else (names,)
                return
