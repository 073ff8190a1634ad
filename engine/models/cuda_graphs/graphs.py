"""One captured graph per bucket. Without CUDA the same function runs over the same memory.

What is between two attentions is compiled on CUDA: norms, rotations and gates become few kernels.
"""

import logging
from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import attrs
import torch
from torch import Tensor

MOST_GRAPHS = 32
"""Beyond this number the least recently used graph is dropped. All graphs share one pool for intermediate results, so
a graph costs only its launch records (some MiB) and its small inputs."""
_log = logging.getLogger(__name__)


@attrs.frozen
class RowBucket:
    """The shape of a step: slots, rows per slot, positions that the rows see, and rows per slot whose logits are asked
    for."""

    slots: int
    rows: int
    capacity: int
    wanted: int


def rounded(number: int, least: int = 1) -> int:
    """Return the smallest power of two that is at least `number` and `least`: few sizes need few graphs."""
    return 1 << (max(number, least) - 1).bit_length()


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all that was queued. Once per pass, because the time of a pass is measured."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


class Step(Protocol):
    """A computation over its own memory. Its shapes never change and it never waits for the device."""

    def compute(self) -> Tensor:
        """Run once. Any later step may overwrite the result."""
        ...


AnyStep = TypeVar("AnyStep", bound=Step)


@attrs.frozen
class Captured(Generic[AnyStep]):
    """A step, whose memory the caller fills, and the function that then runs it."""

    step: AnyStep
    run: Callable[[], Tensor]


class Graphs(Generic[AnyStep]):
    """The steps of one model, by bucket.

    A capture runs the step over the current contents of its memory and slots. `on_capture` is called first, so that the
    owner of the slots can forget what they hold.
    """

    def __init__(self, device: torch.device, on_capture: Callable[[], None], most: int = MOST_GRAPHS) -> None:
        self._device, self._on_capture, self._most = device, on_capture, most
        self._known: dict[Hashable, Captured[AnyStep] | None] = {}
        self._pool: Any = None

    def of(self, bucket: Hashable, make: Callable[[], AnyStep]) -> Captured[AnyStep] | None:
        """Return the step of a bucket; None if it cannot be captured.

        The first call makes and captures it. A failure logs one line and is not tried again: passes of this shape then
        take the plain path.
        """
        if bucket in self._known:
            self._known[bucket] = known = self._known.pop(bucket)
            return known
        while len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        try:
            known = self._captured(make())
        except Exception as error:
            _log.warning("no graph for %s (%s): such steps run uncaptured", bucket, type(error).__name__)
            known = None
        self._known[bucket] = known
        return known

    def __len__(self) -> int:
        return len(self._known)

    def _captured(self, step: AnyStep) -> Captured[AnyStep]:
        if self._device.type != "cuda":
            return Captured(step, step.compute)
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        self._on_capture()
        # Two warm-up runs on another stream: libraries choose kernels and allocate workspaces, which no capture allows.
        warm_up = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        warm_up.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(warm_up):
            step.compute()
            step.compute()
        torch.cuda.current_stream(self._device).wait_stream(warm_up)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            result = step.compute()

        def replay() -> Tensor:
            graph.replay()
            return result

        return Captured(step, replay)


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
            except torch._dynamo.exc.TorchDynamoException as error:
                _log.warning(
                    "%s could not be compiled (%s); it runs uncompiled", function.__name__, type(error).__name__
                )
                compiled = None
        return function(*args, **kwargs)

    return run
