"""A slot: a place where code is missing by its syntax, and what was put there."""

from typing import Literal

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.refactor.file_edit import FileEdit, Omission, Span, TextEdit, digest_of

SlotKind = Literal["stubs", "annotations", "docstrings"]
Shape = Literal["body", "expression", "type", "docstring"]
"""What fills a slot: the statements of a body, an expression, a type, or the text of a docstring."""


@attrs.frozen
class Slot:
    """A place to fill: `before`, the fill and `after` take the place of the characters from `start` to `end`.

    `title` says what is missing, as in "the type of `x`". `in_style` says that the file has the like elsewhere. `known`
    is the text, if the file itself says it, and `why` says how; no model is asked then. `is_sure` holds for most.
    """

    start: int
    end: int
    before: str
    after: str
    shape: Shape
    title: str
    known: str = ""
    why: str = ""
    is_sure: bool = False
    in_style: bool = True

    def opened(self, snapshot: Snapshot) -> tuple[Snapshot, int]:
        """Return the text with a hole in the slot's place, and the offset of the hole."""
        newline = snapshot.source.newline
        before, after = self.before.replace("\n", newline), self.after.replace("\n", newline)
        return snapshot.replaced(self.start, self.end, before + after), self.start + len(before)

    def filled(self, snapshot: Snapshot, text: str) -> TextEdit:
        """Return the edit that fills the slot with `text`."""
        source = snapshot.source
        whole = (self.before + text.replace("\r\n", "\n") + self.after).replace("\n", source.newline)
        return TextEdit(source.byte_at(self.start), source.byte_at(self.end), self.start, self.end, whole)


@attrs.frozen
class SlotPlace:
    """A filled slot. `reason` is a phrase. A `doubtful` place is to be asked about."""

    edit: TextEdit
    span: Span
    reason: str
    by_model: bool
    doubtful: bool = False


@attrs.frozen
class SlotEdit:
    """The filled slots of one file in their order, apart from each other, and the slots that were left out.

    `digest` names the text that the edits are for, see `digest_of`.
    """

    path: str
    digest: str
    places: tuple[SlotPlace, ...] = ()
    left_out: tuple[Omission, ...] = ()

    def file_edit(self, *, with_doubtful: bool) -> FileEdit:
        """Return the edits as those of any other refactoring."""
        places = [place for place in self.places if with_doubtful or not place.doubtful]
        return FileEdit(
            self.path,
            self.digest,
            tuple(place.edit for place in places),
            tuple(place.span for place in places),
            self.left_out,
        )


def slot_edit(snapshot: Snapshot, places: list[SlotPlace], left_out: list[Omission]) -> SlotEdit:
    """Return the edit of a snapshot, everything in its order."""
    return SlotEdit(
        snapshot.path,
        digest_of(snapshot.text),
        tuple(sorted(places, key=lambda place: (place.edit.start, place.edit.end))),
        tuple(sorted(left_out, key=lambda omission: omission.span.start)),
    )


def span_of(snapshot: Snapshot, slot: Slot) -> Span:
    """Return where a slot is."""
    return Span(slot.start, slot.end, snapshot.source.lines.at(slot.start))
