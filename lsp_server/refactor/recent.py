"""What the user is doing now: the rule of the newest edit of a document, widened by older ones that are alike.

All functions take tens of milliseconds for a long file. Call them in a Worker, never on the event loop.
"""

import functools
from collections.abc import Collection, Sequence
from pathlib import PurePath

import attrs
import tree_sitter

from engine.reading import read_text
from lsp_server.documents.edits import MOST_PARSED, RecentEdit
from lsp_server.languages.language import Language, errors
from lsp_server.languages.registry import language_for
from lsp_server.refactor.change.sort import Sort
from lsp_server.refactor.code.bindings import imports_of
from lsp_server.refactor.code.imports import ImportEdit
from lsp_server.refactor.code.syntax import PARSE_SECONDS, Syntax, syntax_of
from lsp_server.refactor.edit.file_edit import FileEdit, Span, digest_of
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.learn import Lesson, lesson
from lsp_server.refactor.learn.learned import Learned, put
from lsp_server.refactor.learn.notation import described, with_contexts
from lsp_server.refactor.learn.wide import sure_and_wide
from lsp_server.refactor.pending import Places, by_place
from lsp_server.refactor.places.doubts import SURE
from lsp_server.refactor.rules.pattern import names_in
from lsp_server.refactor.rules.rule import Own, Rule, RuleSet, has_same_sides
from lsp_server.refactor.rules.task import Inserts, Rename
from lsp_server.refactor.search import Found, Target

_MAX_RULES = 2
_ONLY_REPEATED: frozenset[Sort] = frozenset({"value", "removal", "insertion"})
"""Such edits are made at single places all the time. Two that are alike are an example."""


@attrs.frozen
class RecentRules:
    """The rules of what the user is doing, their `name` as code, and how many edits they are made from.

    `wide` are the widest forms of one edit, for a list of what it may be meant for too. `is_telling` says that the edit
    looks like one that belongs elsewhere too, so that it may be offered unasked.
    """

    rules: RuleSet
    name: str
    examples: int
    is_telling: bool
    wide: tuple[Rule, ...] = ()

    @property
    def is_rename(self) -> bool:
        """Whether the edit gave declarations other names: the places are their uses."""
        return any(isinstance(rule.task, Rename) for rule in self.rules.rules)

    @property
    def may_go_on(self) -> bool:
        """Whether its last word is hardly known to be whole: a new name, or one that nothing in the file binds."""
        return self.is_rename or any(rule.new_names.unbound for rule in self.rules.rules)

    @property
    def only_adds(self) -> bool:
        """Whether the edit only added statements beside others, as all writing does."""
        return all(isinstance(rule.task, Inserts) for rule in self.rules.rules)

    @property
    def is_of_file(self) -> bool:
        """Whether no other file can have a place."""
        return all(isinstance(rule.task, Rename) and rule.task.is_of_file for rule in self.rules.rules)


@attrs.frozen
class RecentPlaces:
    """The rules of recent edits, and where they fit in the text after the last one.

    `found` has the places as blocks to choose from. `one_by_one` has those of a telling rule, each to be taken alone.
    """

    recent: RecentRules
    found: Found
    one_by_one: Places = attrs.field(factory=Places)


def recent_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> RecentPlaces | None:
    """Return the rules of the newest edit, and where it belongs too in the text after it. None if there is no rule.

    A statement that was added once gives none if no other place of the file may need it.
    """
    text = edits[-1].after if edits else ""
    recent = _rules_of(edits, text, language_id, path)
    if recent is None:
        return None
    if recent.is_rename:
        found = found_in(recent.rules, text, language_id, path)
        is_sure = not found.edit.doubtful
        sure = by_place(found.edit, text) if is_sure else places_in(recent.rules, text, language_id, path)
        return RecentPlaces(recent, found, sure)
    edit = _rewritten(recent.rules, edits, language_id, path)
    found = _without_done(recent.rules, edit, edits, language_id, path)
    if not recent.is_telling:
        return RecentPlaces(recent, found) if found.blocks or not recent.only_adds else None
    done = touched_parts(edits)
    # What is around the user's edit is not edited, and what is beside it in there is.
    whole = () if recent.only_adds else edit.places
    around = {one for one in whole if any(one.start < start and end < one.end for start, end in done)}
    if edit.doubtful or around:
        left = {*edit.places} - {one.span for one in edit.doubtful} - around
        edit = _rewritten(recent.rules, edits, language_id, path, left)
    return RecentPlaces(recent, found, _one_by_one(edit, edits))


