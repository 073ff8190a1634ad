"""Fills the slots of a file: first with what the file itself says, then with what the model is sure of."""

import asyncio
from collections.abc import Callable, Sequence

import attrs

from engine.protocol.messages import Filled
from lsp_server.documents.source import Source
from lsp_server.documents.store import Snapshot
from lsp_server.languages.parsing import errors
from lsp_server.refactor.file_edit import Omission, TextEdit, edited
from lsp_server.refactor.sound import is_sound, sound_parts
from lsp_server.refactor.syntax import PARSE_SECONDS
from lsp_server.slots.filler import Filler
from lsp_server.slots.judge import Judge, Verdict
from lsp_server.slots.slot import Slot, SlotEdit, SlotPlace, slot_edit, span_of
from lsp_server.suggest.pipeline import Plan

BROKEN = "the result would have a syntax error"
NO_MODEL = "the file does not say it, and no model was asked"


async def fill_slots(
    snapshot: Snapshot,
    slots: Sequence[Slot],
    filler: Filler | None,
    report: Callable[[], None],
    why_no_model: str = NO_MODEL,
) -> SlotEdit:
    """Return the filled slots of a text, and those that were left out with the reason. `report` is called after each.

    Without a `filler` only what the file itself says is filled in, and the rest is left out. Cancelling the awaiting
    task cancels all fills. Raises MidspanError when the engine fails; then nothing is filled.
    """
    known = [slot for slot in slots if slot.known]
    places = [_known(snapshot, slot) for slot in known]
    for _ in known:
        report()
    unknown = [slot for slot in slots if not slot.known]
    left_out: list[Omission] = []
    if filler is None:
        left_out = [Omission(span_of(snapshot, slot), f"{slot.title}: {why_no_model}") for slot in unknown]
    elif unknown:
        verdicts = await _ask(snapshot, [place for place in places if not place.doubtful], unknown, filler, report)
        for slot, verdict in zip(unknown, verdicts, strict=True):
            span = span_of(snapshot, slot)
            if verdict.text:
                edit = slot.filled(snapshot, verdict.text)
                places.append(SlotPlace(edit, span, verdict.reason, by_model=True, doubtful=verdict.doubtful))
            else:
                left_out.append(Omission(span, f"{slot.title}: {verdict.reason}"))
    sound = await asyncio.to_thread(_sound, snapshot, places)
    left_out += [Omission(place.span, BROKEN) for place in places if place not in sound]
    return slot_edit(snapshot, sound, left_out)


async def _ask(
    snapshot: Snapshot,
    known: Sequence[SlotPlace],
    slots: Sequence[Slot],
    filler: Filler,
    report: Callable[[], None],
) -> list[Verdict]:
    """Ask the model for slots, in a text that has the edits that are known already."""
    edits = [place.edit for place in known]
    base = await asyncio.to_thread(_applied, snapshot, edits)
    moved = [attrs.evolve(slot, start=_moved(slot.start, edits), end=_moved(slot.end, edits)) for slot in slots]
    answers = await filler.fill_all(base, moved, report)
    return await asyncio.to_thread(_judged, base, moved, answers)


def _judged(base: Snapshot, slots: Sequence[Slot], answers: Sequence[tuple[Plan, Filled]]) -> list[Verdict]:
    judge = Judge(base)
    return [judge.verdict(slot, plan, filled) for slot, (plan, filled) in zip(slots, answers, strict=True)]


def _known(snapshot: Snapshot, slot: Slot) -> SlotPlace:
    return SlotPlace(
        slot.filled(snapshot, slot.known), span_of(snapshot, slot), slot.why, by_model=False, doubtful=not slot.is_sure
    )


def _applied(snapshot: Snapshot, edits: Sequence[TextEdit]) -> Snapshot:
    if not edits:
        return snapshot
    source = Source.of(_text_after(snapshot, edits))
    return attrs.evolve(snapshot, source=source, tree=snapshot.language.parse(source.data, None, PARSE_SECONDS))


def _text_after(snapshot: Snapshot, edits: Sequence[TextEdit]) -> str:
    return edited(snapshot.text, sorted(edits, key=lambda edit: (edit.start, edit.end)))


def _moved(offset: int, edits: Sequence[TextEdit]) -> int:
    return offset + sum(len(edit.text) - (edit.end - edit.start) for edit in edits if edit.end <= offset)


def _sound(snapshot: Snapshot, places: Sequence[SlotPlace]) -> list[SlotPlace]:
    """Return the places that together add no syntax error."""
    if not places or snapshot.tree is None:
        return list(places)
    language, most = snapshot.language, len(errors(snapshot.tree.root_node))

    def are_sound(some: Sequence[SlotPlace]) -> bool:
        return is_sound(_text_after(snapshot, [place.edit for place in some]), language, most)

    kept: list[SlotPlace] = []
    for part in sound_parts(places, are_sound):
        # Places that are sound alone may not be so together.
        if not kept or are_sound([*kept, *part]):
            kept += part
    return kept
