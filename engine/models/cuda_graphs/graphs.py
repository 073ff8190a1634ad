"""One captured graph a bucket; where there is no CUDA, the same function over the same memory."""

import logging
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

import attrs
import torch
from torch import Tensor

MOST_GRAPHS = 32
"""More are never kept: the one that was not used for the longest leaves. Their intermediate results share one pool, so
what each costs is the memory of the largest, its own launch records (some MiB) and its small inputs."""
_log = logging.getLogger(__name__)


class Step(Protocol):
    """A computation over memory of its own, whose shapes never change and which never waits for the device."""

    def compute(self) -> Tensor:
        """Run once. What comes back may be overwritten by any later step."""
        ...


AnyStep = TypeVar("AnyStep", bound=Step)


@attrs.frozen
class Captured(Generic[AnyStep]):
    """A step whose memory is to be filled, and how it is then run."""

    step: AnyStep
    run: Callable[[], Tensor]


class Graphs(Generic[AnyStep]):
    """The steps of one model, by bucket. `on_capture` hears that a new step has just run over whatever its memory and
    the slots held."""

    def __init__(self, device: torch.device, on_capture: Callable[[], None], most: int = MOST_GRAPHS) -> None:
        self._device, self._on_capture, self._most = device, on_capture, most
        self._known: dict[Hashable, Captured[AnyStep] | None] = {}
        self._pool: Any = None

    def of(self, bucket: Hashable, make: Callable[[], AnyStep]) -> Captured[AnyStep] | None:
        """Return the step of a bucket, made and captured when it is first asked for; None where it cannot be captured.

        The failure is one line in the log, and is not tried again: such shapes take the plain way.
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
        # Twice on another stream first: libraries choose their kernels and take their workspaces, which no graph may.
        beside = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(beside):
            step.compute()
            step.compute()
        torch.cuda.current_stream(self._device).wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            found = step.compute()

        def replay() -> Tensor:
            graph.replay()
            return found

        return Captured(step, replay)
