"""Memory that nobody uses goes back to the system. glibc keeps what small and medium objects leave between others."""

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
    """Give free memory of the heap back. Takes some milliseconds. Return whether the C library can do that."""
    libc = _libc()
    if libc is None:
        return False
    libc.malloc_trim(0)
    return True