def former_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> RecentPlaces | None:
    """Return the same for the newest edit before the last one that gives rules."""
    for count in range(len(edits) - 1, 0, -1):
        recent = _rules_of(edits[:count], edits[-1].after, language_id, path)
        if recent is not None:
            if recent.is_rename:
                return RecentPlaces(recent, found_in(recent.rules, edits[-1].after, language_id, path))
            edit = _rewritten(recent.rules, edits, language_id, path)
            return RecentPlaces(recent, _without_done(recent.rules, edit, edits, language_id, path))
    return None


def _rules_of(edits: Sequence[RecentEdit], text: str, language_id: str, path: str) -> RecentRules | None:
    """Return the rules of the newest of some edits, to be applied to a text that later edits may have changed."""
    language = language_for(language_id, path)
    return (
        _renames(edits, text, language, path)
        or _recent_rules(edits, language, path)
        or _import_rules(edits, language, path)
    )


def _renames(edits: Sequence[RecentEdit], text: str, language: Language, path: str) -> RecentRules | None:
    """Return the rules of the declarations that the newest edit renamed; None if it did anything else.

    Edits before it that only put the same name in the place of the same other one belong to it: the user may have
    begun with a use. So does a use that is renamed after its declaration.
    """
    words, first, examples = frozenset[tuple[str, str]](), text, 0
    for edit in reversed(edits):
        one = _lesson(edit.before, edit.after, language, path)
        renamed = _renamed(one) if one is not None else frozenset()
        if not renamed or (words and not words & renamed):
            break
        words, first, examples = words | renamed, edit.before, examples + 1
    whole = _lesson(first, text, language, path) if words else None
    rules = tuple(rule for rule in whole.renames.rules if rule.words in words) if whole is not None else ()
    if not rules:
        return None
    return RecentRules(RuleSet(language.id, rules), "; ".join(map(described, rules)), examples, is_telling=True)


def _renamed(one: Lesson) -> frozenset[tuple[str, str]]:
    """Return the old and the new names of an edit that put names in the place of others, and did nothing else."""
    has_imports = one.imports.without(one.renames.imports) != ImportEdit()
    others = one.insertions or one.broken or one.prose or has_imports
    return frozenset() if others else one.renames.words


def _rewritten(
    rules: RuleSet, edits: Sequence[RecentEdit], language_id: str, path: str, only: Collection[Span] | None = None
) -> FileEdit:
    return rewrite(rules, path, edits[-1].after, language_for(language_id, path), only)


def _one_by_one(edit: FileEdit, edits: Sequence[RecentEdit]) -> Places:
    found, done = by_place(edit, edits[-1].after), touched_parts(edits)
    # What is put in where an edit ends touches that edit.
    places = [one for one in found.places if not any(one.start <= end and start <= one.end for start, end in done)]
    return attrs.evolve(found, places=tuple(places))


def _without_done(rules: RuleSet, edit: FileEdit, edits: Sequence[RecentEdit], language_id: str, path: str) -> Found:
    """Return the places of an edit, without those that the user has edited."""
    done = touched_parts(edits)
    left = {one for one in edit.places if not any(one.start < end and start < one.end for start, end in done)}
    if len(left) < len(edit.places):
        # Where arguments changed places, nothing in the code tells that it has the edit already.
        edit = _rewritten(rules, edits, language_id, path, left)
    return Found.of(Target("", path), edits[-1].after, edit)


def found_in(rules: RuleSet, text: str, language_id: str, path: str) -> Found:
    """Return where rules fit in the text of a document, as blocks."""
    return Found.of(Target("", path), text, rewrite(rules, path, text, language_for(language_id, path)))


