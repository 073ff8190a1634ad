"""A loaded DiffusionGemma: infilling on canvases with a clamped end, on the released layers.

A denoising step over the canvases of many holes is one forward, then acceptance and renoising, all on the device.
"""

from collections.abc import Sequence
from itertools import accumulate

import attrs
import torch
from torch import Tensor

from engine.errors import ModelError
from engine.fill.interface import Context, Filling, FillStrategy, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult
from engine.models.diffusion_gemma.canvas import (
    AcceptRule,
    Canvas,
    CanvasPass,
    CanvasState,
    Draws,
    Noise,
    RowReadings,
    SeededNoise,
    StepResult,
    by_entropy,
    by_threshold,
    key_of,
    read_logits,
    results_of,
)
from engine.models.diffusion_gemma.cuda_graph import CapturedCanvases
from engine.models.diffusion_gemma.filling import CanvasFilling, Pace, SamplerSettings
from engine.models.diffusion_gemma.layers import ContextSegment, DiffusionNetwork, RollingContext
from engine.models.diffusion_gemma.prompt import GemmaTokenBytes, Prompt
from engine.protocol.messages import Fill, HoleRequest, ModelInfo, RuleName


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
        captured: CapturedCanvases | None = None,
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


DEFAULT = FillStrategy("entropy", 8)
"""Few steps, for short fills. The temperature falls over them. The checkpoint's own number is 48."""
STEPS_A_PASS = 2
"""On a GPU, where reading a result waits for everything queued. A CPU takes one step a pass."""


class DiffusionGemmaModel:
    """Implements interface.Model. Rows of all holes share the matrix products; attention is each hole's own."""

    def __init__(
        self,
        info: ModelInfo,
        network: DiffusionNetwork,
        token_bytes: GemmaTokenBytes,
        prompt: Prompt,
        settings: SamplerSettings,
        threads: int,
    ) -> None:
        self.info, self.prompt, self.threads = info, prompt, threads
        self.default, self.end = DEFAULT, settings.ends[0]
        self.tokenizer = token_bytes.tokenizer
        self.memory_use: MemoryUse = "windows"
        self.never = tuple(sorted(token_bytes.without_text(network.vocabulary) - set(settings.ends)))
        self._network, self._token_bytes, self._settings = network, token_bytes, settings
        noise = SeededNoise(network.vocabulary, network.device)
        on_gpu = network.device.type == "cuda"
        captured = CapturedCanvases(network, noise, settings.confident, self.never) if on_gpu else None
        self._denoiser = Denoiser(network, noise, settings.confident, self.never, captured)
        self._steps_a_pass = STEPS_A_PASS if network.device.type == "cuda" else 1

    def lay_out(self, request: HoleRequest) -> Layout:
        if isinstance(request, Fill):
            self._rule(request.rule)  # A strategy that this model does not have is refused before anything is read.
        return self.prompt.lay_out(request)

    def new_context(self) -> RollingContext:
        return self._network.new_context()

    def read(self, context: Context, tokens: list[int]) -> CanvasPass:
        return CanvasPass(expect_type(context, RollingContext), tokens)

    def start_fill(self, task: FillTask) -> Filling:
        strategy = task.strategy
        pace = Pace(self._rule(strategy.rule), strategy.steps or self._settings.most_steps, self._steps_a_pass)
        return CanvasFilling(self, task, self._settings, pace)

    def _rule(self, rule: RuleName) -> AcceptRule:
        match rule:
            case "default" | "entropy":
                return by_entropy(self._settings.entropy_bound)
            case "threshold":
                return by_threshold
            case _:
                raise ModelError(f'{self.info.name} cannot fill by "{rule}"; use "entropy", "threshold" or "default"')

    @torch.inference_mode()
    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        canvas_passes = [expect_type(item, CanvasPass) for item in passes]
        lengths = [len(item.context.tokens) + len(item.append) for item in canvas_passes]
        for item, length in zip(canvas_passes, lengths, strict=True):
            needed = length + max((canvas.rows for canvas in item.canvases), default=0)
            if needed > self.prompt.window:
                raise ModelError(f"a hole needs {needed} positions; the model has {self.prompt.window} here")
        self._read([item for item in canvas_passes if item.append])
        drawn = [(item, length) for item, length in zip(canvas_passes, lengths, strict=True) if item.canvases]
        states = self._denoiser.run([item for item, _ in drawn], [length for _, length in drawn]) if drawn else []
        # Only now that all went well: a batch that fails is run again hole by hole, from where it was.
        for item in canvas_passes:
            item.context.tokens += item.append
        remaining = iter(states)
        return results_of([next(remaining) if item.canvases else [] for item in canvas_passes])

    def _read(self, passes: Sequence[CanvasPass]) -> None:
        """Write the keys and values of the appended tokens after the contexts."""
        if not passes:
            return
        tokens: list[int] = []
        positions: list[int] = []
        segments = []
        for item in passes:
            start, stop = len(item.context.tokens), len(item.context.tokens) + len(item.append)
            item.context.reserve(stop)
            segments.append(ContextSegment(item.context, start, len(tokens), len(tokens) + len(item.append)))
            tokens += item.append
            positions += range(start, stop)
        device = self._network.device
        self._network.read(torch.tensor(tokens, device=device), torch.tensor(positions, device=device), segments)

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._token_bytes.texts_of(tokens)

    def bytes_of(self, token: int) -> bytes:
        return self._token_bytes.bytes_of(token)

    def breaks_line(self, token: int) -> bool:
        return self._token_bytes.breaks_line(token)
