"""A canvas between two passes: the pass that runs some denoising steps on it, what its logits say, and what comes back.

Each draw takes its noise from its seed, the step and the position in the fill. So a hole gets the same answer alone and
in any batch. Everything is elementwise work on the device, and nothing waits for the host between two steps. Logits are
read a chunk of rows at a time: the vocabulary is large, and so is a batch.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Protocol

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.fill.sampler import NEVER, PassResult, Predictions
from engine.models.diffusion_gemma.layers import DiffusionNetwork, RollingContext

AcceptRule = Callable[[Tensor, Tensor], Tensor]
"""From entropy (nats) and confidence, both [..., middle], to the accepted positions, bool [..., middle]."""


@attrs.frozen
class StepResult:
    """The result of one step, each [middle].

    likeliest, confidence: the most likely token and its probability at temperature 1
    entropy: in nats, at the temperature of the step
    accepted: whether the rule accepted the drawn token
    """

    likeliest: Tensor
    confidence: Tensor
    entropy: Tensor
    accepted: Tensor


@attrs.frozen
class CanvasState:
    """The state of a canvas, on the device.

    tokens: the noisy middle [middle]; after: the fixed tokens after it [after]
    signal: the embeddings that the last step expects [middle, width], for self-conditioning; None before the first step
    result: of the last step; None before the first
    stopped: whether the canvas is done, bool []
    """

    tokens: Tensor
    after: Tensor
    signal: Tensor | None
    result: StepResult | None
    stopped: Tensor


@attrs.define(eq=False)
class Canvas:
    """A middle of `length` tokens that starts at the fill's token `first`, and the fixed tokens `after` it.

    `accept` chooses the positions that a step keeps. `greedy` takes the most likely tokens; otherwise they are drawn,
    with `top_p`. `step` counts the steps taken.
    """

    length: int
    after: Sequence[int]
    accept: AcceptRule
    first: int = 0
    seed: int = 0
    greedy: bool = True
    top_p: float = 1.0
    step: int = 0
    state: CanvasState | None = None

    @property
    def rows(self) -> int:
        return self.length + len(self.after)


@attrs.define
class CanvasPass:
    """Implements interface.Pass. Reads `append` into the context. Then every canvas takes one step per temperature; the
    host sees only the state after the last one.

    The result is a CanvasResult.
    """

    context: RollingContext
    append: list[int]
    canvases: list[Canvas] = attrs.field(factory=list)
    temperatures: list[float] = attrs.field(factory=list)

    @property
    def rows(self) -> int:
        return len(self.append) + len(self.temperatures) * sum(canvas.rows for canvas in self.canvases)

    @property
    def wanted(self) -> Sequence[int]:
        return range(sum(canvas.length for canvas in self.canvases))


@attrs.frozen(kw_only=True)
class CanvasResult(PassResult):
    """The predictions of all middles of a pass, one canvas after the other, and what else a fill needs of them.

    accepted, stopped: bool [all middles]: what a step would keep; whether the position's canvas is done.
    states: the state of each canvas, on the device.
    """

    accepted: NDArray[np.bool_]
    stopped: NDArray[np.bool_]
    states: Sequence[CanvasState]


def results_of(states: Sequence[Sequence[CanvasState]]) -> list[PassResult]:
    """Return one result a pass, from the states of its canvases. All numbers come from the device in one copy."""
    every = [state for of_pass in states for state in of_pass]
    packed = np.zeros((5, 0), np.float32)
    if every:
        packed = torch.cat([_packed(state) for state in every], dim=1).cpu().numpy()
    lengths = [sum(len(state.tokens) for state in of_pass) for of_pass in states]
    bounds = pairwise([0, *accumulate(lengths)])
    return [_result(packed[:, start:stop], of_pass) for (start, stop), of_pass in zip(bounds, states, strict=True)]


def _result(packed: NDArray[np.float32], states: Sequence[CanvasState]) -> CanvasResult:
    likeliest, confidence, entropy, accepted, stopped = packed
    predictions = Predictions(
        likeliest.astype(np.int64)[:, None],
        confidence[:, None],
        entropy,
        np.zeros((len(entropy), 0), np.float32),
        np.zeros(len(entropy), np.float32),
    )
    return CanvasResult(predictions=predictions, accepted=accepted > 0, stopped=stopped > 0, states=states)


def _packed(state: CanvasState) -> Tensor:
    """Return what the host needs of a canvas, fp32 [5, middle]. Token ids are exact in it up to 2**24."""
    result = state.result
    if result is None:
        raise ValueError("a canvas was run for no step")
    stopped = state.stopped.expand_as(result.accepted)
    return torch.stack([result.likeliest, result.confidence, result.entropy, result.accepted, stopped]).float()


_WINDOWS = 1 << 20
MOST_SEED = (1 << 63) - 1


class Noise(Protocol):
    """The noise of a Denoiser. `keys` [rows] come from `key_of`; tests pass noise that ignores them."""

    def uniform(self, keys: Tensor) -> Tensor:
        """Return tokens [rows], drawn uniformly from the vocabulary."""
        ...

    def draw(self, keys: Tensor, logits: Tensor) -> Tensor:
        """Return tokens [rows], drawn from logits [rows, vocabulary]."""
        ...


class SeededNoise:
    """Draws by Gumbel-max: the argmax of logits plus Gumbel noise is a draw from their distribution.

    The noise of a row is a window into one table of Gumbel numbers, at an offset that its key selects. New numbers for
    the whole vocabulary would cost more than the logits.
    """

    def __init__(self, vocabulary: int, device: torch.device) -> None:
        self._vocabulary = vocabulary
        uniform = torch.rand(_WINDOWS + vocabulary - 1, generator=torch.Generator().manual_seed(0))
        self._windows = (-(-uniform.clamp_(1e-7, 1 - 1e-7).log()).log()).to(device).unfold(0, vocabulary, 1)

    def uniform(self, keys: Tensor) -> Tensor:
        return keys % self._vocabulary

    def draw(self, keys: Tensor, logits: Tensor) -> Tensor:
        return (logits + self._windows[_scrambled(keys) % _WINDOWS]).argmax(-1)


def key_of(seed: int | Tensor, step: int | Tensor, positions: Tensor) -> Tensor:
    """Return the keys [rows] of positions [rows] of a fill in one step. `seed` and `step` may be [rows] too."""
    return _scrambled(_scrambled(_scrambled(positions + 1) + step) + (seed & MOST_SEED))


def _scrambled(numbers: Tensor) -> Tensor:
    """Return hashes from 0 to 2**63 - 1 of the int64 `numbers`; every bit counts (the mixing of splitmix64)."""
    mixed = numbers * -0x61C8864680B583EB
    mixed = (mixed ^ _shifted(mixed, 30)) * -0x40A7B892E31B1A47
    mixed = (mixed ^ _shifted(mixed, 27)) * -0x6B2FB644ECCEEE15
    return (mixed ^ _shifted(mixed, 31)) & MOST_SEED


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    """Return a logical shift to the right; torch's own keeps the sign."""
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)


