"""What a pass over canvases gives back to the fill."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.fill.sampler import PassResult, Predictions
from engine.models.diffusion_gemma.canvas import CanvasState


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
