"""Rules from examples: texts before and after an edit that a person made."""

import hashlib
from collections.abc import Iterable, Sequence

import attrs

from lsp_server.languages.language import Language
from lsp_server.refactor.change.difference import Change, Difference, difference
from lsp_server.refactor.change.free_names import Brought, free_names, may_be_elsewhere, names_brought, new_names
from lsp_server.refactor.change.generalise import Sides, generalise, is_other_literal, is_prose
from lsp_server.refactor.change.import_roots import root_rule_of_code
from lsp_server.refactor.change.overrides import override_rules
from lsp_server.refactor.change.sort import sort_of
from lsp_server.refactor.change.variables import spread_value
from lsp_server.refactor.code.bindings import Scopes, import_edit, imports_of, package_import
from lsp_server.refactor.code.grammar import is_name, root_level
from lsp_server.refactor.code.imports import Import, ImportEdit
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax, indent_unit
from lsp_server.refactor.edit.checks import hidden_names
from lsp_server.refactor.edit.layout import changed_ending
from lsp_server.refactor.learn.example import Example, NoRule, parsed
from lsp_server.refactor.learn.import_rules import ImportRules, import_rules, joined_rules
from lsp_server.refactor.learn.insertions import Insertion, insertion_of
from lsp_server.refactor.learn.learned import Learned, put, swapped
from lsp_server.refactor.learn.renames import Renames, import_renames, qualified, renames_of
from lsp_server.refactor.learn.wide import covers, sure_and_wide, widest
from lsp_server.refactor.places.doubts import assumed_names, in_annotation, is_syntax_alone
from lsp_server.refactor.places.drops import drops_used, with_followers
from lsp_server.refactor.places.jumps import moved_jumps
from lsp_server.refactor.places.messages import named_around
from lsp_server.refactor.places.owners import owner_of
from lsp_server.refactor.places.positions import position_of_example, position_of_modifier, role_in_tests
from lsp_server.refactor.places.receivers import receiver_types, receivers_of
from lsp_server.refactor.places.surroundings import needs_of, uses_of
from lsp_server.refactor.rules.matching import Match, match_at, matches
from lsp_server.refactor.rules.pattern import (
    ENOUGH,
    Hole,
    as_pattern,
    is_constant,
    items,
    texts_of,
    variables,
    weight,
)
from lsp_server.refactor.rules.rule import (
    Allowed,
    Edges,
    Name,
    Own,
    Rule,
    RuleSet,
    Surroundings,
    Values,
    has_same_sides,
)
from lsp_server.refactor.rules.task import Spread
from lsp_server.refactor.rules.values import seen_of

_MOST_INSERTIONS = 2
_ONLY_ADDED = "statements that are only added say nothing of where else they belong"
_EQUAL = "both sides of the example are equal"
_NO_CODE = "only comments or white space changed"
_NO_OTHERS = "what changed says nothing of other places"
_NOTHING = Own("", ())
_NO_IMPORTS = ImportRules()
_NO_RENAMES = Renames()


@attrs.frozen(eq=False)
class Lesson:
    """What one example says. `insertions` counts statements that it only adds, `placed` those of them that say where
    else they belong; `small` the changes that say too little, `broken` those with a syntax error in them, and `prose`
    those of texts of several words.

    `alike` counts the changes that were widened to one rule with others of the example. `wide` has the widest forms of
    the small changes, and `renames` the declarations that got another name. A lesson without changes may still have
    imports: `import_rules` if nothing else changed.
    """

    learned: tuple[Learned, ...]
    imports: ImportEdit
    insertions: int
    small: int
    alike: int = 0
    own: Own = _NOTHING
    broken: int = 0
    prose: int = 0
    wide: tuple[Rule, ...] = ()
    import_rules: ImportRules = _NO_IMPORTS
    renames: Renames = _NO_RENAMES
    placed: int = 0

    @property
    def reasons(self) -> list[str]:
        """Why some changes gave no rule."""
        unplaced = self.insertions > self.placed
        reasons = [_ONLY_ADDED] if unplaced else []
        reasons += ["a change has a syntax error in it"] if self.broken else []
        reasons += ["a changed text of several words is no example; --from and --to take it"] if self.prose else []
        return reasons + ["a change is too small to say where else it belongs"] * self.small


