"""What the user is doing now: the rule of the newest edit of a document, widened by older ones that are alike.

All functions take tens of milliseconds for a long file. Call them in a Worker, never on the event loop.
"""

import functools
import re
from collections.abc import Collection, Sequence

import attrs
import tree_sitter

from lsp_server.documents.edits import RecentEdit
from lsp_server.languages.language import Language
from lsp_server.languages.parsing import errors
from lsp_server.languages.registry import language_for
from lsp_server.refactor.bindings import imports_of
from lsp_server.refactor.difference import Sort
from lsp_server.refactor.file_edit import FileEdit, Places, Span, by_place
from lsp_server.refactor.learn import Learned, Lesson, lesson, put
from lsp_server.refactor.notation import described, with_contexts
from lsp_server.refactor.pattern import ImportEdit, Leaf, Pattern, RuleSet, items
from lsp_server.refactor.rewrite import rewrite
from lsp_server.refactor.search import Found, Target
from lsp_server.refactor.syntax import PARSE_SECONDS, Syntax, syntax_of
from lsp_server.workspace.reading import read_text

MAX_CHARS = 200_000
_MAX_RULES = 2
_MAX_LINES = 20
_WORD_CHAR = re.compile(r"\w")
_ONLY_REPEATED: frozenset[Sort] = frozenset({"value", "removal"})
"""Such edits are made at single places all the time. Two that are alike are an example."""


@attrs.frozen
class RecentRules:
    """The rules of what the user is doing, their `name` as code, and how many edits they are made from.

    `is_telling` says that the edit looks like one that belongs elsewhere too, so that it may be offered unasked.
    """

    rules: RuleSet
    name: str
    examples: int
    is_telling: bool


@attrs.frozen
class NextPlaces:
    """Where else the rules fit in the text after the newest edit, place by place."""

    recent: RecentRules
    places: Places


@attrs.frozen
class RepeatedEdit:
    """The rules of recent edits, and the edit that they make of the text after the last one."""

    recent: RecentRules
    edit: FileEdit


def repeated_edit(edits: Sequence[RecentEdit], language_id: str, path: str) -> RepeatedEdit | None:
    """Return the newest edit made in all places of the text after it where it fits. None if the edits give no rule.

    The last ones are kept: after each change several features ask for the same one.
    """
    return _repeated_edit(tuple(edits), language_id, path)


@functools.lru_cache(2)
def _repeated_edit(edits: tuple[RecentEdit, ...], language_id: str, path: str) -> RepeatedEdit | None:
    recent = _recent_rules(edits, language_for(language_id, path))
    return RepeatedEdit(recent, _rewritten(recent.rules, edits, language_id, path)) if recent is not None else None


def _rewritten(
    rules: RuleSet, edits: Sequence[RecentEdit], language_id: str, path: str, only: Collection[Span] | None = None
) -> FileEdit:
    return rewrite(rules, path, edits[-1].after, language_for(language_id, path), only)


def next_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> NextPlaces | None:
    """Return where the newest edit belongs too, in the text after it. None if the edits give no telling rule."""
    repeated = repeated_edit(edits, language_id, path)
    if repeated is None or not repeated.recent.is_telling:
        return None
    found, done = by_place(repeated.edit, edits[-1].after), touched_parts(edits)
    # What is put in where an edit ends touches that edit.
    places = [one for one in found.places if not any(one.start <= end and start <= one.end for start, end in done)]
    return NextPlaces(repeated.recent, attrs.evolve(found, places=tuple(places)))


def recent_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> tuple[RecentRules, Found] | None:
    """Return the rules of the newest edit, and where it belongs too in the text after it. None if there is no rule."""
    repeated = repeated_edit(edits, language_id, path)
    return _without_done(repeated, edits, language_id, path) if repeated is not None else None


def former_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> tuple[RecentRules, Found] | None:
    """Return the same for the newest edit before the last one that gives rules."""
    for count in range(len(edits) - 1, 0, -1):
        repeated = repeated_edit(edits[:count], language_id, path)
        if repeated is not None:
            edit = _rewritten(repeated.recent.rules, edits, language_id, path)
            return _without_done(RepeatedEdit(repeated.recent, edit), edits, language_id, path)
    return None


def _without_done(
    repeated: RepeatedEdit, edits: Sequence[RecentEdit], language_id: str, path: str
) -> tuple[RecentRules, Found]:
    """Return the places of an edit, without those that the user has edited."""
    recent, edit, done = repeated.recent, repeated.edit, touched_parts(edits)
    left = {one for one in edit.places if not any(one.start < end and start < one.end for start, end in done)}
    if len(left) < len(edit.places):
        # Where arguments changed places, nothing in the code tells that it has the edit already.
        edit = _rewritten(recent.rules, edits, language_id, path, left)
    return recent, Found.of(Target("", path), edits[-1].after, edit)


def found_in(rules: RuleSet, text: str, language_id: str, path: str) -> Found:
    """Return where rules fit in the text of a document, as blocks."""
    return Found.of(Target("", path), text, rewrite(rules, path, text, language_for(language_id, path)))


