"""Runs denoising as captured steps: copy canvases into fixed memory, replay steps, copy the states out."""

from collections.abc import Sequence

import torch

from engine.models.cuda_graphs.graphs import Graphs, rounded
from engine.models.cuda_graphs.slots import LEAST_CAPACITY, Slots, SlotShape, affordable_slots, capacity_for
from engine.models.diffusion_gemma.canvas import Canvas, CanvasPass, CanvasState, StepResult
from engine.models.diffusion_gemma.canvas_step import STEPS_A_PASS, CanvasBucket, CanvasMemory, CanvasStep, StepInputs
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import MOST_SEED, Noise

MOST_SLOTS = 8
MOST_CAPACITY = 8192
"""Positions of a hole that a graph serves. Larger holes take the plain path."""
MOST_ROWS = 512
LEAST_ROWS = 16
LEAST_MIDDLE = 8


class CapturedCanvases:
    """Implements denoiser.StepRunner: runs the steps of passes as captured graphs, if they fit a bucket."""

    def __init__(
        self, network: DiffusionNetwork, noise: Noise, confident: float, forbidden: Sequence[int] = ()
    ) -> None:
        self._network, self._noise, self._confident = network, noise, confident
        self._forbidden = torch.tensor(forbidden, dtype=torch.long, device=network.device)
        shapes = [SlotShape(shape.heads, shape.width) for shape in network.shapes]
        dtype, device = network.dtype, network.device
        count, capacity = affordable_slots(shapes, MOST_SLOTS, MOST_CAPACITY, MOST_CAPACITY, dtype, device)
        self._slots = Slots(shapes, count, capacity, dtype, device)
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