CHUNK = 128
"""Rows whose logits are in memory at once: 128 MiB per copy, with a vocabulary of 262,144."""


@attrs.frozen
class RowReadings:
    """What the logits say of each row, [rows] or [rows, width].

    drawn: the drawn token; likeliest, confidence: the most likely token and its probability at temperature 1
    entropy: in nats, at the row's temperature
    signal: the expected embedding [rows, width], at the row's temperature
    """

    drawn: Tensor
    likeliest: Tensor
    confidence: Tensor
    entropy: Tensor
    signal: Tensor

    def part(self, start: int, stop: int) -> "RowReadings":
        """Return the rows from `start` up to `stop`."""
        return RowReadings(*(value[start:stop] for value in attrs.astuple(self, recurse=False)))


@attrs.frozen
class Draws:
    """How each row is drawn: the key of its noise, temperature, top-p, and whether it takes the most likely token.

    All are [rows], on the device. `any_drawn` (any row is not greedy) and `any_top_p` (any drawn row has a top-p below
    1) are known on the host, so that a step need not ask the device.
    """

    keys: Tensor
    temperature: Tensor
    top_p: Tensor
    greedy: Tensor
    any_drawn: bool
    any_top_p: bool

    @classmethod
    def of(cls, canvases: Sequence[Canvas], temperatures: Sequence[float], keys: Tensor) -> "Draws":
        lengths = torch.tensor([canvas.length for canvas in canvases])

        def per_row(values: Sequence[float]) -> Tensor:
            return torch.tensor(values).repeat_interleave(lengths).to(keys.device, non_blocking=True)

        drawn = [canvas for canvas in canvases if not canvas.greedy]
        return cls(
            keys=keys,
            temperature=per_row(temperatures),
            top_p=per_row([canvas.top_p for canvas in canvases]),
            greedy=per_row([canvas.greedy for canvas in canvases]),
            any_drawn=bool(drawn),
            any_top_p=any(canvas.top_p < 1 for canvas in drawn),
        )