def lesson(before: Syntax, after: Syntax, is_code: bool = False, *, has_widest: bool = False, path: str = "") -> Lesson:
    """Return what an example says. `is_code` says that it is no whole text, but what a person gave to look for.

    Declarations of the file `path` that got another name have rules of their own. With `has_widest` the others have
    their widest forms.
    """
    found = difference(before, after)
    has_errors = before.errors + after.errors > 0
    whole = [change for change in found.changes if not (has_errors and _is_broken(change))]
    changes = whole if is_code else [change for change in whole if not is_prose(change)]
    prose, renames, imports = len(whole) - len(changes), _NO_RENAMES, import_edit(before, after)
    if not is_code:
        if not found.insertions:
            renames = import_renames(imports.replaced, changes, before, after, path)
        renames = renames if renames.rules else renames_of(changes, before, after, path)
        moved = [(one, rule) for one in changes if (rule := _moved_root(one, before.language.id, path)) is not None]
        if moved:
            said = (*renames.changes, *(one for one, _ in moved))
            renames = attrs.evolve(renames, rules=(*renames.rules, moved[0][1]), changes=said)
        changes = [change for change in changes if not any(change is one for one in renames.changes)]
        renames = attrs.evolve(renames, rules=(*renames.rules, *qualified(changes, before, after, path)))
    ones = [_learn_change(change, before, after, is_code, has_widest, path) for change in changes]
    added = _learn_insertions(found, before, after, path) if not (is_code or found.changes) else []
    learned: list[Learned] = []
    for one in (*ones, *added):
        if one is not None:
            put(learned, one)
    small = ones.count(None)
    alone = [change for change, one in zip(changes, ones, strict=True) if one is None and has_widest]
    wide = tuple(rule for change in alone if (rule := _wide_rule(change, before, after, path)) is not None)
    if has_widest:
        wide += tuple(rule for one in changes for rule in override_rules(one, before.language.id, path))
    alike = len(ones) + len(added) - small - len(learned)
    broken = len(found.changes) - len(whole)
    afters = [*(change.after for change in found.changes if change.after), *(one.after for one in added)]
    spans = tuple((nodes[0].start, nodes[-1].end) for nodes in afters)
    own = Own(hashlib.sha256(after.data).hexdigest(), spans)
    rules = _NO_IMPORTS
    if not (is_code or found.changes or found.insertions):
        rules = import_rules(before, after, {old.bound for old, _ in renames.imports}, path)
    return Lesson(
        tuple(learned), imports, found.insertions, small, alike, own, broken, prose, wide, rules, renames, len(added)
    )


def _moved_root(change: Change, language: str, path: str) -> Rule | None:
    is_one = len(change.before) == len(change.after) == 1
    return root_rule_of_code(change.before[0], change.after[0], language, path) if is_one else None


def _is_broken(change: Change) -> bool:
    """Return whether a syntax error is in a change, or right around it."""
    nodes = [*change.before, *change.after]
    around = {node.parent.kind for node in nodes if node.parent is not None and node.parent.parent is not None}
    return "ERROR" in around or any(
        one.kind == "ERROR" or one.start == one.end for node in nodes for one in node.walk()
    )


def learn(examples: Iterable[Example], language: Language) -> RuleSet:
    """Return the rules of examples. Changes of one sort make one rule; the others make rules of their own.

    Raises NoRule if there is no rule in any of them.
    """
    lessons: list[Lesson] = []
    reasons: list[str] = []
    nothing = _EQUAL
    for example in examples:
        before, after = parsed(example, language)
        if before.data != after.data:
            nothing = _NO_CODE if same(before.root, after.root) else _NO_OTHERS
        one = lesson(before, after, has_widest=True, path=example.path)
        if after.errors > before.errors or ((before.errors or after.errors) and not (one.learned or one.renames.rules)):
            reasons.append(f"the example has syntax errors in {language.id}")
        else:
            lessons.append(one)
    return learned_set(lessons, language, reasons, nothing)


def learned_set(
    lessons: Sequence[Lesson], language: Language, reasons: Sequence[str] = (), nothing: str = _EQUAL
) -> RuleSet:
    """Return the rules of lessons. `reasons` say why other examples gave none. Raises NoRule, else with `nothing`."""
    learned: list[Learned] = []
    imports = ImportEdit()
    said = list(reasons)
    for one in lessons:
        imports = imports.joined(one.imports.without(one.renames.imports))
        said += one.reasons
        for each in one.learned:
            put(learned, each)
    learned, reason = _without_insertions(learned, lessons)
    said += [reason] if reason else []
    widest_forms = [one.wide for one in learned if one.wide is not None and not has_same_sides(one.wide, one.rule)]
    sure, wide = sure_and_wide([*widest_forms, *(rule for one in lessons for rule in one.wide)])
    renames = [rule for one in lessons for rule in one.renames.rules]
    if not learned and not wide and not sure:
        joint = joined_rules([one.import_rules for one in lessons])
        sure, wide = joint.sure, joint.wide
        imports = ImportEdit() if sure else imports
    if not learned and not wide and not sure and not renames:
        if not said and (imports.added or imports.removed):
            raise NoRule("no rule: only imports changed; change a place that uses them too")
        reason = said[0] if said else nothing
        raise NoRule(f"no rule: {reason}; give an example of a changed call, expression or statement")
    learned = [*learned, *(attrs.evolve(one, rule=rule, wide=None) for one in learned for rule in swapped(one.rule))]
    covered = [one for one in learned if one.wide is not None and covers(one.wide, one.rule)]
    rules = with_followers((*(one.rule for one in learned if one not in covered), *sure, *renames))
    return RuleSet(language.id, rules, imports, tuple(dict.fromkeys(said)), tuple(one.own for one in lessons), wide)


