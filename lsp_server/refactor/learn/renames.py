"""The declarations that an example gave another name, each as a rule whose places are its uses."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

import attrs

from lsp_server.refactor.change.difference import Change
from lsp_server.refactor.change.import_roots import MODULE, is_other_module
from lsp_server.refactor.code.bindings import imports_of, namespaces_of, origin
from lsp_server.refactor.code.declarations import Declaration, Names, class_around, class_name, is_class, names_of
from lsp_server.refactor.code.grammar import SELF, is_name
from lsp_server.refactor.code.imports import Import
from lsp_server.refactor.code.member import is_own_variable
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.preprocessor import is_macro
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.places.members import KEYED, member_of_keys
from lsp_server.refactor.places.uses import Uses, is_fixture, module_of, module_path, of_module, taken
from lsp_server.refactor.rules.pattern import Leaf
from lsp_server.refactor.rules.rule import NewNames, Rule
from lsp_server.refactor.rules.task import Rename

_NAMED_ARGUMENTS = frozenset({"python", "kotlin", "swift", "csharp", "php", "ruby", "scala"})
_CONSTRUCTORS = frozenset({"__init__", "__construct", "initialize", "init"})


@attrs.frozen(eq=False)
class Renames:
    """What an example renamed: a rule for each declaration, and the changes that say no more than these rules.

    `words` has the old and new names if no change of the example does more than put names in the place of others.
    `imports` are the pairs of imports of which only the name changed.
    """

    rules: tuple[Rule, ...] = ()
    changes: tuple[Change, ...] = ()
    words: frozenset[tuple[str, str]] = frozenset()
    imports: tuple[tuple[Import, Import], ...] = ()


def renames_of(changes: Sequence[Change], before: Syntax, after: Syntax, path: str) -> Renames:
    """Return the declarations of the file `path` whose names alone changed."""
    pairs = [(change, pair) for change in changes if (pair := _renamed(change))]
    if not pairs:
        return Renames()
    names, rules = names_of(before), list[Rule]()
    declaring: list[tuple[Change, Declaration]] = []
    declared = {(old.text, new.text) for _, renamed in pairs for old, new in renamed if _declared(old, names)}
    for change, renamed in pairs:
        if any((old.text, new.text) not in declared for old, new in renamed):
            continue  # more than a declaration's name changed
        for old, new in renamed:
            one = _declared(old, names)
            if one is not None and not any(one is other for _, other in declaring):
                rules.append(_rule(one, old, new, names, after, path))
                declaring.append((change, one))
    counts = Counter(rule.words for rule in rules)
    rules = [_of_all(rule) if counts[rule.words] > 1 else rule for rule in rules]
    kept = [change for change, one in declaring if one.sort == "member" and one.is_function and one.bases]
    said = [change for change, _ in declaring]
    followed: set[int] = set()
    if len(pairs) > len(said):
        for rule, (_, one) in zip(rules, declaring, strict=True):
            uses = Uses(rule, names, one).all()
            followed |= {use.leaf.start for use in uses if not use.doubt}
    said += [change for change, renamed in pairs if renamed and all(old.start in followed for old, _ in renamed)]
    said = [change for change in said if not any(change is one for one in kept)]
    is_all = len(pairs) == len(changes)
    words = frozenset((old.text, new.text) for _, renamed in pairs if is_all for old, new in renamed)
    return Renames(tuple(rules), tuple(said), words)


def _of_all(rule: Rule) -> Rule:
    """Return the rule of one of several declarations that got the same name: the others of the file are meant too."""
    assert isinstance(rule.task, Rename)
    return attrs.evolve(rule, task=attrs.evolve(rule.task, is_of_all=True))


def import_renames(
    pairs: Sequence[tuple[Import, Import]], changes: Sequence[Change], before: Syntax, after: Syntax, path: str
) -> Renames:
    """Return the imports that bind another name after an example that changed nothing else than some of their uses."""
    rules = dict[tuple[str, str], Rule]()
    imports: list[tuple[Import, Import]] = []
    for old, new in pairs:
        if is_other_module(old, new, before):
            digest = hashlib.sha256(after.data).hexdigest()
            pattern, template = (Leaf("identifier", one.source, named=True) for one in (old, new))
            rule = Rule(before.language.id, (pattern,), (template,), Rename(MODULE, digest, 0), path=path)
            rules[old.bound, new.bound] = rule
            imports.append((old, new))
        if not _is_rename(old, new):
            continue
        one, other = _import(old, names_of(before)), _import(new, names_of(after))
        if one is not None and other is not None:
            rules[old.bound, new.bound] = _rule(one, one.leaf, other.leaf, names_of(before), after, path)
            imports.append((old, new))
    used = [{(old.text, new.text) for old, new in _renamed(change)} for change in changes]
    if not all(words and words <= rules.keys() for words in used):
        return Renames()
    return Renames(tuple(rules.values()), tuple(changes), frozenset(rules), tuple(imports))


def qualified(changes: Sequence[Change], before: Syntax, after: Syntax, path: str) -> tuple[Rule, ...]:
    """Return the imported names that an example put a qualifier before: the others of the module are meant too.

    They are not if the qualifier is the whole path of the module (`std::cmp` for `use std::cmp`).
    """
    rules: list[Rule] = []
    names, parts = names_of(before), imports_of(before).parts
    for change in changes:
        leaf, qualifier = _qualifier(change)
        found = names.resolved(leaf) if leaf is not None else None
        own = next((one.what for one in parts if found is not None and one.what.bound == found.leaf.text), None)
        if leaf is None or own is None or found is None or found.sort != "import":
            continue
        digest = hashlib.sha256(after.data).hexdigest()
        module = "" if module_of(own).endswith(f" {qualifier}") else module_of(own)
        rename = Rename("import", digest, 0, module, origin(own), qualifier=qualifier)
        first = rename.qualifier_name
        old = Leaf(leaf.kind, own.bound, True)
        new = attrs.evolve(old, text=qualifier + own.bound)
        # An import that the example added follows into other files; where a file names all, a line says what it lacks.
        is_said = traits_of(names.language).names_all or bool(names_of(after).declared(first))
        unbound = (first,) if is_said and not names.declared(first) else ()
        rule = Rule(names.language, (old,), (new,), rename, path=path, new_names=NewNames(unbound=unbound))
        rules += [rule, *of_module(rule, before)]
    return tuple({rule.words: rule for rule in rules}.values())


def _qualifier(change: Change) -> tuple[Node | None, str]:
    """Return the name that a change only puts a qualifier before, and that qualifier: `m.`, `std::`."""
    old = [leaf for node in change.before for leaf in node.leaves()]
    new = [leaf for node in change.after for leaf in node.leaves()]
    more = len(new) - len(old)
    texts = zip((one.text for one in old), (one.text for one in new), strict=False)
    at = next((index for index, (one, other) in enumerate(texts) if one != other), 0)
    added = "".join(one.text for one in new[at : at + more])
    is_all = more > 0 and [one.text for one in old[at:]] == [one.text for one in new[at + more :]]
    is_qualifier = re.fullmatch(r"(\w+(\.|::|\\))+", added) is not None and new[at].text not in SELF
    return (old[at], added) if is_all and is_qualifier else (None, "")


def own_uses(one: Declaration, names: Names, path: str) -> list[Node]:
    """Return the names that surely mean a declaration in its own file; none if it is declared several times."""
    if sum(other is one for other in names.declared(one.leaf.text).values()) > 1:
        return []
    rule = _rule(one, one.leaf, one.leaf, names, names.syntax, path)
    assert isinstance(rule.task, Rename)
    free = attrs.evolve(rule, task=attrs.evolve(rule.task, clash=""))
    return [use.leaf for use in Uses(free, names, one).all() if not use.doubt]


def _import(what: Import, names: Names) -> Declaration | None:
    found = (one for one in names.declared(what.bound).values() if one.sort == "import" and one.owner == origin(what))
    return next(found, None)


def _is_rename(old: Import, new: Import) -> bool:
    """Return whether one thing of the same module has another name after the edit."""
    if old.bound == new.bound or not (old.bound.isidentifier() and new.bound.isidentifier()):
        return False
    if old.kind == "text":
        return old.source.replace(old.alias, new.alias, 1) == new.source and old.source.count(old.alias) == 1
    is_alias = old.name == new.name and bool(old.alias and new.alias)
    return (old.source, old.kind) == (new.source, new.kind) and (is_alias or not (old.alias or new.alias))


def _declared(leaf: Node, names: Names) -> Declaration | None:
    """Return the declaration that begins with a name, or the local that it sets anew; None if it is a use.

    A key is a use that tells as much, if one type of the file alone has a member of this name.
    """
    declared = names.declared(leaf.text)
    one = declared.get(leaf.start)
    if one is None and leaf.index == 0 and leaf.parent is not None and leaf.parent.kind in KEYED:
        return member_of_keys(declared.values())
    return one if one is not None and (one.leaf is leaf or one.sort == "local" or _is_each(leaf)) else None


def _is_each(leaf: Node) -> bool:
    """Return whether each leaf like it declares its name: that of a macro of C, a variable of an object of Ruby."""
    return is_macro(leaf) or is_own_variable(leaf)


def _renamed(change: Change) -> list[tuple[Node, Node]]:
    """Return the names that a change puts in the place of others; empty if it does more than that."""
    old = [leaf for node in change.before for leaf in node.leaves()]
    new = [leaf for node in change.after for leaf in node.leaves()]
    if len(old) != len(new):
        return []
    found: list[tuple[Node, Node]] = []
    for one, other in zip(old, new, strict=True):
        if one.text == other.text and one.kind == other.kind:
            continue
        is_plain = one.kind == other.kind and other.text.strip("_$@") and other.text.lstrip("@").isidentifier()
        if not is_plain or not (is_name(one) or is_own_variable(one) or one.kind.startswith("shorthand_")):
            return []
        found.append((one, other))
    return found


def _rule(one: Declaration, old: Node, new: Node, names: Names, after: Syntax, path: str) -> Rule:
    """Return the rule of a declaration whose name `old` became `new`. A local that is set anew may be a new one."""
    sort: str = "fixture" if is_fixture(one) and names.language == "python" else one.sort
    sort = "file" if sort == "global" and _is_of_file(one, names.language) else sort
    is_key = names.declared(old.text).get(old.start) is None
    module = path.rpartition("/")[0] if names.language == "go" else module_path(path)
    rename = Rename(
        sort,
        hashlib.sha256(after.data).hexdigest(),
        new.start,
        module.rpartition("/")[2].partition(".")[0],
        _owner(one, sort, names.language),
        one.bases,
        one.is_function,
        frozenset({one.owner} - {""}),
        clash=_clash(one, new.text, names)
        if old is one.leaf or is_key or _is_each(old)
        else "the name is set above the example too",
        is_key=is_key,
    )
    leaf = Leaf(old.kind, old.text, True)
    return Rule(names.language, (leaf,), (attrs.evolve(leaf, text=new.text),), rename, path=path)


def _owner(one: Declaration, sort: str, language: str) -> str:
    """Return what a Rename has as the owner of a declaration."""
    if sort == "global":
        return ".".join(namespaces_of(one.holder))
    name = one.scope.child("name") if one.is_parameter and language in _NAMED_ARGUMENTS else None
    if name is None:
        return one.owner
    around = class_around(one.scope)
    return class_name(around) if around is not None and name.text in _CONSTRUCTORS else name.text


def _is_of_file(one: Declaration, language: str) -> bool:
    """Return whether no other file can use a global: a static one of C, a variable of a script."""
    storage = [child for child in one.holder.children if "storage" in child.kind]
    is_static = any(leaf.text == "static" for child in storage for leaf in child.leaves())
    is_variable = not one.is_function and not is_class(one.holder)
    return is_static or (is_variable and language != "python" and not traits_of(language).declares)


def _has_overloads(one: Declaration, names: Names) -> bool:
    """Return whether a function is defined again beside its definition, as an overload or as a copy of it."""
    others = [start for start, other in names.declared(one.leaf.text).items() if other is one]
    if not one.is_function or len(others) < 2:
        return False
    if one.sort == "member" and names.traits.overloads:
        return True
    leaves = [leaf for leaf in names.leaves(one.leaf.text) if leaf.start in others]
    holders = [above for leaf in leaves for above in leaf.ancestors() if above.parent is one.holder.parent]
    return sum(above.child("body") is not None and not _is_accessor(above) for above in holders) > 1


def _is_accessor(holder: Node) -> bool:
    return any(child.text in ("get", "set") for child in holder.children)


def _clash(one: Declaration, new: str, names: Names) -> str:
    """Return why a declaration cannot have a name without a doubt; "" if nothing else has it there."""
    if _has_overloads(one, names):
        return f"{f'`{one.owner}`' if one.owner else 'the file'} has several functions of this name"
    symbol = f":{one.leaf.text.lstrip('@')}" if is_own_variable(one.leaf) else ""
    if symbol and any(leaf.text == symbol for leaf in one.scope.leaves()):
        return f"`{symbol}` names it too"
    if one.sort == "member":
        is_known = any(other.owner == one.owner for other in names.declared(new).values() if other.sort == "member")
        return f"`{new}` is something else there" if is_known else ""
    return taken(new, names, one.scope)
