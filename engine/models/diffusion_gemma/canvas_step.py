"""One denoising step of a batch of canvases in fixed memory: forward, middle rows' logits, draw, accept, renoise.

Nothing in it asks the device for anything, and no shape depends on what it finds, so it can be captured and replayed:
what one step writes the next one reads.
"""

import math

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.models.cuda_graphs.attention import Sight, SlotAttention
from engine.models.cuda_graphs.slots import Slots
from engine.models.diffusion_gemma.canvas import AcceptRule
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import Noise, key_of
from engine.models.diffusion_gemma.read_logits import Draws, read_logits

STEPS_A_PASS = 8
"""More in one pass take the plain way."""
_NEVER_DECIDED = 1e9
"""The entropy (nats) of padding: rules that take the most decided positions come to it last."""


@attrs.frozen
class CanvasBucket:
    """A shape that graphs are captured for: `slots` contexts with `rows` canvas rows each, which see `capacity`
    positions; `canvases` with middles of at most `middle` tokens; and what the steps do with what they find: the rule,
    whether any token is drawn, and whether from the likeliest ones only."""

    slots: int
    rows: int
    capacity: int
    canvases: int
    middle: int
    accept: AcceptRule
    some: bool
    cut: bool


@attrs.define
class StepInputs:
    """What the host says of a pass, int64; bools are 0 and 1.

    positions: [slots * rows], as the rotary embedding counts
    lengths [slots], begins and ends [slots, rows]: what the rows see, see captured.attention.Sight
    places: [canvases, middle], the row of each position of the middles; for padding the row behind all others
    seeds, firsts, steps, counts: [canvases], the steps taken before this pass and those to take in it
    greedy, begun: [canvases], as in canvas.Canvas, and whether a step was taken before
    """

    positions: NDArray[np.int64]
    lengths: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: NDArray[np.int64]
    seeds: NDArray[np.int64]
    firsts: NDArray[np.int64]
    steps: NDArray[np.int64]
    counts: NDArray[np.int64]
    greedy: NDArray[np.int64]
    begun: NDArray[np.int64]

    @classmethod
    def nothing(cls, bucket: CanvasBucket) -> "StepInputs":
        """Return what says that all is padding, which sees the rows of its slot."""
        shape = (bucket.slots, bucket.rows)
        rows = bucket.slots * bucket.rows
        return cls(
            np.zeros(rows, np.int64),
            np.zeros(bucket.slots, np.int64),
            np.zeros(shape, np.int64),
            np.full(shape, bucket.rows, np.int64),
            np.full((bucket.canvases, bucket.middle), rows, np.int64),
            *np.zeros((6, bucket.canvases), np.int64),
        )

    def parts(self) -> list[NDArray[np.int64]]:
        return list(attrs.astuple(self, recurse=False))


class CanvasMemory:
    """What a step reads and writes.

    told: StepInputs, one after the other
    heat: fp32 [canvases, STEPS_A_PASS], the temperatures; top_p: fp32 [canvases]
    tokens, signals: [slots * rows + 1], [slots * rows + 1, width]; the last row takes the padding of middles
    taken: int64 [], the steps taken in this pass; stopped: bool [canvases]
    likeliest int64, confidence and entropy fp32, accepted bool: [canvases, middle], as in canvas.Found
    """

    def __init__(self, bucket: CanvasBucket, width: int, dtype: torch.dtype, device: torch.device) -> None:
        rows, count, shape = bucket.slots * bucket.rows, bucket.canvases, (bucket.canvases, bucket.middle)
        self._shapes = [part.shape for part in StepInputs.nothing(bucket).parts()]
        self.told = torch.zeros(sum(math.prod(shape) for shape in self._shapes), dtype=torch.long, device=device)
        self.heat, self.top_p = torch.ones(count, STEPS_A_PASS, device=device), torch.ones(count, device=device)
        self.tokens = torch.zeros(rows + 1, dtype=torch.long, device=device)
        self.signals = torch.zeros(rows + 1, width, dtype=dtype, device=device)
        self.taken = torch.zeros((), dtype=torch.long, device=device)
        self.stopped = torch.zeros(count, dtype=torch.bool, device=device)
        self.likeliest = torch.zeros(shape, dtype=torch.long, device=device)
        self.accepted = torch.zeros(shape, dtype=torch.bool, device=device)
        self.confidence, self.entropy = torch.zeros(shape, device=device), torch.zeros(shape, device=device)
        self.tell(StepInputs.nothing(bucket))

    def tell(self, told: StepInputs) -> None:
        """Take what the host says, in one copy."""
        self.told.copy_(torch.from_numpy(np.concatenate([part.ravel() for part in told.parts()])))

    def parts(self) -> list[Tensor]:
        """Return the tensors of `told`, in the order of StepInputs's fields."""
        sizes = [math.prod(shape) for shape in self._shapes]
        return [part.view(shape) for part, shape in zip(torch.split(self.told, sizes), self._shapes, strict=True)]


