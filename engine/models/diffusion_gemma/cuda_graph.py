"""Denoising as captured steps: canvases go into fixed memory, steps are replayed, and what came of it is copied out."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.models.cuda_graphs.graphs import Graphs
from engine.models.cuda_graphs.sizes import capacity_for, rounded
from engine.models.cuda_graphs.slots import LEAST_CAPACITY, Slots, SlotShape, affordable_capacity
from engine.models.diffusion_gemma.canvas import Canvas, CanvasPass, CanvasState, Found
from engine.models.diffusion_gemma.canvas_step import STEPS_A_PASS, CanvasBucket, CanvasMemory, CanvasStep, StepInputs
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import LARGEST, Noise

MOST_SLOTS = 8
MOST_CAPACITY = 8192
"""Positions of a hole that a graph serves; larger holes take the plain way."""
MOST_ROWS = 512
LEAST_ROWS = 16
LEAST_MIDDLE = 8


class CapturedCanvases:
    """Runs passes as captured steps where they fit a bucket."""

    def __init__(
        self, network: DiffusionNetwork, noise: Noise, forbidden: Tensor, confident: float, capacity: int
    ) -> None:
        self._network, self._noise, self._forbidden, self._confident = network, noise, forbidden, confident
        shapes = [SlotShape(shape.heads, shape.width) for shape in network.shapes]
        dtype, device = network.dtype, network.device
        self._slots = Slots(
            shapes, MOST_SLOTS, affordable_capacity(shapes, MOST_SLOTS, capacity, dtype, device), dtype, device
        )
        self._graphs: Graphs[CanvasStep] = Graphs(device, self._slots.forget)

    def run(
        self, passes: Sequence[CanvasPass], lengths: Sequence[int], states: Sequence[Sequence[CanvasState]]
    ) -> list[list[CanvasState]] | None:
        """Return where the canvases are after their steps, from `states`; None where no graph serves these passes."""
        bucket = self._bucket(passes, lengths)
        if bucket is None:
            return None
        captured = self._graphs.of(
            bucket,
            lambda: CanvasStep(self._network, self._slots, self._noise, self._forbidden, self._confident, bucket),
        )
        if captured is None:
            return None
        names = [[*item.context.tokens, *item.append][:length] for item, length in zip(passes, lengths, strict=True)]
        slots = self._slots.assign(names, bucket.slots)
        for item, own, slot in zip(passes, names, slots, strict=True):
            self._slots.load(slot, own, item.context.layers)
        memory = captured.step.memory
        self._fill(memory, bucket, passes, lengths, slots, states)
        for _ in range(max(len(item.temperatures) for item in passes)):
            captured.run()
        return self._states(memory, passes, slots, bucket, states)

    def _bucket(self, passes: Sequence[CanvasPass], lengths: Sequence[int]) -> CanvasBucket | None:
        canvases = [canvas for item in passes for canvas in item.canvases]
        rows = rounded(max(sum(canvas.rows for canvas in item.canvases) for item in passes), LEAST_ROWS)
        capacity = capacity_for(max(lengths) + rows, LEAST_CAPACITY, self._slots.capacity)
        rules = {canvas.accept for canvas in canvases}
        steps = max(len(item.temperatures) for item in passes)
        if capacity is None or len(passes) > MOST_SLOTS or rows > MOST_ROWS or len(rules) > 1 or steps > STEPS_A_PASS:
            return None
        drawn = [canvas for canvas in canvases if not canvas.greedy]
        return CanvasBucket(
            slots=rounded(len(passes)),
            rows=rows,
            capacity=capacity,
            canvases=rounded(len(canvases)),
            middle=rounded(max(canvas.length for canvas in canvases), LEAST_MIDDLE),
            accept=rules.pop(),
            some=bool(drawn),
            cut=any(canvas.top_p < 1 for canvas in drawn),
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
        """Put the canvases where the step finds them; those of one pass stand behind each other in its slot."""
        told = StepInputs.nothing(bucket)
        heat = torch.ones(bucket.canvases, STEPS_A_PASS)
        top_p = torch.ones(bucket.canvases)
        number = 0
        for item, length, slot, of_pass in zip(passes, lengths, slots, states, strict=True):
            told.lengths[slot] = length
            told.begins[slot], told.ends[slot] = length, length + bucket.rows
            row = 0
            for canvas, state in zip(item.canvases, of_pass, strict=True):
                first = slot * bucket.rows + row
                told.begins[slot, row : row + canvas.rows] = length + row
                told.ends[slot, row : row + canvas.rows] = length + row + canvas.rows
                told.positions[first : first + canvas.rows] = range(length, length + canvas.rows)
                told.places[number, : canvas.length] = range(first, first + canvas.length)
                told.seeds[number], told.firsts[number] = canvas.seed & LARGEST, canvas.first
                told.steps[number], told.counts[number] = canvas.step, len(item.temperatures)
                told.greedy[number], told.begun[number] = canvas.greedy, state.signal is not None
                heat[number, : len(item.temperatures)] = torch.tensor(item.temperatures)
                top_p[number] = canvas.top_p
                self._put(memory, canvas, state, first, number)
                row, number = row + canvas.rows, number + 1
        memory.tell(told)
        memory.heat.copy_(heat)
        memory.top_p.copy_(top_p)
        memory.taken.zero_()

    def _put(self, memory: CanvasMemory, canvas: Canvas, state: CanvasState, first: int, number: int) -> None:
        """Copy a canvas's state into rows from `first` on and into the place of canvas `number`."""
        middle, stop = first + canvas.length, first + canvas.rows
        memory.tokens[first:middle], memory.tokens[middle:stop] = state.tokens, state.after
        memory.stopped[number] = state.stopped
        if state.signal is None or state.found is None:
            memory.signals[first:stop] = 0
            return
        memory.signals[first:middle] = state.signal
        memory.signals[middle:stop] = self._network.embed(state.after)
        for own, known in (
            (memory.likeliest, state.found.likeliest),
            (memory.confidence, state.found.confidence),
            (memory.entropy, state.found.entropy),
            (memory.accepted, state.found.accepted),
        ):
            own[number, : canvas.length] = known

    def _states(
        self,
        memory: CanvasMemory,
        passes: Sequence[CanvasPass],
        slots: Sequence[int],
        bucket: CanvasBucket,
        states: Sequence[Sequence[CanvasState]],
    ) -> list[list[CanvasState]]:
        """Return copies of what the memory holds of each canvas."""
        # All at once: other steps will overwrite the memory, and a copy for each canvas would be many.
        tokens, signals, stopped = memory.tokens.clone(), memory.signals.clone(), memory.stopped.clone()
        parts = (memory.likeliest, memory.confidence, memory.entropy, memory.accepted)
        likeliest, confidence, entropy, accepted = (part.clone() for part in parts)
        number = 0
        found: list[list[CanvasState]] = []
        for item, slot, of_pass in zip(passes, slots, states, strict=True):
            row = slot * bucket.rows
            own = []
            for canvas, state in zip(item.canvases, of_pass, strict=True):
                rows, middle = slice(row, row + canvas.length), slice(0, canvas.length)
                own.append(
                    CanvasState(
                        tokens=tokens[rows],
                        after=state.after,
                        signal=signals[rows],
                        found=Found(*(part[number, middle] for part in (likeliest, confidence, entropy, accepted))),
                        stopped=stopped[number],
                    )
                )
                row, number = row + canvas.rows, number + 1
            found.append(own)
        return found
