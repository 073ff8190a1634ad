"""DiffusionGemma on a GPU: steps next to their floors and to those of transformers, a whole fill, and its memory."""

from typing import Any

import torch

from benchmarks.gpu.gpu_floor import GemmaShape, milliseconds
from benchmarks.gpu.gpu_models import FULL_GEMMA, TINY_GEMMA, gemma_of
from benchmarks.gpu.gpu_run import Figure, Run
from engine.library.device_memory import BYTES_PER_PARAMETER
from engine.models.diffusion_gemma.canvas import Canvas, CanvasPass, SeededNoise, by_entropy
from engine.models.diffusion_gemma.cuda_graph import CapturedCanvases
from engine.models.diffusion_gemma.layers import ContextSegment, DiffusionNetwork, RollingContext
from engine.models.diffusion_gemma.model import Denoiser

CANVASES = (16, 64, 256)
CONTEXT, TINY_CONTEXT = 2048, 96
STEPS = 6
_GIB = 1 << 30


class _Bench:
    """The model, its network with all possible captured graphs, and a context that has been read."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.shape: GemmaShape = FULL_GEMMA if run.full else TINY_GEMMA
        self.length = CONTEXT if run.full else TINY_CONTEXT
        self.model: Any = gemma_of(self.shape, run.device, run.precision)
        self.network = DiffusionNetwork(self.model)
        self.noise = SeededNoise(self.network.vocabulary, run.device)
        self.tokens = torch.arange(self.length, device=run.device) % self.network.vocabulary
        self.contexts: list[RollingContext] = []

    def denoiser(self, captured: bool) -> Denoiser:
        runner = CapturedCanvases(self.network, self.noise, confident=0.0) if captured else None
        return Denoiser(self.network, self.noise, confident=0.0, captured=runner)

    def context(self, number: int = 0) -> RollingContext:
        """Return one of several contexts; it is read when it is first needed."""
        while len(self.contexts) <= number:
            made = self.network.new_context()
            made.reserve(self.length)
            tokens = self.tokens.roll(len(self.contexts))
            self.network.read(tokens, self.tokens, [ContextSegment(made, 0, 0, self.length)])
            made.tokens = tokens.tolist()
            self.contexts.append(made)
        return self.contexts[number]

    def passes(self, canvas: int, steps: int, holes: int = 1) -> list[CanvasPass]:
        heats = [0.8 - 0.05 * step for step in range(steps)]
        return [
            CanvasPass(self.context(number), [], [Canvas(canvas, [], by_entropy(0.1), seed=number)], heats)
            for number in range(holes)
        ]

    def step_ms(self, denoiser: Denoiser, canvas: int) -> float:
        """Return the time of a step, measured as half of a pass of two steps, as fills run them."""
        passes, lengths = self.passes(canvas, 2), [self.length]
        for item, (state,) in zip(passes, denoiser.run(passes, lengths), strict=True):
            item.canvases[0].state = state  # not the first step any more, which has no signal
        return milliseconds(lambda: denoiser.run(passes, lengths), self.run.device) / 2

    def floor_ms(self, rows: int) -> float:
        work = self.shape.step(rows, self.length, BYTES_PER_PARAMETER[self.run.precision])
        return work.floor_ms(self.run.speeds())


@torch.inference_mode()
def steps(run: Run) -> None:
    """Measure one step at each canvas size, captured and not, next to its floor."""
    bench = _Bench(run)
    for canvas in CANVASES:
        floor = bench.floor_ms(canvas)
        for captured in (True, False):
            kind = "captured" if captured else "plain"
            ms = bench.step_ms(bench.denoiser(captured), canvas)
            Figure(f"DiffusionGemma step, canvas {canvas}, {kind}", ms, floor).show(run)


@torch.inference_mode()
def against_generate(run: Run) -> None:
    """Compare a step with one of transformers' generate on the same weights.

    Its time is the difference between two lengths of generate's loop.
    """
    bench = _Bench(run)
    canvas = 64 if run.full else 16
    own = bench.step_ms(bench.denoiser(captured=True), canvas)
    bench.model.config.canvas_length = canvas

    def generate(count: int) -> object:
        return bench.model.generate(
            bench.tokens[None],
            max_new_tokens=canvas,
            max_denoising_steps=count,
            confidence_threshold=1e-9,
            eos_token_id=None,
        )

    few, many = 2, 8
    other = milliseconds(lambda: generate(many), run.device, 3) - milliseconds(lambda: generate(few), run.device, 3)
    Figure(f"DiffusionGemma step, canvas {canvas}, against generate", own, other_ms=other / (many - few)).show(run)


@torch.inference_mode()
def fill(run: Run) -> None:
    """Measure a fill of 32 tokens in six steps, two a pass, after a cached context."""
    bench = _Bench(run)
    denoiser = bench.denoiser(captured=True)
    length = 32 if run.full else 8

    def whole() -> None:
        passes = bench.passes(length, 2)
        for _ in range(STEPS // 2):
            for item, (state,) in zip(passes, denoiser.run(passes, [bench.length]), strict=True):
                (canvas,) = item.canvases
                canvas.state, canvas.step = state, canvas.step + 2
                assert state.result is not None
                state.result.likeliest.tolist()

    ms = milliseconds(whole, run.device)
    Figure(
        f"DiffusionGemma fill, {length} tokens, {STEPS} steps, cached {bench.length}",
        ms,
        STEPS * bench.floor_ms(length),
    ).show(run)


@torch.inference_mode()
def prefill(run: Run) -> None:
    """Measure reading the context in one piece."""
    bench = _Bench(run)
    context = bench.context()
    segments = [ContextSegment(context, 0, 0, bench.length)]
    ms = milliseconds(lambda: bench.network.read(bench.tokens, bench.tokens, segments), run.device, 3)
    Figure(f"DiffusionGemma prefill of {bench.length}", ms, bench.floor_ms(bench.length)).show(run)


@torch.inference_mode()
def memory(run: Run) -> None:
    """Measure what a step of eight canvases of 256 allocates temporarily; only a GPU counts it."""
    bench = _Bench(run)
    holes, canvas = (8, 256) if run.full else (2, 16)
    passes = bench.passes(canvas, 1, holes)
    denoiser, lengths = bench.denoiser(captured=False), [bench.length] * holes
    denoiser.run(passes, lengths)
    before = torch.cuda.memory_allocated() if run.device.type == "cuda" else 0
    if run.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    ms = milliseconds(lambda: denoiser.run(passes, lengths), run.device, 3)
    peak = (torch.cuda.max_memory_allocated() - before) / _GIB if run.device.type == "cuda" else 0.0
    note = f"peak of all temporaries together {peak:.2f} GiB" if peak else "memory is not counted without a GPU"
    Figure(f"DiffusionGemma step, {holes} canvases of {canvas}", ms, bench.floor_ms(holes * canvas), note=note).show(
        run
    )
