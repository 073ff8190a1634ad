"""The heap of this process, which keeps free memory between other objects."""

import ctypes
import sys
from functools import cache


@cache
def _libc() -> ctypes.CDLL | None:
    try:
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    except OSError:
        return None
    return libc if libc is not None and hasattr(libc, "malloc_trim") else None


def give_back() -> bool:
    """Give free memory of the heap, which glibc keeps between other objects, back to the system in some milliseconds.

    Return whether the C library can do that.
    """
    libc = _libc()
    if libc is None:
        return False
    libc.malloc_trim(0)
    return True
