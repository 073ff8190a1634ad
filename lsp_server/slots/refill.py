"""Fills a selection again, or the hole at the cursor: a few different answers, the best first."""

import asyncio

import attrs

from engine.protocol.messages import Candidate, Filled
from lsp_server.documents.store import Snapshot
from lsp_server.refactor.file_edit import Span, TextEdit
from lsp_server.slots.filler import Filler
from lsp_server.slots.judge import GATES, text_confidence
from lsp_server.slots.slot import SlotEdit, SlotPlace, slot_edit
from lsp_server.suggest.pipeline import Plan, present

ANSWERS = 3
_CANDIDATES = 8
"""The most that the engine gives. Several of them are often equal, or what was there."""
_LONGEST = 4_000
"""Characters of a selection. The engine writes far less."""


async def refill(snapshot: Snapshot, start: int, end: int, filler: Filler) -> list[SlotEdit]:
    """Return at most ANSWERS different edits that fill the characters from `start` to `end`, the surest first.

    None of them gives back what was there. White space around the selection is kept. An empty list means that the
    model has no other answer of which it is sure: the surest must reach the gate of a body that is asked about, or the
    setting `gate` if that is a lower number. Raises MidspanError.
    """
    selected = snapshot.text[start:end]
    start += len(selected) - len(selected.lstrip())
    end = max(end - (len(selected) - len(selected.rstrip())), start)
    source = snapshot.source
    line = source.lines.at(start)
    if start == end and not source.line_text(line).strip():
        start = end = source.line_end(line)
    if end - start > _LONGEST:
        return []
    opened = await asyncio.to_thread(snapshot.replaced, start, end, "")
    plan, filled = await filler.fill(opened, start, "body", _CANDIDATES)
    answers = await asyncio.to_thread(_answers, plan, filled, snapshot.text[start:end])
    least, lower = GATES["body"].doubtful, filler.settings.gate.least
    if answers and answers[0][1] < (least if lower is None else min(least, lower)):
        return []
    edits: list[SlotEdit] = []
    for text, confidence in answers[:ANSWERS]:
        edit = TextEdit(source.byte_at(start), source.byte_at(end), start, end, text)
        reason = f"the model is {confidence:.0%} sure".replace("%", " %")
        place = SlotPlace(edit, Span(start, end, source.lines.at(start)), reason, by_model=True)
        edits.append(slot_edit(snapshot, [place], []))
    return edits


def _answers(plan: Plan, filled: Filled, old: str) -> list[tuple[str, float]]:
    """Return the different texts of all candidates, each with how sure the model is of it, the surest first."""
    found: dict[str, tuple[str, float]] = {}
    for candidate in filled.candidates:
        text, confidence = _presented(plan, filled, candidate)
        key = " ".join(text.split())
        if key and key != " ".join(old.split()):
            known = found.get(key)
            if known is None or known[1] < confidence:
                found[key] = text, confidence
    return sorted(found.values(), key=lambda answer: -answer[1])


def _presented(plan: Plan, filled: Filled, candidate: Candidate) -> tuple[str, float]:
    presented = present(plan, attrs.evolve(filled, candidates=[candidate]))
    text = presented[0].text if presented else ""
    # The indentation of the first line is there already.
    text = text.lstrip(" \t") if not plan.hole.line_before.strip() and plan.hole.line_before else text
    return text, text_confidence(candidate, text) if text else 0.0
