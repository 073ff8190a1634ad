"""Denoising steps over the canvases of many holes: one forward, then acceptance and renoising, all on the device."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

import attrs
import torch
from torch import Tensor

from engine.models.diffusion_gemma.attention import ContextSegment
from engine.models.diffusion_gemma.canvas import Canvas, CanvasPass, CanvasState, StepResult
from engine.models.diffusion_gemma.context import RollingContext
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import Noise, key_of
from engine.models.diffusion_gemma.read_logits import Draws, RowReadings, read_logits


class StepRunner(Protocol):
    """A faster way to run the steps of some passes: captured graphs."""

    def run(
        self, passes: Sequence[CanvasPass], lengths: Sequence[int], states: Sequence[Sequence[CanvasState]]
    ) -> list[list[CanvasState]] | None:
        """Return the states after the steps of each pass; None if it cannot run these passes."""
        ...


@attrs.frozen
class _CanvasWork:
    """One step of a canvas that follows the first `length` tokens of its context. `step` counts from 0."""

    canvas: Canvas
    state: CanvasState
    context: RollingContext
    length: int
    step: int
    temperature: float


class Denoiser:
    """The sampler of the released model, with fixed tokens after the middle.

    A canvas stops when it is stable (the most likely tokens are those of the step before) and confident (the mean
    entropy is below `confident` nats). `noise` is the only randomness. `forbidden` tokens are never drawn. `captured`
    runs the passes that it can; None runs all here.
    """

    def __init__(
        self,
        network: DiffusionNetwork,
        noise: Noise,
        confident: float,
        forbidden: Sequence[int] = (),
        captured: StepRunner | None = None,
    ) -> None:
        self._network, self._noise, self._confident, self._device = network, noise, confident, network.device
        self._forbidden = torch.tensor(forbidden, dtype=torch.long, device=network.device)
        self.captured = captured

    @torch.inference_mode()
    def run(self, passes: Sequence[CanvasPass], lengths: Sequence[int]) -> list[list[CanvasState]]:
        """Return the states of each pass's canvases after its steps. The canvases themselves do not change.

        `lengths` are the tokens of each context that have been read.
        """
        states = [[canvas.state or self._begin(canvas) for canvas in each.canvases] for each in passes]
        captured_states = None if self.captured is None else self.captured.run(passes, lengths, states)
        if captured_states is not None:
            return captured_states
        for step in range(max(len(each.temperatures) for each in passes)):
            running = [index for index, each in enumerate(passes) if step < len(each.temperatures)]
            works = [
                _CanvasWork(canvas, state, each.context, lengths[index], canvas.step + step, temperature)
                for index in running
                for each, temperature in [(passes[index], passes[index].temperatures[step])]
                for canvas, state in zip(each.canvases, states[index], strict=True)
            ]
            new_states = iter(self._step(works))
            for index in running:
                states[index] = [next(new_states) for _ in states[index]]
        return states

    def _begin(self, canvas: Canvas) -> CanvasState:
        return CanvasState(
            tokens=self._noise.uniform(self._keys(canvas, 0)),
            after=torch.tensor(canvas.after, dtype=torch.long, device=self._device),
            signal=None,
            result=None,
            stopped=torch.zeros((), dtype=torch.bool, device=self._device),
        )

    def _keys(self, canvas: Canvas, step: int) -> Tensor:
        return key_of(canvas.seed, step, torch.arange(canvas.first, canvas.first + canvas.length, device=self._device))

    def _step(self, works: Sequence[_CanvasWork]) -> list[CanvasState]:
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
        readings = read_logits(self._network, self._noise, self._forbidden, torch.cat(middles), draws)
        stops = list(accumulate(work.canvas.length for work in works))
        return [
            self._next(work, readings.part(stop - work.canvas.length, stop), canvas_keys)
            for work, stop, canvas_keys in zip(works, stops, keys, strict=True)
        ]

    def _signals(self, state: CanvasState) -> Tensor:
        """Return a canvas's signals [rows, width].

        Before the first step they are zeros, as in training. Later the middle has the embeddings that the last step
        expects, and the fixed tokens after it have their own.
        """
        if state.signal is None:
            rows = len(state.tokens) + len(state.after)
            return torch.zeros(rows, self._network.width, dtype=self._network.dtype, device=self._device)
        return torch.cat([state.signal, self._network.embed(state.after)])

    def _next(self, work: _CanvasWork, readings: RowReadings, keys: Tensor) -> CanvasState:
        old = work.state
        accepted = work.canvas.accept(readings.entropy, readings.confidence)
        tokens = torch.where(accepted, readings.drawn, self._noise.uniform(keys))
        result = StepResult(readings.likeliest, readings.confidence, readings.entropy, accepted)
        if old.signal is None or old.result is None:
            return CanvasState(tokens, old.after, readings.signal, result, old.stopped)
        stable = (readings.likeliest == old.result.likeliest).all()
        settled = stable & (readings.entropy.mean() < self._confident)

        def unless_stopped(before: Tensor, now: Tensor) -> Tensor:
            """A stopped canvas still runs until the end of the pass, but keeps its values."""
            return torch.where(old.stopped, before, now)

        return CanvasState(
            tokens=unless_stopped(old.tokens, tokens),
            after=old.after,
            signal=unless_stopped(old.signal, readings.signal),
            result=StepResult(
                likeliest=unless_stopped(old.result.likeliest, result.likeliest),
                confidence=unless_stopped(old.result.confidence, result.confidence),
                entropy=unless_stopped(old.result.entropy, result.entropy),
                accepted=unless_stopped(old.result.accepted, result.accepted),
            ),
            stopped=old.stopped | settled,
        )