def places_in(rules: RuleSet, text: str, language_id: str, path: str) -> Places:
    """Return where rules fit in a text, place by place."""
    return by_place(rewrite(rules, path, text, language_for(language_id, path)), text)


def places_of_files(rules: RuleSet, targets: Sequence[Target]) -> list[tuple[int, str, Places]]:
    """Return those of the files in which rules fit: their numbers, texts and places."""
    found: list[tuple[int, str, Places]] = []
    for number, target in enumerate(targets):
        text = target.text if target.text is not None else read_text(target.folder, target.path)
        if text is not None and (places := places_in(rules, text, "", target.path)).places:
            found.append((number, text, places))
    return found


def may_be_example(edit: RecentEdit) -> bool:
    """Return whether an edit could be an example, by a look at its lines only: new lines are none."""
    if edit.undone or max(len(edit.before), len(edit.after)) > MAX_CHARS:
        return False
    first = edit.before.rfind("\n", 0, edit.start) + 1
    last = edit.before.find("\n", edit.old_end)
    lines = edit.before[first : last if last >= 0 else len(edit.before)]
    return bool(lines.strip()) and max(lines.count("\n"), edit.after.count("\n", edit.start, edit.end)) < _MAX_LINES


def is_in_progress(edit: RecentEdit, offset: int) -> bool:
    """Return whether the cursor is after a word that the edit wrote, and that may go on: the file has no other such."""
    text = edit.after
    if not edit.start < offset <= edit.end or _WORD_CHAR.match(text, offset):
        return False
    start = offset
    while start and _WORD_CHAR.match(text, start - 1):
        start -= 1
    word = text[start:offset]
    if not word:
        return False
    return word[0].isdigit() or len(re.findall(rf"\b{re.escape(word)}\b", text)) < 2


def _recent_rules(edits: Sequence[RecentEdit], language: Language) -> RecentRules | None:
    """Return the rules of the newest edit, widened by older edits that are alike. `edits` has the newest last.

    There is none while the edit is unfinished, and none for an edit that only adds. Imports that an edit before or
    after it changed come along.
    """
    lessons = [one for edit in _steps(edits) if (one := _lesson(edit.before, edit.after, language)) is not None]
    if not lessons or not edits or _lesson(edits[-1].before, edits[-1].after, language) is None:
        return None
    later = ImportEdit()
    while lessons and _is_of_imports(lessons[-1]):
        later = later.joined(lessons.pop().imports)
    if not lessons or not _is_example(lessons[-1]):
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
    rules = tuple(each.rule for each in learned)
    own = _own_imports(learned, imports, _syntax(edits[-1].after, language))
    if later != ImportEdit() and not {*later.added, *later.removed} & {*own.added, *own.removed}:
        return None  # the newest edit has nothing to do with the one before
    all_rules = with_contexts(RuleSet(language.id, rules, own), language)
    return RecentRules(all_rules, "; ".join(map(described, rules)), examples, is_telling)


def touched_parts(edits: Sequence[RecentEdit]) -> list[tuple[int, int]]:
    """Return the parts of the text after the last edit that the edits touched. Nothing there is to be edited again."""
    parts: list[tuple[int, int]] = []
    for edit in edits:
        moved = edit.end - edit.old_end
        parts = [(start + moved, end + moved) if start >= edit.old_end else (start, end) for start, end in parts]
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


def _is_example(one: Lesson) -> bool:
    return not one.insertions and not one.small and 1 <= len(one.learned) <= _MAX_RULES


def _own_imports(learned: Sequence[Learned], imports: ImportEdit, after: Syntax) -> ImportEdit:
    """Return the imports that the rules need or need no longer. Other files may lack one that this file has."""
    old = {text for each in learned for text in _names(each.rule.pattern)}
    new = {text for each in learned for text in _names(each.rule.template)}
    there = [one for one in imports_of(after).all if one.bound in new - old and one not in imports.added]
    added = [one for one in imports.added if one.bound in new]
    removed = [one for one in imports.removed if one.bound in old]
    replaced = [pair for pair in imports.replaced if pair[0] in removed and pair[1] in added]
    return ImportEdit(tuple(dict.fromkeys([*added, *there])), tuple(removed), tuple(replaced))


def _names(patterns: Sequence[Pattern]) -> set[str]:
    return {item.text for item in items(patterns) if isinstance(item, Leaf) and item.named}


@functools.lru_cache(16)
def _lesson(before: str, after: str, language: Language) -> Lesson | None:
    """Return what an edit says; None if one of its texts cannot be parsed, or the edit adds syntax errors."""
    if max(len(before), len(after)) > MAX_CHARS:
        return None
    old_tree, new_tree = _tree(before, language), _tree(after, language)
    # Most texts are unfinished lines, and our own trees of those would be built for nothing.
    if old_tree is None or new_tree is None or len(errors(new_tree.root_node)) > len(errors(old_tree.root_node)):
        return None
    try:
        return lesson(_syntax(before, language), _syntax(after, language))
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
