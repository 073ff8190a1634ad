"""Fills the holes of a file: its slots, with what the file says or the model is sure of, or a selection again."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import attrs

from engine.errors import EngineUnavailable, MidspanError
from engine.protocol.confidence import FREE
from engine.protocol.messages import Candidate, Fill, Filled, ModelInfo
from lsp_server.documents.source import Source
from lsp_server.documents.store import Snapshot
from lsp_server.documents.text_edit import TextEdit, edited
from lsp_server.languages.language import errors
from lsp_server.refactor.code.syntax import PARSE_SECONDS
from lsp_server.refactor.edit.file_edit import Omission, Span, is_sound, sound_parts
from lsp_server.settings import Settings
from lsp_server.slots.judge import DOUBTFUL, Judge, Verdict, text_confidence
from lsp_server.slots.slot import Shape, Slot, SlotEdit, SlotKind, SlotPlace, slot_edit, span_of
from lsp_server.suggest.pipeline import Plan, present

TOGETHER = 12
"""Holes that are with the engine at a time. It takes 16 into a pass, so an editor's suggestion finds room."""
BESIDE_TYPING = 4
"""In an editor fewer: the user goes on typing, and a suggestion shares its passes with them (benchmarks/quality)."""
_BUDGET_MS = 300_000.0
"""The time counts from when the engine reads the request, and most of it may be spent waiting for the others."""
_MAX_TOKENS: dict[Shape, int] = {"body": 128, "expression": 48, "type": 24, "docstring": 40}
_MAX_LINES = 24

_WRITER = 1_000_000_000
"""Parameters. Smaller models write hardly a docstring as its author wrote it."""

_UNCHANGED = "; nothing was changed"
_Result = TypeVar("_Result")

Planner = Callable[[Snapshot, int, Settings, int], Plan]
"""Makes the plan of the hole at an offset: with these settings, and so many candidates."""
BROKEN = "the result would have a syntax error"
NO_MODEL = "the file does not say it, and no model was asked"
ANSWERS = 3
_CANDIDATES = 8
"""The most that the engine gives. Several of them are often equal, or what was there."""
_LONGEST = 4_000
"""Characters of a selection. The engine writes far less."""


def why_unable(kind: SlotKind, model: ModelInfo) -> str | None:
    """Return why a model is not asked to fill slots of a kind, or None."""
    if kind == "docstrings" and 0 < model.parameters < _WRITER:
        return f"{model.name} is too small to write docstrings; `midspan models list` shows larger models"
    return None


@attrs.frozen
class Filler:
    """What is needed to fill holes: how a plan is made, who answers a fill, and the user's settings.

    `room` bounds the holes that are with the engine at a time.
    """

    plan: Planner
    ask: Callable[[Fill], Awaitable[Filled]]
    settings: Settings
    room: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(TOGETHER))

    async def fill(self, snapshot: Snapshot, offset: int, shape: Shape, candidates: int = 1) -> tuple[Plan, Filled]:
        """Fill one hole. The answer is not cut: the caller judges what to use. Raises MidspanError."""
        settings = attrs.evolve(
            self.settings,
            gate=FREE,
            max_lines=max(self.settings.max_lines, _MAX_LINES),
            max_tokens=max(self.settings.max_tokens, _MAX_TOKENS[shape]) if shape == "body" else _MAX_TOKENS[shape],
        )
        plan = self.plan(snapshot, offset, settings, candidates)
        plan = attrs.evolve(plan, fill=attrs.evolve(plan.fill, budget_ms=_BUDGET_MS))
        return plan, await self.ask(plan.fill)

    async def fill_all(
        self, snapshot: Snapshot, slots: Sequence[Slot], report: Callable[[], None]
    ) -> list[tuple[Plan, Filled]]:
        """Fill the slots of a text, and call `report` after each.

        Cancelling the awaiting task cancels all of them in the engine. Raises MidspanError as soon as one fails.
        """

        async def fill(slot: Slot) -> tuple[Plan, Filled]:
            async with self.room:
                opened, offset = await asyncio.to_thread(slot.opened, snapshot)
                answer = await self.fill(opened, offset, slot.shape)
                report()
                return answer

        return await gathered([fill(slot) for slot in slots])


async def gathered(work: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Return the results of all work, in its order. As soon as one raises MidspanError, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except* MidspanError as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


def _first(errors: BaseExceptionGroup[MidspanError]) -> MidspanError:
    """Return one error for the failures of many fills, which all have the same cause."""
    error = errors.exceptions[0]
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, EngineUnavailable) and not str(error).endswith(_UNCHANGED):
        return EngineUnavailable(f"{error}{_UNCHANGED}")
    return error


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
    snapshot: Snapshot, known: Sequence[SlotPlace], slots: Sequence[Slot], filler: Filler, report: Callable[[], None]
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
    return offset + sum(edit.growth for edit in edits if edit.end <= offset)


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


async def refill(snapshot: Snapshot, start: int, end: int, filler: Filler) -> list[SlotEdit]:
    """Return at most ANSWERS different edits that fill the characters from `start` to `end`, the surest first.

    None of them gives back what was there. White space around the selection is kept. An empty list means that the
    model has no other answer of which it is sure: the surest must reach the threshold of a body that is asked about, or
    the setting `gate` if that is a lower number. Raises MidspanError.
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
    found = await asyncio.to_thread(_answers, plan, filled, snapshot.text[start:end])
    answers = await asyncio.to_thread(_sound_answers, snapshot, start, end, found)
    least = filler.settings.gate.least
    if answers and answers[0][1] < (DOUBTFUL if least is None else min(DOUBTFUL, least)):
        return []
    return [slot_edit(snapshot, [place], []) for place, _ in answers[:ANSWERS]]


def _sound_answers(
    snapshot: Snapshot, start: int, end: int, answers: Sequence[tuple[str, float]]
) -> list[tuple[SlotPlace, float]]:
    """Return the answers that add no syntax error to what was selected, nor take the head of the body below it."""
    language, span = snapshot.language, Span(start, end, snapshot.source.lines.at(start))
    # A grammar does not mind a body without its head where only the indentation says that it is one.
    has_body = language.indentation_is_syntax and language.opener_of(_last_line(snapshot.text[start:end])) is not None
    found: list[tuple[SlotPlace, float]] = []
    for text, confidence in answers:
        reason = f"the model is {confidence:.0%} sure".replace("%", " %")
        place = SlotPlace(TextEdit(start, end, text), span, reason, by_model=True)
        is_headless = has_body and language.opener_of(_last_line(text)) is None
        if not is_headless and _sound(snapshot, [place]):
            found.append((place, confidence))
    return found


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2].rstrip()


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