def _without_insertions(learned: list[Learned], lessons: Sequence[Lesson]) -> tuple[list[Learned], str]:
    """Return rules without those that add statements, where the examples do something else; and a line that says so.

    More than two sorts of added statements are no edit that was made in many places, unless they are in several.
    """
    others = [one for one in learned if one.sort != "insertion"]
    if others or any(one.renames.rules or one.small or one.broken or one.prose for one in lessons):
        return others, _ONLY_ADDED if len(others) < len(learned) else ""
    kept = [one for one in learned if one.examples > 1] if len(learned) > _MOST_INSERTIONS else learned
    return kept, _ONLY_ADDED if len(kept) < len(learned) else ""


def _learn_insertions(found: Difference, before: Syntax, after: Syntax, path: str) -> list[Learned]:
    """Return the rules of the statements that an example adds beside others, where it changes nothing else."""
    learned: list[Learned] = []
    scopes, new = Scopes(before, imports_of(before)), Scopes(after, imports_of(after))
    for one in (insertion_of(added, scopes, new) for added in found.added):
        if one is None:
            continue
        rule = _learn_sides(one.change, one.sides, before, after, scopes, False, False, path)
        if rule is not None:
            learned.append(_inserting(rule, one, before))
    return learned


def _inserting(learned: Learned, one: Insertion, before: Syntax) -> Learned:
    """Return the rule of an insertion: it adds lines, and leaves what is beside them as it is."""
    rule = attrs.evolve(
        learned.rule,
        task=one.inserts,
        edges=attrs.evolve(learned.rule.edges, indent=one.indent),
        around=attrs.evolve(learned.rule.around, needs=one.needs),
        is_syntax=learned.rule.is_syntax or one.is_syntax,
    )
    if len(rule.pattern) > 1:
        first = one.change.before[0]
        match = next((each for each in matches(rule.pattern, before) if each.nodes[0] is first), None)
        rule = attrs.evolve(rule, values=attrs.evolve(rule.values, receivers=receivers_of(match)))
    return attrs.evolve(learned, rule=rule, sort="insertion", after=one.change.after)


def _learn_change(
    change: Change, before: Syntax, after: Syntax, is_code: bool, has_widest: bool, path: str
) -> Learned | None:
    scopes = Scopes(before, imports_of(before))
    sides = generalise(change, before, after, scopes)
    return _learn_sides(change, sides, before, after, scopes, is_code, has_widest, path)


def _learn_sides(
    change: Change,
    sides: Sides,
    before: Syntax,
    after: Syntax,
    scopes: Scopes,
    is_code: bool,
    has_widest: bool,
    path: str,
) -> Learned | None:
    if not sides.pattern or not variables(sides.template) <= variables(sides.pattern):
        return None
    if weight(sides.pattern) < ENOUGH and not is_constant(sides.pattern):
        return None
    if not is_code and is_other_literal(change) and len(list(items(sides.pattern))) == 1:
        return None  # a number alone, as in YAML, is in many places
    brought = names_brought(change.after, sides, after)
    names = free_names(change.before, sides, scopes)
    rule = rule_of(sides, change.before, change.after, before, after, names, brought)
    match = match_at(rule.pattern[0], change.before[0]) if len(rule.pattern) == 1 else None
    unread = tuple(name for name in rule.new_names.binds if _count(name, change.after) == 1)
    rule = attrs.evolve(
        rule,
        path=path,
        new_names=attrs.evolve(rule.new_names, follows=_follows(rule, before)),
        allowed=_allowed(rule, match, scopes) if match is not None else Allowed(),
        around=attrs.evolve(rule.around, uses=uses_of(change.before, change.after, sides.pattern)),
        task=Spread(unread) if spread_value(change) is not None else "",
        edges=attrs.evolve(rule.edges, ending=changed_ending(change.before, before, change.after, after)),
        owner=owner_of(rule, change.before, change.after, after),
    )
    if not is_code:
        old, assumed = change.before[0], tuple(assumed_names(change, sides, brought, after))
        position, named = position_of_example(old, change.after), named_around(sides.pattern, sides.template, old)
        rule = attrs.evolve(
            rule,
            is_syntax=is_syntax_alone(sides.pattern, sides.template),
            values=Values(seen_of(match), receivers_of(match) | receiver_types(match, before)),
            new_names=attrs.evolve(rule.new_names, assumed=assumed),
            around=attrs.evolve(rule.around, position=position, in_annotation=in_annotation(old), named=named),
        )
    unknown = tuple(name for name, leaf, is_bound in brought if not is_bound and not may_be_elsewhere(leaf, before))
    wide = _wide_rule(change, before, after, path) if has_widest else None
    return Learned(rule, sort_of(change, scopes), change.before if match is not None else (), unknown, wide)


