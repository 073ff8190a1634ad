"""The places of a file's edit as blocks of whole lines, which are shown and chosen from."""

from collections.abc import Sequence

import attrs

from lsp_server.documents.source import Source
from lsp_server.documents.text_edit import TextEdit, edited
from lsp_server.refactor.edit.file_edit import FileEdit, Span
from lsp_server.refactor.edit.ranges import Ranges

_MOST_LINES = 12
"""A place of more lines is shown by the lines that change, so that it does not take the places inside of it along."""


@attrs.frozen
class Block:
    """Places of a file that share lines, and so are chosen together. Offsets count characters of the text before.

    `start` and `end` are the place, `line` its first line, which begins at `line_start`. `before` and `after` are
    whole lines without the last line end. A block without spans follows the others, such as an import. `reason` says
    why it is offered; what is `doubtful` is to be asked about, and what is `wide` is a part of the group that only the
    widest form of the rule fits. Where only "\\n" ends lines, `line_start` is in the line `row`, after its text `lead`.
    """

    spans: tuple[Span, ...]
    edits: tuple[TextEdit, ...]
    start: int
    end: int
    line: int
    line_start: int
    before: str
    after: str
    reason: str = ""
    doubtful: bool = False
    wide: bool = False
    row: int = 0
    lead: str = ""


@attrs.define
class _Group:
    """Spans and edits that belong together, and the lines that they take."""

    spans: list[Span]
    edits: list[TextEdit]
    first: int
    last: int


def blocks_of(text: str, edit: FileEdit) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Return the blocks of the places of an edit of this text, and those that follow them."""
    if not edit.edits:
        return (), ()
    source = Source.of(text)
    groups, rest = _groups(source, edit)
    following = [_Group([], [one], *_lines(source, one.start, one.end)) for one in rest]
    blocks, others = (tuple(_block(source, group) for group in _merged(some)) for some in (groups, following))
    return blocks, others


def _groups(source: Source, edit: FileEdit) -> tuple[list[_Group], list[TextEdit]]:
    """Return each span with its edits, and the edits outside of all spans."""
    groups: dict[Span, _Group] = {}
    rest: list[TextEdit] = []
    spans = Ranges[Span]()
    for place in edit.places:
        spans.add(place)
    for one in edit.edits:
        owners = _owners(one, spans)
        if not owners:
            rest.append(one)
            continue
        lines = [_lines(source, one.start, one.end)]
        for span in owners:
            first, last = _lines(source, span.start, span.end)
            if last - first < _MOST_LINES:
                lines.append((first, last))
        group = _Group(list(owners), [one], min(low for low, _ in lines), max(high for _, high in lines))
        for span in owners:
            if span in groups:
                _join(group, groups[span])
        for span in group.spans:
            groups[span] = group
    return list({id(group): group for group in groups.values()}.values()), rest


def _owners(edit: TextEdit, spans: Ranges[Span]) -> list[Span]:
    """Return the innermost span around an edit, and all spans inside of the edit.

    What is inserted where a span begins or ends may be of the span around that one, so both are returned.
    """
    near = spans.touching(edit.start, edit.end)
    around = [span for span in near if span.start <= edit.start and edit.end <= span.end]
    inside = [span for span in near if edit.start <= span.start and span.end <= edit.end]
    owners: list[Span] = []
    for span in sorted(around, key=lambda span: span.end - span.start):
        owners.append(span)
        if edit.end > edit.start or span.start < edit.start < span.end:
            break
    return list(dict.fromkeys([*owners, *inside]))


def _merged(groups: Sequence[_Group]) -> list[_Group]:
    """Return the groups in their order, those that share lines as one."""
    merged: list[_Group] = []
    for group in sorted(groups, key=lambda one: (one.first, one.last)):
        if merged and group.first <= merged[-1].last:
            _join(merged[-1], group)
        else:
            merged.append(group)
    return merged


def _join(group: _Group, other: _Group) -> None:
    group.spans = list(dict.fromkeys([*group.spans, *other.spans]))
    group.edits = list(dict.fromkeys([*group.edits, *other.edits]))
    group.first, group.last = min(group.first, other.first), max(group.last, other.last)


def _block(source: Source, group: _Group) -> Block:
    edits = sorted(group.edits, key=lambda edit: (edit.start, edit.end))
    top, bottom = source.lines.start(group.first), source.line_stop(group.last)
    line_end = source.text[source.line_end(group.last) : bottom]
    after = edited(source.text, edits, top, bottom)
    starts = [span.start for span in group.spans] or [edits[0].start]
    ends = [span.end for span in group.spans] or [edits[-1].end]
    return Block(
        tuple(sorted(group.spans, key=lambda span: (span.start, -span.end))),
        tuple(edits),
        max(min(starts), top),
        min(max(ends), bottom - len(line_end)),
        group.first,
        top,
        source.text[top : bottom - len(line_end)],
        after.removesuffix(line_end) if line_end else after,
        row=source.text.count("\n", 0, top) if source.lines.rows_differ else group.first,
        lead=source.text[source.text.rfind("\n", 0, top) + 1 : top] if source.lines.rows_differ else "",
    )


def _lines(source: Source, start: int, end: int) -> tuple[int, int]:
    first = source.lines.at(start)
    # An edit of whole lines ends where the next line begins, and does not touch it.
    return first, max(first, source.lines.at(end - 1)) if end > start else first
