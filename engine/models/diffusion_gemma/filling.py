"""Filling a hole on canvases whose end, the suffix, is held in place."""

from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile

import attrs
from torch import Tensor

from engine.fill.filling import Filling, Hole
from engine.fill.interface import Model
from engine.fill.sampler import Sampler
from engine.models.diffusion_gemma.canvas import AcceptRule, Canvas, CanvasPass
from engine.models.diffusion_gemma.context import RollingContext
from engine.models.diffusion_gemma.settings import SamplerSettings
from engine.protocol.messages import Finish

SHORT = (4, 8, 16, 32)
"""Lengths of the middle that are tried first."""


@attrs.frozen
class Pace:
    """How a hole is denoised: in `steps` a canvas, `steps_a_pass` of them between two looks of the scheduler."""

    accept: AcceptRule
    steps: int
    steps_a_pass: int


@attrs.frozen
class _Outcome:
    """A canvas after a pass, with what Model.run returned for it [5, middle]."""

    canvas: Canvas
    found: Tensor

    @property
    def undecided(self) -> float:
        """The mean entropy of the middle, in nats."""
        return float(self.found[2].mean())

    @property
    def stopped(self) -> bool:
        return bool(self.found[4, 0])

    def tokens(self) -> list[tuple[int, float, bool]]:
        """Return the likeliest token of each position, its probability, and whether it was accepted."""
        likeliest, sure, _, accepted, _ = self.found.tolist()
        return [(int(token), one, bool(kept)) for token, one, kept in zip(likeliest, sure, accepted, strict=True)]


class CanvasFilling(Filling):
    """The length of a middle is not known, so a first step is made with canvases of several lengths, and the one whose
    middle is the most decided goes on. Where the longest wins, longer ones are tried against it. The longest of all has
    no suffix behind it; once it is full, another canvas follows. Without a suffix a hole has only such canvases.
    """

    def __init__(
        self,
        family: Model,
        context: RollingContext,
        hole: Hole,
        sampler: Sampler,
        settings: SamplerSettings,
        pace: Pace,
    ) -> None:
        super().__init__(family, context, hole, sampler)
        self._rolling, self._settings, self._pace = context, settings, pace
        self._widest = family.info.canvas_tokens
        self._begin_canvas()

    def _begin_canvas(self) -> None:
        self._left = self._pace.steps
        self._best: _Outcome | None = None
        self._trying = bool(self.hole.layout.after)
        self._canvases = self._of_lengths(SHORT) if self._trying else [self._open_canvas()]

    def _of_lengths(self, lengths: Sequence[int]) -> list[Canvas]:
        """Return canvases with the suffix behind them, none longer than there is room for."""
        after = self.hole.layout.after
        room = min(self.hole.max_tokens - len(self.tokens), self._widest - len(after))
        return [self._canvas(length, after) for length in sorted({min(length, room) for length in lengths})]

    def _open_canvas(self) -> Canvas:
        return self._canvas(min(self.hole.max_tokens - len(self.tokens), self._widest), [])

    def _canvas(self, length: int, after: list[int]) -> Canvas:
        sampler, accept = self.sampler, self._pace.accept
        return Canvas(length, after, accept, len(self.tokens), sampler.seed, sampler.temperature <= 0, sampler.top_p)

    def _longer(self, length: int) -> list[Canvas]:
        """Return the canvases to try once that of `length` has won against all shorter ones."""
        doubled = [length << times for times in range(1, self._widest.bit_length()) if length << times < self._widest]
        clamped = self._of_lengths([*doubled, self._widest])
        longest = clamped[-1].length
        more = [] if self.hole.max_tokens - len(self.tokens) <= longest else [self._open_canvas()]
        return [canvas for canvas in clamped if canvas.length > length] + more

    def ends(self, token: int) -> bool:
        return token in self._settings.ends or super().ends(token)

    def next_pass(self) -> CanvasPass:
        unread = [*self.hole.layout.context, *self.tokens][len(self.context.tokens) :]
        hottest = self.sampler.temperature if self.sampler.temperature > 0 else self._settings.hottest
        temperatures = [
            self._settings.temperature(self._left - done, self._pace.steps, hottest) for done in range(self._steps)
        ]
        return CanvasPass(self._rolling, unread, self._canvases, temperatures)

    @property
    def _steps(self) -> int:
        """The steps of the next pass; one while lengths are tried."""
        return 1 if self._trying else min(self._pace.steps_a_pass, self._left)

    def absorb(self, found: Tensor, steps_left: int) -> None:
        self.steps += self._steps
        affordable = (steps_left - 1) * self._pace.steps_a_pass
        self._left = min(self._left - self._steps, affordable)
        bounds = [0, *accumulate(canvas.length for canvas in self._canvases)]
        outcomes = [
            _Outcome(canvas, found[:, start:stop])
            for canvas, (start, stop) in zip(self._canvases, pairwise(bounds), strict=True)
        ]
        if self._trying:
            rivals = [self._best, *outcomes] if self._best else outcomes
            longest, untried = outcomes[-1], self._best is None
            self._best = min(rivals, key=lambda outcome: outcome.undecided)
            longer = self._longer(longest.canvas.length) if untried and self._best is longest else []
            if longer and affordable > 0:
                self._canvases, self._left = longer, min(self._pace.steps, affordable)
                return
            self._trying = False
        else:
            (self._best,) = outcomes
        self._canvases = [self._best.canvas]
        if self._best.stopped or self._left <= 0:
            self._end_canvas(self._best)

    def _end_canvas(self, done: _Outcome) -> None:
        """Commit the likeliest tokens of a canvas; it joins the suffix behind it, or else another canvas follows."""
        for token, sure, _ in done.tokens():
            self.commit(token, sure)
            if self._over():
                return
        if done.canvas.after:
            self.finish = "complete"
        else:
            self._begin_canvas()

    def _over(self) -> bool:
        return self.finish is not None

    def close(self, finish: Finish) -> None:
        """End with the gapless start of what the canvas has accepted."""
        if self.finish is None and self._best is not None:
            for token, sure, _ in takewhile(lambda place: place[2], self._best.tokens()):
                if not self._over():
                    self.commit(token, sure)
        super().close(finish)

    def canvas(self) -> list[str | None]:
        shown = super().canvas()
        if self.finish is None and self._best is not None:
            shown += [self.family.texts_of([token])[0] if kept else None for token, _, kept in self._best.tokens()]
        return shown
