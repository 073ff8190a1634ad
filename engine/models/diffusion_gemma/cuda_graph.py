"""Runs denoising as captured steps: copy canvases into fixed memory, replay steps, copy the states out.

A step has the forward, the logits of the middles, draw, accept and renoise. It never waits for the device, and no shape
depends on a value, so a graph can capture it. Each step reads what the one before has written.
"""

import math
from collections.abc import Sequence

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.models.cuda_graphs.graphs import Graphs, rounded
from engine.models.cuda_graphs.slots import LEAST_CAPACITY, Sight, SlotAttention, Slots, affordable_slots, capacity_for
from engine.models.diffusion_gemma.canvas import (
    MOST_SEED,
    AcceptRule,
    Canvas,
    CanvasPass,
    CanvasState,
    Draws,
    Noise,
    StepResult,
    key_of,
    read_logits,
)
from engine.models.diffusion_gemma.layers import DiffusionNetwork

STEPS_A_PASS = 8
"""A pass with more steps takes the plain path."""
_PADDING_ENTROPY = 1e9
"""In nats. Rules that accept low entropies first come to padding last."""


@attrs.frozen
class CanvasBucket:
    """The shape of a captured step.

    slots, rows, capacity: contexts, canvas rows per context, and positions that these see
    canvases, middle: the number of canvases, and the tokens of their longest middle
    accept: the rule of all canvases
    draws: whether any canvas draws its tokens; with_top_p: whether any of them has a top-p below 1
    """

    slots: int
    rows: int
    capacity: int
    canvases: int
    middle: int
    accept: AcceptRule
    draws: bool
    with_top_p: bool


@attrs.define
class StepInputs:
    """The host's inputs to a pass, all int64; bools are 0 and 1.

    positions: [slots * rows], for the rotary embedding
    lengths [slots], begins and ends [slots, rows]: which keys the rows see, as in cuda_graphs.slots.Sight
    middle_rows: [canvases, middle], the row of each position of the middles; for padding the row after all others
    seeds, firsts, steps, counts: [canvases]; steps taken before this pass, and steps to take in it
    greedy, begun: [canvases], as in canvas.Canvas, and whether any step was taken before this pass
    """

    positions: NDArray[np.int64]
    lengths: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    middle_rows: NDArray[np.int64]
    seeds: NDArray[np.int64]
    firsts: NDArray[np.int64]
    steps: NDArray[np.int64]
    counts: NDArray[np.int64]
    greedy: NDArray[np.int64]
    begun: NDArray[np.int64]

    @classmethod
    def padding(cls, bucket: CanvasBucket) -> "StepInputs":
        """Return inputs in which everything is padding. Padding sees the rows of its slot."""
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
    """The memory that a step reads and writes.

    inputs: the fields of StepInputs, concatenated
    temperatures: fp32 [canvases, STEPS_A_PASS]; top_p: fp32 [canvases]
    tokens, signals: [slots * rows + 1], [slots * rows + 1, width]; the last row takes the padding of middles
    taken: int64 [], the steps taken in this pass; stopped: bool [canvases]
    likeliest int64, confidence and entropy fp32, accepted bool: [canvases, middle], as in canvas.StepResult
    """

    def __init__(self, bucket: CanvasBucket, width: int, dtype: torch.dtype, device: torch.device) -> None:
        rows, count, shape = bucket.slots * bucket.rows, bucket.canvases, (bucket.canvases, bucket.middle)
        self._shapes = [part.shape for part in StepInputs.padding(bucket).parts()]
        self.inputs = torch.zeros(sum(math.prod(shape) for shape in self._shapes), dtype=torch.long, device=device)
        self.temperatures = torch.ones(count, STEPS_A_PASS, device=device)
        self.top_p = torch.ones(count, device=device)
        self.tokens = torch.zeros(rows + 1, dtype=torch.long, device=device)
        self.signals = torch.zeros(rows + 1, width, dtype=dtype, device=device)
        self.taken = torch.zeros((), dtype=torch.long, device=device)
        self.stopped = torch.zeros(count, dtype=torch.bool, device=device)
        self.likeliest = torch.zeros(shape, dtype=torch.long, device=device)
        self.accepted = torch.zeros(shape, dtype=torch.bool, device=device)
        self.confidence, self.entropy = torch.zeros(shape, device=device), torch.zeros(shape, device=device)
        self.set_inputs(StepInputs.padding(bucket))

    def set_inputs(self, inputs: StepInputs) -> None:
        """Send the host's inputs to the device, in one copy."""
        self.inputs.copy_(torch.from_numpy(np.concatenate([part.ravel() for part in inputs.parts()])))

    def input_parts(self) -> list[Tensor]:
        """Return the tensors in `inputs`, in the order of the fields of StepInputs."""
        sizes = [math.prod(shape) for shape in self._shapes]
        return [part.view(shape) for part, shape in zip(torch.split(self.inputs, sizes), self._shapes, strict=True)]


