"""Which changes of a rewritten region are offered: restraint decides, because most edits have no other one after them.

All functions are pure. A change is a run of lines that differ, and each is judged alone.
"""

import difflib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

import attrs

from engine.protocol.messages import Candidate, plain
from engine.protocol.rewrite import changed_part, has_merge_marks
from lsp_server.documents.edits import MOST_PARSED, RecentEdit
from lsp_server.documents.store import Snapshot
from lsp_server.documents.text_edit import TextEdit
from lsp_server.languages.language import errors
from lsp_server.suggest.region import Region, changed_words, names_of

_MOST_REVERSED = 0.5
"""A change of which this part takes back what the user just did is none."""
_MOST_REPLACED, _LEAST_KEPT = 12, 0.5
"""Of lines with more words and signs than that, a change keeps this part: else it is another text in their place."""
_PARSE_S = 1.0
"""It never takes that long: the tree of the text before is edited, and MOST_PARSED bounds the text. A shorter one would
lose right changes where others have the processor."""


@attrs.frozen
class EditPrice:
    """How likely a change must be: the mean of its tokens' probabilities, a geometric one, and the least of them."""

    mean: float = 0.85
    least: float = 0.5


@attrs.frozen
class JudgedEdit(TextEdit):
    """An edit by a model. `reason` says why it is not offered. mean, least: see EditPrice."""

    reason: str = ""
    mean: float = 1.0
    least: float = 1.0


def asked_text(snapshot: Snapshot, region: Region) -> str | None:
    """Return the text of a region as a model gets it; None where it must not be rewritten at all."""
    text = snapshot.text[region.start : region.end].replace("\r\n", "\n")
    text = text if text.endswith("\n") else f"{text}\n"
    is_odd = "\r" in text or plain(text) != text or has_merge_marks(text)
    return None if is_odd else text


def judged(snapshot: Snapshot, region: Region, answer: Candidate, price: EditPrice) -> list[JudgedEdit]:
    """Return the changes that an answer makes, in their order. answer: its text is that of `asked_text`, rewritten."""
    asked = asked_text(snapshot, region)
    if asked is None or answer.text == asked:
        return []
    old, new = asked.splitlines(keepends=True), answer.text.splitlines(keepends=True)
    starts = [*accumulate(map(len, new), initial=0)]
    found: list[JudgedEdit] = []
    for kind, first, last, new_first, new_last in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if kind == "equal":
            continue
        before, after = "".join(old[first:last]), "".join(new[new_first:new_last])
        start, end, new_end = changed_part(before, after)
        change = _in_document(snapshot, region, first, before, TextEdit(start, end, after[start:new_end]))
        mean, least = likely(answer, starts[new_first] + start, starts[new_first] + new_end)
        reason = _why_not(snapshot, region, change, before, after) or _too_unsure(mean, least, price)
        found.append(JudgedEdit(change.start, change.end, change.text, reason, mean, least))
    return found


def _in_document(snapshot: Snapshot, region: Region, line: int, before: str, change: TextEdit) -> TextEdit:
    """Return a change of the lines from `line` of a region as one of the document, with its line ends."""
    lines = snapshot.text[region.start : region.end].splitlines(keepends=True)
    at, newline = region.start + sum(map(len, lines[:line])), "\r\n" if any(map(_ends_wide, lines)) else "\n"
    start, end = (
        at + offset + sum(map(_ends_wide, lines[line : line + before.count("\n", 0, offset)]))
        for offset in (change.start, change.end)
    )
    return TextEdit(start, min(end, len(snapshot.text)), change.text.replace("\n", newline))


def _ends_wide(line: str) -> bool:
    """Return whether a line ends with two characters. A file may have lines of both kinds."""
    return line.endswith("\r\n")


def likely(answer: Candidate, start: int, end: int) -> tuple[float, float]:
    """Return the mean and the least probability of the tokens in a part of an answer; of a deletion, the next one's."""
    at, found = 0, list[float]()
    for token, probability in zip(answer.tokens, answer.confidence, strict=True):
        if at + len(token) > start and at < max(end, start + 1):
            found.append(max(probability, 1e-6))
        at += len(token)
    if not found:
        return 0.0, 0.0
    return math.exp(sum(map(math.log, found)) / len(found)), min(found)


def _too_unsure(mean: float, least: float, price: EditPrice) -> str:
    return "unsure" if mean < price.mean or least < price.least else ""


def _why_not(snapshot: Snapshot, region: Region, change: TextEdit, before: str, after: str) -> str:
    """Return why a change is not offered, as a word or two; "" if it may be."""
    edits = snapshot.edits.all
    if "".join(before.split()) == "".join(after.split()):
        return "formatting"
    if change.start < region.free or change.end > region.end:
        return "outside"
    if has_merge_marks(after):
        return "marks"
    gone, come = changed_words(before, after)
    if _reversal(edits, gone, come) >= _MOST_REVERSED:
        return "reversal"
    if _lost(before, after) > max(
        _lost(one.before[one.start : one.old_end], one.after[one.start : one.end]) for one in edits
    ):
        return "deletion"
    if _is_another(before, after):
        return "another text"
    if not names_of(snapshot, edits[-1]) & {*_words_of(before), *_words_of(after)}:
        return "other names"
    return worse(snapshot, change)


def _words_of(text: str) -> Iterator[str]:
    gone, _ = changed_words(text, "")
    return iter(gone)


def _reversal(edits: Sequence[RecentEdit], gone: Sequence[str], come: Sequence[str]) -> float:
    """Return which part of a change takes the last edits back: it takes away what they put in, or the reverse."""
    taken, put = Counter(gone) - Counter(come), Counter(come) - Counter(gone)
    size = taken.total() + put.total()
    if not size:
        return 1.0
    worst = 0
    for edit in edits:
        lost, new = changed_words(edit.before[edit.start : edit.old_end], edit.after[edit.start : edit.end])
        was, now = Counter(lost) - Counter(new), Counter(new) - Counter(lost)
        worst = max(worst, (taken & now).total() + (put & was).total())
    return worst / size


def _is_another(before: str, after: str) -> bool:
    """Return whether a change puts other lines in the place of some, instead of changing these."""
    old, new = Counter(_words_of(before)), Counter(_words_of(after))
    return old.total() > _MOST_REPLACED and (old & new).total() < _LEAST_KEPT * old.total()


def _lost(before: str, after: str) -> int:
    """Return by how many characters a text became shorter, white space aside."""
    return max(0, len("".join(before.split())) - len("".join(after.split())))


def worse(snapshot: Snapshot, change: TextEdit) -> str:
    """Return whether the document parses worse with a change, or only its comments differ."""
    if snapshot.tree is None or len(snapshot.text) + len(change.text) > MOST_PARSED:
        return "no tree"
    after = snapshot.replaced(change.start, change.end, change.text, _PARSE_S)
    if after.tree is None:
        return "no tree"
    if len(errors(after.tree.root_node)) > len(errors(snapshot.tree.root_node)):
        return "syntax"
    at, end = after.source.byte_at(change.start), after.source.byte_at(change.start + len(change.text.rstrip()))
    around = next(iter(after.nodes_around(at, max(at, end - 1))), None)
    return "comment" if around is not None and "comment" in around.type else ""
