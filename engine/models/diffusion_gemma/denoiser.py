"""Denoising steps over the canvases of many holes: one forward, then acceptance and renoising, all on the device."""

from collections.abc import Sequence
from itertools import accumulate

import attrs
import torch
from torch import Tensor

from engine.models.diffusion_gemma.attention import ContextSegment
from engine.models.diffusion_gemma.canvas import Canvas, CanvasPass, CanvasState, Found
from engine.models.diffusion_gemma.context import RollingContext
from engine.models.diffusion_gemma.cuda_graph import MOST_CAPACITY, CapturedCanvases
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import Noise, key_of
from engine.models.diffusion_gemma.read_logits import Draws, RowReadings, read_logits


@attrs.frozen
class _Work:
    """A canvas in one step, the `step`th of its own, behind `length` tokens of its context."""

    canvas: Canvas
    state: CanvasState
    context: RollingContext
    length: int
    step: int
    temperature: float


class Denoiser:
    """The model's own sampler, with tokens after the middle held in place.

    A canvas that is stable (its likeliest tokens are those of the step before) and confident (its mean entropy is below
    `confident` nats) stays as it is. `noise` is all the randomness there is.
    """

    def __init__(
        self, network: DiffusionNetwork, noise: Noise, confident: float, forbidden: Sequence[int] = ()
    ) -> None:
        self._network, self._noise, self._confident, self._device = network, noise, confident, network.device
        self._forbidden = torch.tensor(forbidden, dtype=torch.long, device=network.device)
        self.captured: CapturedCanvases | None = None
        if network.device.type == "cuda":
            self.capture()

    def capture(self, capacity: int = MOST_CAPACITY) -> None:
        """From now on take steps over at most `capacity` positions in fixed memory, where they fit a bucket."""
        self.captured = CapturedCanvases(self._network, self._noise, self._forbidden, self._confident, capacity)

    @torch.inference_mode()
    def run(self, passes: Sequence[CanvasPass], lengths: Sequence[int]) -> list[list[CanvasState]]:
        """Return where the canvases of each pass are after its steps; the canvases themselves are left as they are.

        `lengths` says how many tokens of each context are read.
        """
        states = [[canvas.state or self._begin(canvas) for canvas in item.canvases] for item in passes]
        found_captured = None if self.captured is None else self.captured.run(passes, lengths, states)
        if found_captured is not None:
            return found_captured
        for step in range(max(len(item.temperatures) for item in passes)):
            running = [number for number, item in enumerate(passes) if step < len(item.temperatures)]
            works = [
                _Work(canvas, state, item.context, lengths[number], canvas.step + step, heat)
                for number in running
                for item, heat in [(passes[number], passes[number].temperatures[step])]
                for canvas, state in zip(item.canvases, states[number], strict=True)
            ]
            found = iter(self._step(works))
            for number in running:
                states[number] = [next(found) for _ in states[number]]
        return states

    def _begin(self, canvas: Canvas) -> CanvasState:
        return CanvasState(
            tokens=self._noise.uniform(self._keys(canvas, 0)),
            after=torch.tensor(canvas.after, dtype=torch.long, device=self._device),
            signal=None,
            found=None,
            stopped=torch.zeros((), dtype=torch.bool, device=self._device),
        )

    def _keys(self, canvas: Canvas, step: int) -> Tensor:
        return key_of(canvas.seed, step, torch.arange(canvas.first, canvas.first + canvas.length, device=self._device))

    def _step(self, works: Sequence[_Work]) -> list[CanvasState]:
        ends = list(accumulate(work.canvas.rows for work in works))
        starts = [0, *ends[:-1]]
        hidden = self._network.denoise(
            tokens=torch.cat([part for work in works for part in (work.state.tokens, work.state.after)]),
            signals=torch.cat([self._signals(work.state) for work in works]),
            positions=torch.cat(
                [torch.arange(work.length, work.length + work.canvas.rows, device=self._device) for work in works]
            ),
            segments=[
                ContextSegment(work.context, work.length, start, end)
                for work, start, end in zip(works, starts, ends, strict=True)
            ],
        )
        middles = [hidden[start : start + work.canvas.length] for work, start in zip(works, starts, strict=True)]
        keys = [self._keys(work.canvas, work.step + 1) for work in works]
        draws = Draws.of([work.canvas for work in works], [work.temperature for work in works], torch.cat(keys))
        seen = read_logits(self._network, self._noise, self._forbidden, torch.cat(middles), draws)
        stops = list(accumulate(work.canvas.length for work in works))
        return [
            self._next(work, seen.part(stop - work.canvas.length, stop), own)
            for work, stop, own in zip(works, stops, keys, strict=True)
        ]

    def _signals(self, state: CanvasState) -> Tensor:
        """Return a canvas's signals [rows, width]: nothing in its first step, as in training; later what the last step
        expects in the middle, and behind it what stands there."""
        if state.signal is None:
            rows = len(state.tokens) + len(state.after)
            return torch.zeros(rows, self._network.width, dtype=self._network.dtype, device=self._device)
        return torch.cat([state.signal, self._network.embed(state.after)])

    def _next(self, work: _Work, seen: RowReadings, keys: Tensor) -> CanvasState:
        old = work.state
        accepted = work.canvas.accept(seen.entropy, seen.confidence)
        tokens = torch.where(accepted, seen.drawn, self._noise.uniform(keys))
        found = Found(seen.likeliest, seen.confidence, seen.entropy, accepted)
        if old.signal is None or old.found is None:
            return CanvasState(tokens, old.after, seen.signal, found, old.stopped)
        settled = (seen.likeliest == old.found.likeliest).all() & (seen.entropy.mean() < self._confident)

        def unless_stopped(before: Tensor, now: Tensor) -> Tensor:
            """A canvas that had stopped has another step only because nobody has looked since."""
            return torch.where(old.stopped, before, now)

        return CanvasState(
            tokens=unless_stopped(old.tokens, tokens),
            after=old.after,
            signal=unless_stopped(old.signal, seen.signal),
            found=Found(
                likeliest=unless_stopped(old.found.likeliest, found.likeliest),
                confidence=unless_stopped(old.found.confidence, found.confidence),
                entropy=unless_stopped(old.found.entropy, found.entropy),
                accepted=unless_stopped(old.found.accepted, found.accepted),
            ),
            stopped=old.stopped | settled,
        )
