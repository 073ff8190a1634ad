"""An exclusive lock on an open file, on POSIX and on Windows. The system frees it when the file closes."""

import os
import sys

# A locked byte cannot be read on Windows. This one lies far beyond the end of the file, so the content stays readable.
_WINDOWS_LOCK_OFFSET = 1 << 30

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Lock an open file; return False when another process holds the lock. Closing the file frees it."""
        try:
            os.lseek(descriptor, _WINDOWS_LOCK_OFFSET, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Lock an open file; return False when another process holds the lock. Closing the file frees it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
