"""Which parts of a document a model may rewrite after an edit: what is around it, and where its names are used."""

import re
from collections.abc import Iterator
from pathlib import PurePath

import attrs
import tree_sitter

from engine.protocol.rewrite import PastEdit, changed_part
from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.store import Snapshot

MOST_LINES = 24
"""A region has so many lines at most: reading costs time before anything is written."""
_BELOW = 8
"""So many lines below a place are a part of its region."""
_MOST_CHARACTERS = 2_000
MOST_REGIONS = 4
_MOST_EDITS, _MOST_EDIT_CHARACTERS = 3, 600
_MOST_PLACES = 50
_WORD = re.compile(r"[^\W\d]\w*")
_PROSE = re.compile(r"comment|string|template|text|char")


@attrs.frozen
class Region:
    """Whole lines from `start` to `end`, in characters of the document. Those before `free` stay as they are."""

    start: int
    end: int
    free: int


def past_edits(snapshot: Snapshot) -> list[PastEdit]:
    """Return the last edits as whole lines, the oldest first; those that are too long are left out."""
    edits = [_past(edit, PurePath(snapshot.path).name) for edit in snapshot.edits.all[-_MOST_EDITS:]]
    return [edit for edit in edits if len(edit.before) + len(edit.after) <= _MOST_EDIT_CHARACTERS]


def _past(edit: RecentEdit, path: str) -> PastEdit:
    first = edit.before.rfind("\n", 0, edit.start) + 1
    before, after = (
        text[first : _line_end(text, max(first, stop))].replace("\r\n", "\n")
        for text, stop in ((edit.before, edit.old_end), (edit.after, edit.end))
    )
    return PastEdit(path, before, after, edit.before.count("\n", 0, first) + 1)


def _line_end(text: str, at: int) -> int:
    """Return where the line ends that a text up to `at` ends in, after its newline."""
    if at and text[at - 1 : at] == "\n":
        return at
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def names_of(snapshot: Snapshot, edit: RecentEdit) -> set[str]:
    """Return the names that the newest edit is about: its words that are new or gone, and what it declares."""
    past = _past(edit, "")
    words = set(_WORD.findall(past.before)) ^ set(_WORD.findall(past.after))
    return words | set(_declared(snapshot, edit))


def used_in(edit: RecentEdit) -> set[str]:
    """Return all words of the lines that an edit left."""
    return set(_WORD.findall(_past(edit, "").after))


def _declared(snapshot: Snapshot, edit: RecentEdit) -> Iterator[str]:
    """Yield the name of the declaration whose head the edit changed."""
    start, end = snapshot.source.byte_at(edit.start), snapshot.source.byte_at(edit.end)
    for node in snapshot.nodes_around(start, end):
        name, body = _name(node), node.child_by_field_name("body")
        if name is None or (body is None and "parameters" not in (child.type for child in node.children)):
            continue
        if body is None or start < body.start_byte:
            yield snapshot.source.data[name.start_byte : name.end_byte].decode("utf-8", "replace")
        return


def _name(node: tree_sitter.Node) -> tree_sitter.Node | None:
    name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
    while name is not None and (inner := name.child_by_field_name("declarator")) is not None:
        name = inner
    return name


def regions_of(snapshot: Snapshot) -> list[Region]:
    """Return the regions after the newest edit: the one around it first, then those where its names are used."""
    edits = snapshot.edits.all
    if snapshot.tree is None or not edits or edits[-1].after != snapshot.text:
        return []
    edit, text = edits[-1], snapshot.text
    own_end = _line_end(text, max(edit.end, 1))
    regions = [region for region in [_around(snapshot, edit.start, own_end)] if text[region.free : region.end].strip()]
    own_start = text.rfind("\n", 0, edit.start) + 1
    for place in _uses(snapshot, names_of(snapshot, edit)):
        is_known = any(region.free <= place < region.end for region in regions)
        if is_known or own_start <= place < own_end:
            continue
        regions.append(_around(snapshot, place, text.rfind("\n", 0, place) + 1))
        if len(regions) == MOST_REGIONS:
            break
    return [region for region in regions if region.end - region.start <= _MOST_CHARACTERS]


def _uses(snapshot: Snapshot, names: set[str]) -> Iterator[int]:
    """Yield where names are used in code, those after the newest edit first."""
    names = {name for name in names if len(name) > 1}
    if not names or snapshot.tree is None:
        return
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names)))})(?!\w)")
    found = [match.start() for match in pattern.finditer(snapshot.text)][: 10 * _MOST_PLACES]
    newest = snapshot.edits.all[-1].start
    found.sort(key=lambda place: (place < newest, place))
    for place in found[:_MOST_PLACES]:
        at = snapshot.source.byte_at(place)
        leaf = snapshot.tree.root_node.descendant_for_byte_range(at, at + 1)
        if leaf is not None and not _PROSE.search(leaf.type):
            yield place


def _around(snapshot: Snapshot, place: int, free: int) -> Region:
    """Return the lines of the function around a place, or some of them, whose lines before `free` stay."""
    source, lines = snapshot.source, snapshot.source.lines
    line = lines.at(place)
    first, last = max(0, line - MOST_LINES + _BELOW), line + _BELOW
    at = source.byte_at(place)
    for node in snapshot.nodes_around(at, at):
        top, bottom = lines.at_byte(node.start_byte), lines.at_byte(node.end_byte)
        if node.child_by_field_name("body") is None or top > line:
            continue
        first = max(first, top)
        last = min(max(last, first + MOST_LINES - 1), bottom)
        break
    last = min(max(last, lines.at(max(free - 1, 0))), lines.at(len(snapshot.text)))
    return Region(lines.start(first), source.line_stop(last), free)


def changed_words(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the words and signs that a change took away, and those that it put in, with the words that it cut."""
    start, end, new_end = changed_part(before, after)
    while start and before[start - 1].isalnum():
        start -= 1
    while end < len(before) and before[end].isalnum():
        end, new_end = end + 1, new_end + 1
    return _TOKEN.findall(before[start:end]), _TOKEN.findall(after[start:new_end])


_TOKEN = re.compile(r"\w+|[^\w\s]")