def read_logits(
    network: DiffusionNetwork, noise: Noise, forbidden: Tensor, hidden: Tensor, draws: Draws
) -> RowReadings:
    """Return the readings of hidden states [rows, width]. `forbidden` tokens get no probability."""
    chunks = []
    for start in range(0, len(hidden), CHUNK):
        rows = slice(start, start + CHUNK)
        logits = network.logits(hidden[rows]).index_fill_(-1, forbidden, NEVER)
        highest, likeliest = logits.max(-1)
        confidence = (highest - logits.logsumexp(-1)).exp()
        logits /= draws.temperature[rows, None]
        probabilities = logits.softmax(-1)
        entropy = logits.logsumexp(-1) - torch.linalg.vecdot(probabilities, logits)
        signal = network.expected_embedding(probabilities)
        drawn = likeliest
        if draws.any_drawn:
            kept = _within_top_p(logits, probabilities, draws.top_p[rows, None]) if draws.any_top_p else logits
            drawn = torch.where(draws.greedy[rows], likeliest, noise.draw(draws.keys[rows], kept))
        chunks.append(RowReadings(drawn, likeliest, confidence, entropy, signal))
    columns = zip(*(attrs.astuple(chunk, recurse=False) for chunk in chunks), strict=True)
    return RowReadings(*(torch.cat(parts) for parts in columns))


def _within_top_p(logits: Tensor, probabilities: Tensor, top_p: Tensor) -> Tensor:
    """Return logits that allow only the most likely tokens whose probabilities reach `top_p` [rows, 1]."""
    ordered, order = probabilities.sort(dim=-1, descending=True)
    outside = ordered.cumsum(-1) - ordered >= top_p
    return logits.masked_fill(torch.zeros_like(outside).scatter_(-1, order, outside), NEVER)


MIN_CONFIDENCE = 0.9


@cache
def by_entropy(bound: float) -> AcceptRule:
    """Accept positions from low to high entropy, while the entropies of those before sum to at most `bound` nats.

    The sum bounds the loss against accepting them one by one (EB-Sampler, arXiv 2505.24857). Cached because captured
    graphs are looked up by their rule: the same bound must be the same object.
    """

    def accept(entropy: Tensor, confidence: Tensor) -> Tensor:
        ordered, order = entropy.sort()
        within = ordered.cumsum(-1) - ordered <= bound
        return torch.zeros_like(within).scatter(-1, order, within)

    return accept


def by_threshold(entropy: Tensor, confidence: Tensor) -> Tensor:
    """Accept positions with at least MIN_CONFIDENCE, and always the most confident one (arXiv 2505.22618)."""
    return (confidence >= MIN_CONFIDENCE) | (confidence >= confidence.amax(-1, keepdim=True))
