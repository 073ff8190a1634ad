"""The pieces of a layer between two attentions, compiled on CUDA: norms, rotations and gates become few kernels."""

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch._dynamo.exc import TorchDynamoException

_log = logging.getLogger(__name__)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def fused(piece: Callable[Arguments, Result], device: torch.device) -> Callable[Arguments, Result]:
    """Return a function that computes what `piece` does, compiled where there is CUDA.

    A piece takes a layer and tensors, and touches no memory but its own, so that all layers of a kind share what was
    compiled. Where the compiler fails, as without a C compiler, that is one line in the log and `piece` runs as it is.
    """
    if device.type != "cuda":
        return piece
    compiled: Callable[Arguments, Result] | None = torch.compile(piece)

    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        nonlocal compiled
        if compiled is not None:
            try:
                return compiled(*args, **kwargs)
            except TorchDynamoException as error:
                _log.warning("%s could not be compiled (%s); it runs uncompiled", piece.__name__, type(error).__name__)
                compiled = None
        return piece(*args, **kwargs)

    return run
