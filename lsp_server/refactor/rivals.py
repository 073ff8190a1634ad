"""What else a workspace declares under the name of a renamed declaration: the same member of its kin, or rivals."""

import functools
import time
from collections.abc import Collection, Sequence
from contextlib import aclosing

import attrs

from lsp_server.languages.registry import language_for
from lsp_server.refactor.change.import_roots import SORT, externs
from lsp_server.refactor.code.declarations import Declaration, is_prototype, names_of
from lsp_server.refactor.code.syntax import parse
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.edit.rewrite import fits_language
from lsp_server.refactor.places.doubts import is_same_file
from lsp_server.refactor.places.modules import Declared
from lsp_server.refactor.rules.rule import Rule, RuleSet
from lsp_server.refactor.rules.task import Rename
from lsp_server.refactor.search import Target, texts_of
from lsp_server.refactor.worker import side_by_side


def has_renames(rules: Sequence[RuleSet]) -> bool:
    """Return whether some rules rename what other files may use."""
    return any(_is_wanted(rule) for one in rules for rule in one.rules)


async def found_rivals(rules: Sequence[RuleSet], targets: Sequence[Target], seconds: float) -> Sequence[RuleSet]:
    """Return what with_rivals does, by a process that gives way to others. Raises WorkerFailed."""
    if not has_renames(rules):
        return rules
    async with aclosing(side_by_side(functools.partial(with_rivals, rules, seconds=seconds), [targets])) as results:
        return [one async for _, some in results for one in some]


def with_rivals(rules: Sequence[RuleSet], targets: Sequence[Target], seconds: float) -> Sequence[RuleSet]:
    """Return rules whose renames know what else the files declare.

    After `seconds` no other file is read, and all renames are as if nobody had looked.
    """
    end = time.monotonic() + seconds
    found: dict[int, list[Declaration]] = {id(rule): [] for one in rules for rule in one.rules if _is_wanted(rule)}
    wanted = [rule for one in rules for rule in one.rules if id(rule) in found]
    crates = set[str]()
    for path, text in texts_of(targets) if wanted else ():
        if time.monotonic() > end:
            return rules
        language = language_for("", path)
        crates.update(externs(path, text, language.id))
        here = [
            rule
            for rule in wanted
            if isinstance(rule.task, Rename)
            and rule.task.sort != SORT
            and fits_language(rule, language)
            and rule.words[0] in text
        ]
        syntax = parse(text.encode("utf-8", "surrogatepass"), language) if here else None
        if syntax is None:
            continue
        for rule in here:
            declared = names_of(syntax).declared(rule.words[0]).values()
            found[id(rule)] += {id(one): one for one in declared}.values()
    return [
        attrs.evolve(
            one,
            rules=tuple(
                _settled(_of_crate(rule, targets), found[id(rule)], crates) if id(rule) in found else rule
                for rule in one.rules
            ),
        )
        for one in rules
    ]


def _is_wanted(rule: Rule) -> bool:
    return isinstance(rule.task, Rename) and not rule.task.is_found and not rule.task.is_of_file


def _of_crate(rule: Rule, targets: Sequence[Target]) -> Rule:
    """Return a rule that renames a global of Rust with the crate that it is of."""
    rename = rule.task
    if not isinstance(rename, Rename) or rename.sort != "global" or rule.language != "rust":
        return rule
    example = next((one for one in targets if is_same_file(one.path, rule.path)), None)
    if example is None:
        return rule
    declared = Declared(rule.language, example.path, rule.words[0]).located(example.folder)
    return attrs.evolve(rule, task=attrs.evolve(rename, owner=declared.package))


def _settled(rule: Rule, declared: Sequence[Declaration], crates: Collection[str]) -> Rule:
    """Return a rule that knows the kin and the rivals of its declaration, or the crates that others declare."""
    rename = rule.task
    assert isinstance(rename, Rename)
    if rename.sort == SORT:
        return attrs.evolve(rule, task=attrs.evolve(rename, rivals=tuple(sorted(crates))))
    if rename.sort != "member":
        # An import says which file a name is of, and a fixture of a nearer file hides that of a farther one.
        is_apart = traits_of(rule.language).names_all or rename.sort == "fixture"
        others = [one for one in declared if one.sort == "global" and not is_prototype(one)]
        return attrs.evolve(
            rule, task=attrs.evolve(rename, rivals=("another file",) if others and not is_apart else ())
        )
    members = [one for one in declared if one.sort == "member"]
    if traits_of(rule.language).fields_apart:
        members = [one for one in members if one.is_function == rename.is_function]
    if traits_of(rule.language).bare_fields and not rename.is_function:
        hidden = tuple(sorted({one.owner for one in members} - rename.family))  # a field hides that of a base
        return attrs.evolve(rule, task=attrs.evolve(rename, rivals=hidden))
    family, size = _joined(rename, rename.family, members), 0
    while len(family) > size:
        size, family = len(family), _joined(rename, family, members)
    rivals = tuple(sorted({one.owner for one in members if not one.bases & family} - family))
    return attrs.evolve(rule, task=attrs.evolve(rename, family=family, rivals=rivals))


def _joined(rename: Rename, family: frozenset[str], members: Sequence[Declaration]) -> frozenset[str]:
    """Return the types of a family, with those that inherit the member from one of them, or give it to one."""
    bases = rename.bases.union(*(one.bases for one in members if one.owner in family))
    return family | {one.owner for one in members if one.owner and (one.bases & family or one.owner in bases)}
