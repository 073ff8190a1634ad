"""What is asked of Midspan and of its peers in the benchmark of them all, and what each answers."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from benchmarks.common.sources import Span, block_holes
from benchmarks.latency.commit_rules import as_fill
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Fill, Filled
from engine.schedule.scheduler import Scheduler
from lsp_server.documents.store import Documents

TOKENS = 16
"""A fill has this many."""
_BUDGET_MS = 60_000.0
_TRIED = 8
"""So many holes are tried for each that is used: the model ends most fills earlier."""


@attrs.frozen
class Question:
    """One fill. `tokens`: what our model reads for it; the peers read the same numbers, whatever they mean there."""

    fill: Fill
    tokens: list[int]


@attrs.frozen
class Hole:
    """A hole in real code, and the same one after the next key."""

    first: Question
    next: Question


@attrs.frozen
class Took:
    """A fill: milliseconds from the request to the answer, tokens written, tokens of the hole not read before."""

    ms: float
    tokens: int
    read: int


class Peer(Protocol):
    """Something that fills holes, in a process of its own."""

    name: str

    @property
    def pid(self) -> int: ...

    @property
    def disk(self) -> int:
        """The bytes of its weights on the disk."""
        ...

    async def fill(self, question: Question) -> Took:
        """Fill a hole; what was read stays in the peer's own cache."""
        ...

    async def close(self) -> None:
        """End the process."""
        ...


async def holes_of(model: EmbeddedModel, count: int) -> list[Hole]:
    """Return at most `count` holes that the model fills with exactly TOKENS tokens, before and after the next key.

    This holds left to right, and by the default rule with the memory of the file.
    """
    scheduler, documents, holes = Scheduler(model), Documents(), list[Hole]()
    await scheduler.start()
    try:
        for span in block_holes(count * _TRIED):
            typed = attrs.evolve(
                span,
                text=span.text[: span.offset] + span.middle[0] + span.text[span.offset :],
                offset=span.offset + 1,
                middle=span.middle[1:],
            )
            hole = Hole(_question(model, documents, span), _question(model, documents, typed))
            if await _writes_all(scheduler, [hole.first.fill, hole.next.fill]):
                holes.append(hole)
    finally:
        await scheduler.stop()
    step = max(1, len(holes) // count)
    return holes[::step][:count]


def _question(model: EmbeddedModel, documents: Documents, span: Span) -> Question:
    fill = attrs.evolve(as_fill(documents, span), max_tokens=TOKENS, extent="lines", budget_ms=_BUDGET_MS)
    layout = model.lay_out(fill)
    typed = model.tokenizer.encode(layout.typed, add_special_tokens=False).ids
    return Question(fill, [*layout.context, *typed])


async def _writes_all(scheduler: Scheduler, fills: Sequence[Fill]) -> bool:
    for fill in fills:
        alone = attrs.evolve(fill, rule="left-to-right", memory="off")
        for asked in (alone, fill):
            filled: Filled = await scheduler.submit(asked, None).result
            if len(filled.candidates[0].tokens) != TOKENS:
                return False
    return True
