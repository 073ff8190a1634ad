"""A Dream-shaped network on a GPU: a fill over a cached surrounding, and the loop that DreamOn's authors describe."""

import torch
from torch import Tensor

from benchmarks.gpu.gpu_floor import DenseShape, milliseconds
from benchmarks.gpu.gpu_models import FULL_DREAM, TINY_DREAM, dream_of
from benchmarks.gpu.gpu_run import Figure, Run
from engine.fill.denoise import by_threshold, min_commits
from engine.fill.sampler import Query, Sampler
from engine.library.device_memory import BYTES_PER_PARAMETER
from engine.models.masked.network import CapturedMiddles, MaskedNetwork
from engine.models.masked.rows import MaskedPass, SurroundingCache
from engine.models.predict import predict

MIDDLE = 16
STEPS = 6
"""A random network is confident of nothing, so the rule commits exactly as many tokens as the number of steps asks
for.
"""
SIDES, TINY_SIDES = (768, 256), (48, 16)
WINDOW = 2048
MASK = 5


class _Bench:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.shape: DenseShape = FULL_DREAM if run.full else TINY_DREAM
        before, after = SIDES if run.full else TINY_SIDES
        self.before = [7 + number % 1000 for number in range(before)]
        self.after = [9 + number % 1000 for number in range(after)]
        self.model = dream_of(self.shape, run.device, run.precision, WINDOW)
        self.network = MaskedNetwork(self.model)
        self.captured = CapturedMiddles(self.network)

    def logits(self, passes: list[MaskedPass]) -> list[Tensor]:
        return self.captured.run(passes) or self.network.run(passes)

    def cached_fill(self) -> int:
        """Fill MIDDLE positions in STEPS steps, the surrounding read in the first; return the number of committed
        tokens.
        """
        sides = SurroundingCache(self.before, self.after, shifted=True, room=MIDDLE)
        forbidden = torch.tensor([MASK], device=self.run.device)
        places: list[int | None] = [None] * MIDDLE
        for step in range(STEPS):
            masks = [at for at, token in enumerate(places) if token is None]
            if not masks:
                break
            shown = [MASK if token is None else token for token in places]
            wanted = [sides.row_of(at, shifted=True) for at in masks]
            (logits,) = self.logits([MaskedPass(sides, [shown], wanted, step == 0)])
            (predictions,) = predict(logits, [Query()], [len(masks)], forbidden)
            proposal = Sampler().propose(predictions, masks)
            for rank in by_threshold(proposal, min_commits(len(masks), STEPS - step)):
                places[masks[rank]] = proposal.tokens[rank]
        return MIDDLE - places.count(None)

    def released_fill(self) -> int:
        """Fill as DreamOn's authors describe it; return the number of committed tokens.

        In each step all tokens go through the network, and the mask with the lowest entropy is committed. There are no
        expansions, which would only take longer.
        """
        device, start = self.run.device, len(self.before)
        tokens = torch.tensor([[*self.before, *[MASK] * MIDDLE, *self.after]], device=device)
        visible = torch.ones(1, 1, tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=device)
        for _ in range(MIDDLE):
            logits: Tensor = self.model(tokens, attention_mask=visible, use_cache=False).logits
            shifted = torch.cat((logits[:, :1], logits[:, :-1]), dim=1)[tokens == MASK].float()
            shifted[:, MASK] = -torch.inf
            probabilities = shifted.softmax(-1)
            entropy = -(probabilities * (probabilities + 1e-10).log()).sum(-1)
            places = (tokens[0] == MASK).nonzero()[:, 0]
            chosen = entropy.argmin()
            tokens[0, places[chosen]] = shifted[chosen].argmax()
        return int((tokens[0, start : start + MIDDLE] != MASK).sum())


@torch.inference_mode()
def fill(run: Run) -> None:
    """Measure both fills in the same run, and one step over a cached surrounding next to its floor."""
    bench = _Bench(run)
    assert bench.cached_fill() == bench.released_fill() == MIDDLE
    own = milliseconds(bench.cached_fill, run.device, 5)
    other = milliseconds(bench.released_fill, run.device, 3)
    sides, speeds, size = len(bench.before) + len(bench.after), run.speeds(), BYTES_PER_PARAMETER[run.precision]
    least = bench.shape.step(sides + MIDDLE, 0, size).floor_ms(speeds)
    step_floor = bench.shape.step(MIDDLE + 1, sides, size).floor_ms(speeds)
    least += (STEPS - 1) * step_floor
    note = f"{STEPS} steps against {MIDDLE}"
    Figure(f"Dream fill, {MIDDLE} tokens over {sides}", own, least, other, note=note).show(run)
    kept = SurroundingCache(bench.before, bench.after, shifted=True, room=MIDDLE)
    rows = range(MIDDLE)
    bench.logits([MaskedPass(kept, [[MASK] * MIDDLE], rows, True)])
    step = [MaskedPass(kept, [[MASK] * MIDDLE], rows, False)]
    Figure("Dream step over kept sides", milliseconds(lambda: bench.logits(step), run.device), step_floor).show(run)
