"""A loaded DiffusionGemma: infilling on canvases with a clamped end, on the released layers."""

from collections.abc import Sequence

import torch

from engine.errors import ModelError
from engine.fill.interface import Context, Filling, FillStrategy, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult
from engine.models.diffusion_gemma.acceptance import by_entropy, by_threshold
from engine.models.diffusion_gemma.attention import ContextSegment
from engine.models.diffusion_gemma.canvas import AcceptRule, CanvasPass
from engine.models.diffusion_gemma.canvas_result import results_of
from engine.models.diffusion_gemma.context import RollingContext
from engine.models.diffusion_gemma.cuda_graph import CapturedCanvases
from engine.models.diffusion_gemma.denoiser import Denoiser
from engine.models.diffusion_gemma.filling import CanvasFilling, Pace
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import SeededNoise
from engine.models.diffusion_gemma.prompt import Prompt
from engine.models.diffusion_gemma.settings import SamplerSettings
from engine.models.diffusion_gemma.token_bytes import GemmaTokenBytes
from engine.protocol.messages import Fill, ModelInfo, RuleName

DEFAULT = FillStrategy("entropy", 8)
"""Few steps, for short fills. The temperature falls over them. The checkpoint's own number is 48."""
STEPS_A_PASS = 2
"""On a GPU, where reading a result waits for everything queued. A CPU takes one step a pass."""


class DiffusionGemmaModel:
    """Implements models.base.Model. Rows of all holes share the matrix products; attention is each hole's own."""

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

    def lay_out(self, fill: Fill) -> Layout:
        self._rule(fill.rule)  # A strategy that this model does not have is refused before anything is read.
        return self.prompt.lay_out(fill)

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
