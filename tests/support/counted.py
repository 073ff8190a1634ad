"""Counts what a computation would do on a GPU, on a machine without one: its bytes, its largest tensor, its waits.

On the device "meta" tensors have a shape and no memory, so released shapes can be counted. What would copy to the host
raises there.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_WAITING = {"_local_scalar_dense", "nonzero", "bincount", "_unique2", "unique_consecutive", "masked_select", "equal"}
"""Operators whose result or whose shape the host must know, so it waits for the device."""


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operators that run inside.

    waits: the names of those that make the host wait for the device
    largest: bytes of the largest tensor that was made, and `made` its shape
    moved: bytes that the operators read and write, views not counted
    calls: how often each operator ran
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits: list[str] = []
        self.largest = self.moved = 0
        self.made: tuple[int, ...] = ()
        self.calls: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.__name__.split(".")[0]
        self.calls[name] = self.calls.get(name, 0) + 1
        given, returned = tensors(args, kwargs), tensors(result)
        if name in _WAITING:
            self.waits.append(name)
        if func.is_view:
            return result
        own = {part.untyped_storage()._cdata for part in given}
        new = [part for part in returned if part.untyped_storage()._cdata not in own]
        apart = {
            (part.untyped_storage()._cdata, part.storage_offset(), part.shape): part for part in (*given, *returned)
        }
        self.moved += sum(bytes_of(part) for part in apart.values())
        for part in new:
            if bytes_of(part) > self.largest:
                self.largest, self.made = bytes_of(part), tuple(part.shape)
        return result


def tensors(*values: object) -> list[Tensor]:
    """Return the tensors among the leaves of nested arguments."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def bytes_of(part: Tensor) -> int:
    """Return the bytes that a tensor's values take in memory: an expanded one has fewer than its shape says."""
    sizes = [size for size, stride in zip(part.shape, part.stride(), strict=True) if stride]
    return int(torch.Size(sizes).numel()) * part.element_size()