class CanvasStep:
    """Implements graphs.Step. captured_canvases fills its memory, and reads it after the last step."""

    def __init__(
        self,
        network: DiffusionNetwork,
        slots: Slots,
        noise: Noise,
        forbidden: Tensor,
        confident: float,
        bucket: CanvasBucket,
    ) -> None:
        self._network, self._slots, self._noise = network, slots, noise
        self._forbidden, self._confident, self.bucket = forbidden, confident, bucket
        self.memory = CanvasMemory(bucket, network.width, network.dtype, network.device)

    def compute(self) -> Tensor:
        """Take every canvas that has steps left and has not stopped one step further; return which have stopped."""
        bucket, memory = self.bucket, self.memory
        positions, lengths, begins, ends, places, seeds, firsts, steps, counts, greedy, begun = memory.parts()
        hidden = self._forward(positions, Sight(lengths, begins, ends, lengths[:, None].expand_as(begins)))
        present = places < len(hidden)
        keys = key_of(
            seeds[:, None],
            (steps + memory.taken)[:, None] + 1,
            firsts[:, None] + torch.arange(bucket.middle, device=places.device),
        )
        draws = Draws(
            keys=keys.flatten(),
            temperature=self._spread(memory.heat.index_select(1, memory.taken[None])[:, 0]),
            top_p=self._spread(memory.top_p),
            greedy=self._spread(greedy != 0),
            some=bucket.some,
            cut=bucket.cut,
        )
        middles = hidden[places.clamp(max=len(hidden) - 1).flatten()]
        seen = read_logits(self._network, self._noise, self._forbidden, middles, draws)
        likeliest, confidence, entropy, drawn = (
            each.view(places.shape) for each in (seen.likeliest, seen.confidence, seen.entropy, seen.drawn)
        )
        decided = torch.where(present, entropy, _NEVER_DECIDED)
        accepted = bucket.accept(decided, torch.where(present, confidence, -1.0)) & present
        over = memory.stopped | (memory.taken >= counts)
        self._renew_rows(places, over, torch.where(accepted, drawn, self._noise.uniform(keys)), seen.signal)
        same = ((likeliest == memory.likeliest) | ~present).all(-1)
        mean = torch.where(present, entropy, 0.0).sum(-1) / present.sum(-1).clamp(min=1)
        settled = same & (mean < self._confident) & (begun + memory.taken > 0)
        for known, now in (
            (memory.likeliest, likeliest),
            (memory.confidence, confidence),
            (memory.entropy, entropy),
            (memory.accepted, accepted),
        ):
            known.copy_(torch.where(over[:, None], known, now))
        memory.stopped.logical_or_(settled & ~over)
        memory.taken.add_(1)
        return memory.stopped

    def _forward(self, positions: Tensor, sight: Sight) -> Tensor:
        """Return the last hidden states [slots * rows, width]."""
        attention = SlotAttention(self._slots, sight, self.bucket.capacity)
        tokens, signals = self.memory.tokens[:-1], self.memory.signals[:-1]
        return self._network.denoise_over(tokens, signals, positions, attention.mix)

    def _spread(self, values: Tensor) -> Tensor:
        """Return one value a position from one a canvas."""
        return values[:, None].expand(-1, self.bucket.middle).flatten()

    def _renew_rows(self, places: Tensor, over: Tensor, tokens: Tensor, signals: Tensor) -> None:
        """Put new tokens [canvases, middle] and signals [canvases * middle, width] into the rows of middles that are
        not `over`. What stands behind a middle is its own signal from the second step on."""
        memory, rows, kept = self.memory, places.flatten(), self._spread(over)
        tokens = torch.where(kept, memory.tokens[rows], tokens.flatten())
        signals = torch.where(kept[:, None], memory.signals[rows], signals)
        memory.signals.copy_(self._network.embed(memory.tokens))
        memory.tokens[rows] = tokens
        memory.signals[rows] = signals