def places_in(rules: RuleSet, text: str, language_id: str, path: str) -> Places:
    """Return where rules surely fit in a text, place by place."""
    return by_place(rewrite(rules, path, text, language_for(language_id, path), beside=SURE), text)


def places_of_files(rules: RuleSet, targets: Sequence[Target]) -> list[tuple[int, str, Places]]:
    """Return those of the files in which rules fit: their numbers, texts and places."""
    found: list[tuple[int, str, Places]] = []
    for number, target in enumerate(targets):
        text = target.text if target.text is not None else read_text(target.folder, target.path)
        if text is not None and (places := places_in(rules, text, "", target.path)).places:
            found.append((number, text, places))
    return found


def _import_rules(edits: Sequence[RecentEdit], language: Language, path: str) -> RecentRules | None:
    """Return the rules of the newest edit if it changed imports alone. Where it only took some away there are none."""
    one = _lesson(edits[-1].before, edits[-1].after, language, path) if edits else None
    rules = tuple(rule for rule in one.import_rules.sure if rule.template) if one is not None else ()
    if one is None or not rules:
        return None
    name = "; ".join(map(described, rules))
    return RecentRules(RuleSet(language.id, rules, own=(one.own,)), name, 1, is_telling=True)


def _recent_rules(edits: Sequence[RecentEdit], language: Language, path: str) -> RecentRules | None:
    """Return the rules of the newest edit, widened by older edits that are alike. `edits` has the newest last.

    There is none while the edit is unfinished, and none for added statements that do not say where else they belong.
    Imports that an edit before or after it changed come along.
    """
    steps = _steps(edits)
    found = [_lesson(edit.before, edit.after, language, path) for edit in steps]
    if not found or found[-1] is None:
        return None
    taught = [(number, one) for number, one in enumerate(found) if one is not None]
    lessons = [one for _, one in taught]
    later = ImportEdit()
    while lessons and _is_of_imports(lessons[-1]):
        later = later.joined(lessons.pop().imports)
    newest = lessons[-1] if lessons else None
    if newest is None or newest.small or not 1 <= len(newest.learned) <= _MAX_RULES:
        return None
    if newest.insertions > newest.placed:
        return None
    learned, examples, imports = list(lessons[-1].learned), 1 + lessons[-1].alike, later
    for one in reversed(lessons):
        imports = imports.joined(one.imports)
        for each in one.learned:
            widened = list(learned)
            put(widened, each)
            if one is not lessons[-1] and len(widened) == len(learned):
                learned, examples = widened, examples + 1
    sorts = {each.sort for each in learned}
    is_single = examples == 1 and (bool(sorts & _ONLY_REPEATED) or _deletes_lines(edits[-1]))
    is_telling = not is_single and "rename" not in sorts and not any(each.unknown for each in learned)
    sure, wide = _sure_and_wide(learned, lessons)
    rules = (*(each.rule for each in learned), *sure)
    own = _own_imports(learned, imports, _syntax(edits[-1].after, language))
    if later != ImportEdit() and not {*later.added, *later.removed} & {*own.added, *own.removed}:
        return None  # the newest edit has nothing to do with the one before
    example = taught[len(lessons) - 1][0]
    spans = _moved(newest.own.spans, steps[example + 1 :])
    digest = digest_of(edits[-1].after.replace("\r\n", "\n"))
    all_rules = RuleSet(language.id, rules, own, own=(Own(digest, spans),))
    names = "; ".join(map(described, rules))
    return RecentRules(with_contexts(all_rules, language), names, examples, is_telling, wide if examples == 1 else ())