class CanvasStep:
    """Implements graphs.Step. CapturedCanvases fills its memory, and reads it after the last step of a pass."""

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
        """Run one step of every canvas that has steps left and has not stopped; return which have stopped."""
        bucket, memory = self.bucket, self.memory
        parts = memory.input_parts()
        positions, lengths, begins, ends, middle_rows, seeds, firsts, steps, counts, greedy, begun = parts
        hidden = self._forward(positions, Sight(lengths, begins, ends, lengths[:, None].expand_as(begins)))
        present = middle_rows < len(hidden)
        keys = key_of(
            seeds[:, None],
            (steps + memory.taken)[:, None] + 1,
            firsts[:, None] + torch.arange(bucket.middle, device=middle_rows.device),
        )
        draws = Draws(
            keys=keys.flatten(),
            temperature=self._per_position(memory.temperatures.index_select(1, memory.taken[None])[:, 0]),
            top_p=self._per_position(memory.top_p),
            greedy=self._per_position(greedy != 0),
            any_drawn=bucket.draws,
            any_top_p=bucket.with_top_p,
        )
        middles = hidden[middle_rows.clamp(max=len(hidden) - 1).flatten()]
        readings = read_logits(self._network, self._noise, self._forbidden, middles, draws)
        likeliest, confidence, entropy, drawn = (
            values.view(middle_rows.shape)
            for values in (readings.likeliest, readings.confidence, readings.entropy, readings.drawn)
        )
        ranked = torch.where(present, entropy, _PADDING_ENTROPY)
        accepted = bucket.accept(ranked, torch.where(present, confidence, -1.0)) & present
        done = memory.stopped | (memory.taken >= counts)
        renoised = torch.where(accepted, drawn, self._noise.uniform(keys))
        self._renew_rows(middle_rows, done, renoised, readings.signal)
        same = ((likeliest == memory.likeliest) | ~present).all(-1)
        mean = torch.where(present, entropy, 0.0).sum(-1) / present.sum(-1).clamp(min=1)
        settled = same & (mean < self._confident) & (begun + memory.taken > 0)
        for stored, new in (
            (memory.likeliest, likeliest),
            (memory.confidence, confidence),
            (memory.entropy, entropy),
            (memory.accepted, accepted),
        ):
            stored.copy_(torch.where(done[:, None], stored, new))
        memory.stopped.logical_or_(settled & ~done)
        memory.taken.add_(1)
        return memory.stopped

    def _forward(self, positions: Tensor, sight: Sight) -> Tensor:
        """Return the last hidden states [slots * rows, width]."""
        attention = SlotAttention(self._slots, sight, self.bucket.capacity)
        tokens, signals = self.memory.tokens[:-1], self.memory.signals[:-1]
        return self._network.denoise_over(tokens, signals, positions, attention.mix)

    def _per_position(self, values: Tensor) -> Tensor:
        """Return [canvases * middle] from one value per canvas."""
        return values[:, None].expand(-1, self.bucket.middle).flatten()

    def _renew_rows(self, middle_rows: Tensor, done: Tensor, tokens: Tensor, signals: Tensor) -> None:
        """Write tokens [canvases, middle] and signals [canvases * middle, width] to the middles that are not `done`.

        From the second step on, the signal of the fixed tokens after a middle is their own embedding.
        """
        memory, rows, kept = self.memory, middle_rows.flatten(), self._per_position(done)
        tokens = torch.where(kept, memory.tokens[rows], tokens.flatten())
        signals = torch.where(kept[:, None], memory.signals[rows], signals)
        memory.signals.copy_(self._network.embed(memory.tokens))
        memory.tokens[rows] = tokens
        memory.signals[rows] = signals


