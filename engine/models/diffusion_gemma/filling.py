"""Filling a hole on canvases whose end, the suffix, is held in place; and the sampler's settings."""

from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from typing import Any

import attrs

from engine.errors import ModelError
from engine.fill.filling import BaseFilling
from engine.fill.interface import FillTask, Model, expect_type
from engine.fill.sampler import PassResult
from engine.json_file import read_json
from engine.models.diffusion_gemma.canvas import AcceptRule, Canvas, CanvasPass, CanvasResult
from engine.models.diffusion_gemma.layers import RollingContext
from engine.protocol.messages import Finish


@attrs.frozen
class SamplerSettings:
    """How canvases are denoised.

    ends: the tokens that end a text
    entropy_bound: in nats, for by_entropy
    confident: in nats; a stable canvas with a lower mean entropy is done
    hottest, coolest: the temperature falls from one to the other
    most_steps: of one canvas
    """

    ends: tuple[int, ...]
    entropy_bound: float = 0.1
    confident: float = 0.005
    hottest: float = 0.8
    coolest: float = 0.4
    most_steps: int = 48

    def temperature(self, left: int, steps: int, hottest: float) -> float:
        """Return the temperature of a step when `left` of `steps` remain, including this one.

        The schedule starts at `hottest` and falls by the same share as the checkpoint's own.
        """
        coolest = hottest * self.coolest / self.hottest
        return coolest + (hottest - coolest) * left / steps


def read_settings(folder: Path, ends: object) -> SamplerSettings:
    """Read a checkpoint's settings in generation_config.json; missing ones are those of the released checkpoint.

    `ends` is eos_token_id in config.json. Raises ModelError for invalid values.
    """
    path = folder / "generation_config.json"
    try:
        content: dict[str, Any] = read_json(path) if path.exists() else {}
        sampler = content.get("sampler_config") or {}
        configured = {
            "entropy_bound": sampler.get("entropy_bound"),
            "confident": content.get("confidence_threshold"),
            "hottest": content.get("t_max"),
            "coolest": content.get("t_min"),
        }
        numbers = {name: float(value) for name, value in configured.items() if value is not None}
        end_ids = content.get("eos_token_id", ends)
        tokens = tuple(int(token) for token in (end_ids if isinstance(end_ids, list) else [end_ids]))
        return SamplerSettings(tokens, **numbers, most_steps=int(content.get("max_denoising_steps") or 48))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} cannot be read: {error}; install the model again") from None


SHORT = (4, 8, 16, 32)
"""Lengths of the middle that are tried first."""


@attrs.frozen
class Pace:
    """How a hole is denoised: in `steps` steps a canvas, `steps_a_pass` of them in one pass."""

    accept: AcceptRule
    steps: int
    steps_a_pass: int


@attrs.frozen
class _Outcome:
    """A canvas after a pass. For each position of its middle: the most likely token, its probability, and whether the
    canvas accepted it; `mean_entropy` in nats."""

    canvas: Canvas
    tokens: list[tuple[int, float, bool]]
    mean_entropy: float
    stopped: bool

    @classmethod
    def of(cls, canvas: Canvas, result: CanvasResult, start: int, stop: int) -> "_Outcome":
        """Return the outcome of a canvas whose middle is positions `start` to `stop` of a result."""
        part = result.predictions.part(start, stop)
        confidence, accepted = part.probabilities[:, 0].tolist(), result.accepted[start:stop].tolist()
        tokens = list(zip(part.tokens[:, 0].tolist(), confidence, accepted, strict=True))
        return cls(canvas, tokens, float(part.entropy.mean()), bool(result.stopped[start]))


