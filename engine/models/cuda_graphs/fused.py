"""Compiles the parts of a layer between two attentions on CUDA: norms, rotations and gates become few kernels."""

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch._dynamo.exc import TorchDynamoException

_log = logging.getLogger(__name__)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def fused(function: Callable[Arguments, Result], device: torch.device) -> Callable[Arguments, Result]:
    """Return `function`, compiled if the device is CUDA.

    `function` takes a layer and tensors and writes to no other memory, so all layers of one class share the compiled
    code. If compilation fails, for example without a C compiler, one line is logged and `function` runs uncompiled.
    """
    if device.type != "cuda":
        return function
    compiled: Callable[Arguments, Result] | None = torch.compile(function)

    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        nonlocal compiled
        if compiled is not None:
            try:
                return compiled(*args, **kwargs)
            except TorchDynamoException as error:
                _log.warning(
                    "%s could not be compiled (%s); it runs uncompiled", function.__name__, type(error).__name__
                )
                compiled = None
        return function(*args, **kwargs)

    return run