def _allowed(rule: Rule, match: Match, scopes: Scopes) -> Allowed:
    hidden = hidden_names(rule.new_names.binds, match, scopes)
    return Allowed(moved_jumps(rule, match), hidden, drops_used(rule, match, scopes.syntax))


def _follows(rule: Rule, before: Syntax) -> tuple[tuple[Import, Import], ...]:
    """Return the imports of classes of the example's package that an edit takes away, each with one that it brings."""
    kept = set(texts_of(rule.template))
    gone = [name.text for name in rule.names if name.binding == "unknown" and name.text not in kept]
    old, new = ([package_import(name, before) for name in some] for some in (gone, rule.new_names.unbound))
    return tuple((one, other) for one in old for other in new if one is not None and other is not None)


def _wide_rule(change: Change, before: Syntax, after: Syntax, path: str) -> Rule | None:
    """Return the widest form of the rule of a change; None if it has none."""
    is_small = spread_value(change) is not None or is_other_literal(change)
    found = None if is_small else widest(change, before, after)
    if found is None:
        return None
    names = free_names((found.before,), found.sides, Scopes(before, imports_of(before)))
    brought = names_brought((found.after,), found.sides, after)
    wide = rule_of(found.sides, (found.before,), (found.after,), before, after, names, brought)
    uses = uses_of((found.before,), (found.after,), found.sides.pattern)
    position = position_of_modifier(found.before) or role_in_tests(found.before, before)
    return attrs.evolve(
        wide,
        around=attrs.evolve(wide.around, uses=uses, position=position),
        wide=f"only {found.words} is as in the example",
        path=path,
        values=Values(names=_names_in(match_at(found.sides.pattern[0], found.before))),
    )


def _names_in(match: Match | None) -> tuple[str, ...]:
    """Return the variables that are a name alone."""
    nodes = (bound.nodes[0] for bound in match.bounds if isinstance(bound.item, Hole)) if match is not None else ()
    return tuple(node.text for node in nodes if is_name(node))


def rule_of(
    sides: Sides,
    old: Sequence[Node],
    new: Sequence[Node],
    before: Syntax,
    after: Syntax,
    names: tuple[Name, ...],
    brought: Sequence[Brought],
) -> Rule:
    """Return the rule of two sides, which were made from the nodes `old` and `new`. `brought` is of names_brought."""
    return Rule(
        before.language.id,
        sides.pattern,
        sides.template,
        names=names,
        new_names=new_names(brought, new, sides, before, after),
        edges=Edges(
            after.line_indent(new[0].start) if new else "",
            indent_unit(after, after.language),
            before.tail(old[-1]) if old else "",
            after.tail(new[-1]) if new else "",
            root_level(new),
            root_level(old),
        ),
        repeats=_repeats(old, new, sides, after),
        around=Surroundings(needs_of(old, new, before.language.id)),
    )


def _count(name: str, nodes: Sequence[Node]) -> int:
    return sum(leaf.text == name for node in nodes for leaf in node.leaves())


def _repeats(old: Sequence[Node], new: Sequence[Node], sides: Sides, after: Syntax) -> bool:
    """Return whether the pattern fits the example after its edit. Where it only lost something it does not."""
    if len(sides.pattern) != 1:
        inside = (new[0].start <= one.start and one.end <= new[-1].end for one in matches(sides.pattern, after) if new)
        return len(new) > len(old) or any(inside)
    if len(sides.template) == 1 and any(match_at(as_pattern(sides.template[0]), node) for node in old):
        return False  # arguments that only changed places: nothing tells a place that has the edit
    return any(match_at(sides.pattern[0], node) for top in new for node in top.walk())