class CanvasFilling(BaseFilling):
    """The length of a middle is not known. So the first step runs canvases of several lengths, and the one whose middle
    has the lowest mean entropy goes on. If the longest wins, longer ones are tried against it. The longest of all has
    no suffix after it; once it is full, another canvas follows. A hole without a suffix has only such canvases."""

    def __init__(self, model: Model, task: FillTask, settings: SamplerSettings, pace: Pace) -> None:
        super().__init__(model, task)
        self._context, self._settings, self._pace = expect_type(task.context, RollingContext), settings, pace
        self._widest = model.info.canvas_tokens
        self._begin_canvas()

    def _begin_canvas(self) -> None:
        self._steps_left = self._pace.steps
        self._best: _Outcome | None = None
        self._trying = bool(self.task.layout.after)
        self._canvases = self._of_lengths(SHORT) if self._trying else [self._open_canvas()]

    @property
    def _room(self) -> int:
        """The most tokens that the fill may still get."""
        return self.task.bounds.max_tokens - len(self.tokens)

    def _of_lengths(self, lengths: Sequence[int]) -> list[Canvas]:
        """Return canvases with the suffix after them, none longer than there is room for."""
        after = self.task.layout.after
        room = min(self._room, self._widest - len(after))
        return [self._canvas(length, after) for length in sorted({min(length, room) for length in lengths})]

    def _open_canvas(self) -> Canvas:
        return self._canvas(min(self._room, self._widest), [])

    def _canvas(self, length: int, after: list[int]) -> Canvas:
        sampler, accept = self.task.sampler, self._pace.accept
        return Canvas(length, after, accept, len(self.tokens), sampler.seed, sampler.temperature <= 0, sampler.top_p)

    def _longer(self, length: int) -> list[Canvas]:
        """Return the canvases to try once that of `length` has won against all shorter ones."""
        doubled = [length << times for times in range(1, self._widest.bit_length()) if length << times < self._widest]
        with_suffix = self._of_lengths([*doubled, self._widest])
        more = [] if self._room <= with_suffix[-1].length else [self._open_canvas()]
        return [canvas for canvas in with_suffix if canvas.length > length] + more

    def ends(self, token: int) -> bool:
        return token in self._settings.ends or super().ends(token)

    def next_pass(self) -> CanvasPass:
        unread = [*self.task.layout.context, *self.tokens][len(self._context.tokens) :]
        hottest = self.task.sampler.temperature if self.task.sampler.temperature > 0 else self._settings.hottest
        temperatures = [
            self._settings.temperature(self._steps_left - done, self._pace.steps, hottest)
            for done in range(self._steps_a_pass)
        ]
        return CanvasPass(self._context, unread, self._canvases, temperatures)

    @property
    def _steps_a_pass(self) -> int:
        """The steps of the next pass; one while lengths are tried."""
        return 1 if self._trying else min(self._pace.steps_a_pass, self._steps_left)

    def absorb(self, result: PassResult, steps_left: int) -> None:
        canvas_result = expect_type(result, CanvasResult)
        steps = self._steps_a_pass
        for canvas, state in zip(self._canvases, canvas_result.states, strict=True):
            canvas.state, canvas.step = state, canvas.step + steps
        self.steps += steps
        affordable = (steps_left - 1) * self._pace.steps_a_pass
        self._steps_left = min(self._steps_left - steps, affordable)
        bounds = pairwise([0, *accumulate(canvas.length for canvas in self._canvases)])
        outcomes = [
            _Outcome.of(canvas, canvas_result, start, stop)
            for canvas, (start, stop) in zip(self._canvases, bounds, strict=True)
        ]
        if self._trying:
            rivals = [self._best, *outcomes] if self._best else outcomes
            longest, untried = outcomes[-1], self._best is None
            self._best = min(rivals, key=lambda outcome: outcome.mean_entropy)
            longer = self._longer(longest.canvas.length) if untried and self._best is longest else []
            if longer and affordable > 0:
                self._canvases, self._steps_left = longer, min(self._pace.steps, affordable)
                return
            self._trying = False
        else:
            (self._best,) = outcomes
        self._canvases = [self._best.canvas]
        if self._best.stopped or self._steps_left <= 0:
            self._end_canvas(self._best)

    def _end_canvas(self, done: _Outcome) -> None:
        """Commit the most likely tokens of a canvas. It joins the suffix after it, or another canvas follows."""
        for token, confidence, _ in done.tokens:
            self.commit(token, confidence)
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
            for token, confidence, _ in takewhile(lambda place: place[2], self._best.tokens):
                if not self._over():
                    self.commit(token, confidence)
        super().close(finish)

    def canvas(self) -> list[str | None]:
        shown = super().canvas()
        if self.finish is None and self._best is not None:
            shown += [self.vocabulary.texts_of([token])[0] if kept else None for token, _, kept in self._best.tokens]
        return shown
