"""A fill under way: its context being read, then its candidates being filled, with their times."""

import time

from torch import Tensor

from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context, Model, Pass
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.protocol.messages import Fill, Filled, Progress, Timings
from engine.schedule.context_cache import ContextCache
from engine.schedule.pass_timer import PassTimer

JOINT_ROWS = 48
"""A context that lacks at most this many tokens is read in the first pass of its canvas, not in one of its own."""


WARM_UP_S = 90.0
"""After how long no further round of a warm-up is begun."""
_BUDGET_MS = 5000.0
_GPU_BUDGET_MS = 60_000.0
"""Compiling and capturing are part of a first pass there."""
_LINES, _TOGETHER = (60, 10, 150), (1, 4, 16)
"""Lines above the hole and holes at once: what graphs are captured for before anybody asks."""


def warm_up_rounds(device: str) -> list[list[Fill]]:
    """Return fills, each round's at once, that touch all memory a user's first one will; the commonest first."""
    if device != "cuda":
        return [[_warm_up_fill(60, _BUDGET_MS, candidates=2)]]
    return [
        [_warm_up_fill(lines, _GPU_BUDGET_MS, candidates=1)] * together for together in _TOGETHER for lines in _LINES
    ]


def _warm_up_fill(lines: int, budget_ms: float, candidates: int) -> Fill:
    line = "    value = compute(value, other)\n"
    return Fill(
        id=0, prefix=line * lines, suffix="\n" + line * 20, budget_ms=budget_ms, max_tokens=16, candidates=candidates
    )


class Job:
    """Built on the worker thread, because laying out and taking a context cost time."""

    def __init__(self, fill: Fill, family: Model, cache: ContextCache, submitted: float) -> None:
        self.fill, self._family, self._submitted = fill, family, submitted
        self._started = time.perf_counter()
        self._way = FillStrategy(fill.rule, fill.steps)
        if fill.rule == "default":
            self._way = FillStrategy(family.default.rule, fill.steps or family.default.steps)
        self._deadline = submitted + fill.budget_ms / 1000
        self._layout = family.lay_out(fill)
        self._context = cache.take(self._layout.context)
        self._cached = len(self._context.tokens)
        self._fillings: list[Filling] = []
        self._encode_ms = self._denoise_ms = 0.0
        self._ended = 0.0
        self.stepped = False

    def passes(self, encode_rows: int) -> list[Pass]:
        """Return what to run next: a piece of the context, or a pass for every candidate that is not done."""
        self.stepped = False
        unread = self._layout.context[len(self._context.tokens) :]
        if not self._fillings and len(unread) > JOINT_ROWS:
            return [self._family.read(self._context, unread[:encode_rows])]
        if not self._fillings:
            self._fillings = [self._filling(number) for number in range(self.fill.candidates)]
        self._running = [filling for filling in self._fillings if filling.finish is None]
        self._passes = [filling.next_pass() for filling in self._running]
        return self._passes

    def absorb(self, item: Pass, logits: Tensor, elapsed_ms: float, expected_ms: float) -> None:
        """Take the logits of one of the passes.

        `elapsed_ms` is what the whole batch took, `expected_ms` what the next such batch should take.
        """
        if not item.wanted:
            self._encode_ms += elapsed_ms
            return
        number = next(at for at, known in enumerate(self._passes) if known is item)
        begun = time.perf_counter()
        left_ms = (self._deadline - begun) * 1000
        self._running[number].absorb(logits, 1 + int(left_ms / max(expected_ms, 0.1)))
        self.stepped = True
        if number == 0:  # Choosing tokens is a part of it: a linked draft's take a third of a pass.
            self._denoise_ms += elapsed_ms + (time.perf_counter() - begun) * 1000

    def done(self, clock: PassTimer) -> bool:
        """Close what is past its deadline, or would be after one more pass; tell whether nothing is left to do."""
        expected = clock.expect(self._family.info.canvas_tokens) / 1000
        late = time.perf_counter() + expected > self._deadline
        if late and not self._fillings:
            self._fillings = [self._filling(0)]  # The answer of a hole that had no time at all is an empty one.
        unfinished = [filling for filling in self._fillings if filling.finish is None]
        if late:
            for filling in unfinished:
                filling.close("deadline")
        over = late or (bool(self._fillings) and not unfinished)
        if over:
            self._ended = time.perf_counter()
        return over

    def _filling(self, number: int) -> Filling:
        fill, family = self.fill, self._family
        context: Context = self._context if number == 0 else self._context.fork(len(self._context.tokens))
        hole = Hole(self._layout, fill.extent, fill.max_tokens, fill.min_line_probability)
        temperature = 0.0 if number == 0 else fill.temperature
        sampler = Sampler(temperature, fill.top_p, fill.seed + number, family.never, self._way.rule == "entropy")
        return family.filling(context, hole, sampler, self._way)

    def progress(self) -> Progress:
        """Return the first candidate's canvas as it stands."""
        first = self._fillings[0] if self._fillings else None
        return Progress(self.fill.id, first.steps if first else 0, first.canvas() if first else [])

    def filled(self) -> Filled:
        """Return the answer; different candidates with equal text are given once."""
        answers = [filling.answer() for filling in self._fillings]
        distinct = list({answer.text: answer for answer in reversed(answers)}.values())[::-1]
        ended = self._ended or time.perf_counter()
        return Filled(
            id=self.fill.id,
            candidates=distinct,
            steps=self._fillings[0].steps if self._fillings else 0,
            rule=self._way.rule,
            context_tokens=len(self._layout.context) + len(self._layout.before) + len(self._layout.after),
            cached_tokens=self._cached,
            ms=Timings(
                queue=round((self._started - self._submitted) * 1000, 3),
                encode=round(self._encode_ms, 3),
                denoise=round(self._denoise_ms, 3),
                total=round((ended - self._submitted) * 1000, 3),
            ),
        )

    def release(self, cache: ContextCache) -> None:
        """Give the context back, cut to the hole's own tokens: the fill's would never be asked for again."""
        self._context.truncate(len(self._layout.context))
        cache.give_back(self._context)