def _sure_and_wide(learned: Sequence[Learned], lessons: Sequence[Lesson]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the widest forms of what the newest lesson says that are sure, also by an older one, and the others."""
    widest = [each.wide for each in learned if each.wide is not None and not has_same_sides(each.wide, each.rule)]
    widest += lessons[-1].wide
    older = [each.wide for one in lessons[:-1] for each in one.learned if each.wide is not None]
    return sure_and_wide([*widest, *(one for one in older if any(has_same_sides(one, other) for other in widest))])


def _moved(spans: Sequence[tuple[int, int]], later: Sequence[RecentEdit]) -> tuple[tuple[int, int], ...]:
    """Return spans of a text, in bytes, in the text after later edits."""
    for edit in later:
        start = len(_bytes(edit.before[: edit.start]))
        moved = len(_bytes(edit.after[edit.start : edit.end])) - len(_bytes(edit.before[edit.start : edit.old_end]))
        spans = [(low + moved, high + moved) if low > start else (low, high) for low, high in spans]
    return tuple(spans)


def touched_parts(edits: Sequence[RecentEdit]) -> list[tuple[int, int]]:
    """Return the parts of the text after the last edit that the edits touched. Nothing there is to be edited again.

    Lines that were added before the last example are as old as all others.
    """
    parts: list[tuple[int, int]] = []
    examples = [number for number, edit in enumerate(edits) if edit.may_be_example]
    for number, edit in enumerate(edits):
        moved = edit.end - edit.old_end
        parts = [(start + moved, end + moved) if start >= edit.old_end else (start, end) for start, end in parts]
        if edit.may_be_example or not examples or number > examples[-1]:
            parts.append((edit.start, edit.end))
    return parts


def _steps(edits: Sequence[RecentEdit]) -> list[RecentEdit]:
    """Return the edits; one that went on after another change, such as an import, is one again."""
    steps: list[RecentEdit] = list(edits)
    if len(steps) < 3:
        return steps
    first, between, last = steps[-3:]
    # An editor that adds an import while a name is typed changes a place far away.
    if between.old_end > first.start or first.after != between.before or between.after != last.before:
        return steps
    moved = between.end - between.old_end
    if first.start + moved <= last.old_end and last.start <= first.end + moved:
        return [*steps[:-3], RecentEdit(first.before, last.after, 0, 0, 0, last.serial)]
    return steps


def _deletes_lines(edit: RecentEdit) -> bool:
    return "\n" in edit.before[edit.start : edit.old_end] and not edit.after[edit.start : edit.end].strip()


def _is_of_imports(one: Lesson) -> bool:
    changes_imports = bool(one.imports.added or one.imports.removed)
    return changes_imports and not (one.learned or one.insertions or one.small)


def _own_imports(learned: Sequence[Learned], imports: ImportEdit, after: Syntax) -> ImportEdit:
    """Return the imports that the rules need or need no longer. Other files may lack one that this file has."""
    old = {text for each in learned for text in names_in(each.rule.pattern)}
    new = {text for each in learned for text in names_in(each.rule.template)}
    there = [one for one in imports_of(after).all if one.bound in new - old and one not in imports.added]
    added = [one for one in imports.added if one.bound in new]
    removed = [one for one in imports.removed if one.bound in old]
    replaced = [pair for pair in imports.replaced if pair[0] in removed and pair[1] in added]
    return ImportEdit(tuple(dict.fromkeys([*added, *there])), tuple(removed), tuple(replaced))


@functools.lru_cache(16)
def _lesson(before: str, after: str, language: Language, path: str) -> Lesson | None:
    """Return what an edit of a file says; None if one of its texts cannot be parsed, or the edit adds syntax errors."""
    if max(len(before), len(after)) > MOST_PARSED:
        return None
    old_tree, new_tree = _tree(before, language), _tree(after, language)
    # Most texts are unfinished lines, and our own trees of those would be built for nothing.
    if old_tree is None or new_tree is None or len(errors(new_tree.root_node)) > len(errors(old_tree.root_node)):
        return None
    try:
        return lesson(
            _syntax(before, language), _syntax(after, language), has_widest=True, path=PurePath(path).as_posix()
        )
    except RecursionError:  # generated code can be nested deeper than Python's stack
        return None


@functools.lru_cache(4)
def _tree(text: str, language: Language) -> tree_sitter.Tree | None:
    return language.parse(_bytes(text), None, PARSE_SECONDS)


@functools.lru_cache(3)
def _syntax(text: str, language: Language) -> Syntax:
    """Return the syntax of a text that _tree can parse. An edit begins where the one before it ended."""
    tree = _tree(text, language)
    assert tree is not None
    return syntax_of(tree, _bytes(text), language)


def _bytes(text: str) -> bytes:
    return text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