MOST_SLOTS = 8
MOST_CAPACITY = 8192
"""Positions of a hole that a graph serves. Larger holes take the plain path."""
MOST_ROWS = 512
LEAST_ROWS = 16
LEAST_MIDDLE = 8


class CapturedCanvases:
    """Runs the steps of passes as captured graphs, if they fit a bucket."""

    def __init__(
        self, network: DiffusionNetwork, noise: Noise, confident: float, forbidden: Sequence[int] = ()
    ) -> None:
        self._network, self._noise, self._confident = network, noise, confident
        self._forbidden = torch.tensor(forbidden, dtype=torch.long, device=network.device)
        dtype, device = network.dtype, network.device
        count, capacity = affordable_slots(network.shapes, MOST_SLOTS, MOST_CAPACITY, MOST_CAPACITY, dtype, device)
        self._slots = Slots(network.shapes, count, capacity, dtype, device)
        self._graphs: Graphs[CanvasStep] = Graphs(device, self._slots.forget)

    def run(
        self, passes: Sequence[CanvasPass], lengths: Sequence[int], states: Sequence[Sequence[CanvasState]]
    ) -> list[list[CanvasState]] | None:
        """Return the states of the canvases after their steps; None if no graph serves these passes."""
        bucket = self._bucket(passes, lengths)
        if bucket is None:
            return None
        captured = self._graphs.of(
            bucket,
            lambda: CanvasStep(self._network, self._slots, self._noise, self._forbidden, self._confident, bucket),
        )
        if captured is None:
            return None
        names = [[*each.context.tokens, *each.append][:length] for each, length in zip(passes, lengths, strict=True)]
        slots = self._slots.assign(names, bucket.slots)
        for each, context_names, slot in zip(passes, names, slots, strict=True):
            self._slots.load(slot, context_names, each.context.layers)
        memory = captured.step.memory
        self._fill(memory, bucket, passes, lengths, slots, states)
        for _ in range(max(len(each.temperatures) for each in passes)):
            captured.run()
        return self._states(memory, passes, slots, bucket, states)

    def _bucket(self, passes: Sequence[CanvasPass], lengths: Sequence[int]) -> CanvasBucket | None:
        canvases = [canvas for each in passes for canvas in each.canvases]
        rows = rounded(max(sum(canvas.rows for canvas in each.canvases) for each in passes), LEAST_ROWS)
        capacity = capacity_for(max(lengths) + rows, LEAST_CAPACITY, self._slots.capacity)
        rules = {canvas.accept for canvas in canvases}
        steps = max(len(each.temperatures) for each in passes)
        if (
            capacity is None
            or len(passes) > self._slots.count
            or rows > MOST_ROWS
            or len(rules) > 1
            or steps > STEPS_A_PASS
        ):
            return None
        drawn = [canvas for canvas in canvases if not canvas.greedy]
        return CanvasBucket(
            slots=rounded(len(passes)),
            rows=rows,
            capacity=capacity,
            canvases=rounded(len(canvases)),
            middle=rounded(max(canvas.length for canvas in canvases), LEAST_MIDDLE),
            accept=rules.pop(),
            draws=bool(drawn),
            with_top_p=any(canvas.top_p < 1 for canvas in drawn),
        )

    def _fill(
        self,
        memory: CanvasMemory,
        bucket: CanvasBucket,
        passes: Sequence[CanvasPass],
        lengths: Sequence[int],
        slots: Sequence[int],
        states: Sequence[Sequence[CanvasState]],
    ) -> None:
        """Copy the canvases into the step's memory. The canvases of one pass follow each other in its slot."""
        inputs = StepInputs.padding(bucket)
        temperatures = torch.ones(bucket.canvases, STEPS_A_PASS)
        top_p = torch.ones(bucket.canvases)
        index = 0
        for each, length, slot, pass_states in zip(passes, lengths, slots, states, strict=True):
            inputs.lengths[slot] = length
            inputs.begins[slot], inputs.ends[slot] = length, length + bucket.rows
            row = 0
            for canvas, state in zip(each.canvases, pass_states, strict=True):
                first = slot * bucket.rows + row
                inputs.begins[slot, row : row + canvas.rows] = length + row
                inputs.ends[slot, row : row + canvas.rows] = length + row + canvas.rows
                inputs.positions[first : first + canvas.rows] = range(length, length + canvas.rows)
                inputs.middle_rows[index, : canvas.length] = range(first, first + canvas.length)
                inputs.seeds[index], inputs.firsts[index] = canvas.seed & MOST_SEED, canvas.first
                inputs.steps[index], inputs.counts[index] = canvas.step, len(each.temperatures)
                inputs.greedy[index], inputs.begun[index] = canvas.greedy, state.signal is not None
                temperatures[index, : len(each.temperatures)] = torch.tensor(each.temperatures)
                top_p[index] = canvas.top_p
                self._put(memory, canvas, state, first, index)
                row, index = row + canvas.rows, index + 1
        memory.set_inputs(inputs)
        memory.temperatures.copy_(temperatures)
        memory.top_p.copy_(top_p)
        memory.taken.zero_()

    def _put(self, memory: CanvasMemory, canvas: Canvas, state: CanvasState, first: int, index: int) -> None:
        """Copy the state of a canvas into the rows from `first` on, and its last result to canvas `index`."""
        middle, stop = first + canvas.length, first + canvas.rows
        memory.tokens[first:middle], memory.tokens[middle:stop] = state.tokens, state.after
        memory.stopped[index] = state.stopped
        if state.signal is None or state.result is None:
            memory.signals[first:stop] = 0
            return
        memory.signals[first:middle] = state.signal
        memory.signals[middle:stop] = self._network.embed(state.after)
        for stored, last in (
            (memory.likeliest, state.result.likeliest),
            (memory.confidence, state.result.confidence),
            (memory.entropy, state.result.entropy),
            (memory.accepted, state.result.accepted),
        ):
            stored[index, : canvas.length] = last

    def _states(
        self,
        memory: CanvasMemory,
        passes: Sequence[CanvasPass],
        slots: Sequence[int],
        bucket: CanvasBucket,
        states: Sequence[Sequence[CanvasState]],
    ) -> list[list[CanvasState]]:
        """Return the new states, copied out of the memory."""
        # One copy of everything, because other steps overwrite the memory: a copy per canvas would be many launches.
        tokens, signals, stopped = memory.tokens.clone(), memory.signals.clone(), memory.stopped.clone()
        parts = [part.clone() for part in (memory.likeliest, memory.confidence, memory.entropy, memory.accepted)]
        index = 0
        new_states: list[list[CanvasState]] = []
        for each, slot, pass_states in zip(passes, slots, states, strict=True):
            row = slot * bucket.rows
            new_pass_states = []
            for canvas, state in zip(each.canvases, pass_states, strict=True):
                rows, middle = slice(row, row + canvas.length), slice(0, canvas.length)
                new_pass_states.append(
                    CanvasState(
                        tokens=tokens[rows],
                        after=state.after,
                        signal=signals[rows],
                        result=StepResult(*(part[index, middle] for part in parts)),
                        stopped=stopped[index],
                    )
                )
                row, index = row + canvas.rows, index + 1
            new_states.append(new_pass_states)
        return new_states
