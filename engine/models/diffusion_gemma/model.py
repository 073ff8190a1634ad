"""DiffusionGemma as a family of the engine: clamped-canvas infilling on the released layers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.errors import ModelError
from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context, Layout, Pass, expect_type
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.models.diffusion_gemma.acceptance import by_entropy, by_threshold
from engine.models.diffusion_gemma.attention import ContextSegment
from engine.models.diffusion_gemma.canvas import AcceptRule, CanvasPass, CanvasState
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
"""Few steps for short fills; the temperature falls over as many as there are. The checkpoint's own are 48."""
STEPS_A_PASS = 2
"""On a GPU, where looking at a result waits for all that is queued. On a CPU nothing is queued, and it is one."""


class DiffusionGemmaModel:
    """Implements models.base.Model. Rows of all holes share the matrix products; attention is each hole's own."""

    def __init__(
        self,
        info: ModelInfo,
        network: DiffusionNetwork,
        pieces: GemmaTokenBytes,
        prompt: Prompt,
        settings: SamplerSettings,
        threads: int,
    ) -> None:
        self.info, self.prompt, self.threads = info, prompt, threads
        self.default, self.end = DEFAULT, settings.ends[0]
        self.never = tuple(sorted(pieces.without_text(network.vocabulary) - set(settings.ends)))
        self._network, self._pieces, self._settings = network, pieces, settings
        noise = SeededNoise(network.vocabulary, network.device)
        on_gpu = network.device.type == "cuda"
        captured = CapturedCanvases(network, noise, settings.confident, self.never) if on_gpu else None
        self._denoiser = Denoiser(network, noise, settings.confident, self.never, captured)
        self._steps_a_pass = STEPS_A_PASS if network.device.type == "cuda" else 1

    def lay_out(self, fill: Fill) -> Layout:
        self._rule(fill.rule)  # A way that this family does not have is refused before anything is read.
        return self.prompt.lay_out(fill)

    def new_context(self) -> RollingContext:
        return self._network.new_context()

    def read(self, context: Context, tokens: list[int]) -> CanvasPass:
        return CanvasPass(expect_type(context, RollingContext), tokens)

    def filling(self, context: Context, hole: Hole, sampler: Sampler, way: FillStrategy) -> Filling:
        pace = Pace(self._rule(way.rule), way.steps or self._settings.most_steps, self._steps_a_pass)
        return CanvasFilling(self, expect_type(context, RollingContext), hole, sampler, self._settings, pace)

    def _rule(self, rule: RuleName) -> AcceptRule:
        match rule:
            case "default" | "entropy":
                return by_entropy(self._settings.entropy_bound)
            case "threshold":
                return by_threshold
            case _:
                raise ModelError(f'{self.info.name} cannot fill by "{rule}"; use "entropy", "threshold" or "default"')

    @torch.inference_mode()
    def run(self, asked: Sequence[Pass]) -> list[Tensor]:
        passes = [expect_type(item, CanvasPass) for item in asked]
        lengths = [len(item.context.tokens) + len(item.append) for item in passes]
        for item, length in zip(passes, lengths, strict=True):
            needed = length + max((canvas.rows for canvas in item.canvases), default=0)
            if needed > self.info.context_tokens:
                raise ModelError(f"a hole needs {needed} positions; the model has {self.info.context_tokens}")
        self._read([item for item in passes if item.append])
        drawn = [(item, length) for item, length in zip(passes, lengths, strict=True) if item.canvases]
        states = self._denoiser.run([item for item, _ in drawn], [length for _, length in drawn]) if drawn else []
        # All went well: now it is written down. A batch that fails is run again hole by hole, from where it was.
        for item in passes:
            item.context.tokens += item.append
        for (item, _), of_pass in zip(drawn, states, strict=True):
            for canvas, state in zip(item.canvases, of_pass, strict=True):
                canvas.state, canvas.step = state, canvas.step + len(item.temperatures)
        if not drawn:
            return [torch.empty(5, 0) for _ in passes]
        found = torch.cat([_packed(state) for of_pass in states for state in of_pass], dim=1).cpu()
        return list(torch.split(found, [len(item.wanted) for item in passes], dim=1))

    def _read(self, passes: Sequence[CanvasPass]) -> None:
        """Write the keys and values of what the passes append behind their contexts."""
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
        return self._pieces.texts_of(tokens)

    def breaks_line(self, token: int) -> bool:
        return self._pieces.breaks_line(token)


def _packed(state: CanvasState) -> Tensor:
    """Return what the host needs of a canvas, fp32 [5, middle]; token numbers are exact in it up to 2**24."""
    found = state.result
    if found is None:
        raise ValueError("a canvas was run for no step")
    stopped = state.stopped.expand_as(found.accepted)
    return torch.stack([found.likeliest, found.confidence, found.entropy, found.accepted, stopped]).float()
