"""Files that others may read or write at the same time: they are written whole or not at all, or locked.

A new file is written beside the old one first, which keeps its owner and its rights. The system frees a lock when the
file closes. It works on POSIX and on Windows.
"""

import os
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def make_folder(folder: Path) -> None:
    """Make a folder of Midspan's own, and those above it that are missing, for its user alone. Raises OSError."""
    for each in reversed((folder, *folder.parents)):
        if not each.exists():  # mkdir's own `parents` makes these as the umask says
            each.mkdir(mode=0o700, exist_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, which a link may lead to. Raises OSError.

    A crash or a full disk leaves the old bytes or the new.
    """
    real = Path(os.path.realpath(path))
    beside = real.with_name(f".midspan-{secrets.token_hex(8)}.new")
    try:
        # O_NONBLOCK: a pipe in the file's place must not be waited for.
        old = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        old = None
    try:
        if old is not None and not stat.S_ISREG(os.fstat(old).st_mode):
            raise OSError(f"{path} is no regular file")
        write_beside(str(beside), data, None, old)
        try:
            beside.replace(real)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    finally:
        if old is not None:
            os.close(old)


def write_beside(name: str, data: bytes, folder: int | None, like: int | None) -> None:
    """Write a new file `name` in an open folder, None for that of the process. It is on the disk afterwards.

    `like` is the open file that it will replace: it gets that one's owner, rights and attributes. Raises OSError, and
    leaves no file then.
    """
    descriptor = os.open(name, _NEW, 0o644 if like is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if like is not None:
                _make_alike(file.fileno(), like)
            os.fsync(file.fileno())
        if like is not None and not hasattr(os, "fchmod"):
            Path(name).chmod(stat.S_IMODE(os.fstat(like).st_mode))
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def _make_alike(new: int, old: int) -> None:
    if not hasattr(os, "fchmod"):
        return
    status, own = os.fstat(old), os.fstat(new)
    if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
        try:
            os.fchown(new, status.st_uid, status.st_gid)
        except OSError as error:
            raise OSError(error.errno, "its owner and group cannot be kept") from None
    for name in os.listxattr(old) if hasattr(os, "listxattr") else ():
        with suppress(OSError):  # labels of the system's own
            os.setxattr(new, name, os.getxattr(old, name))
    os.fchmod(new, stat.S_IMODE(status.st_mode))


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
        """Lock an open file; return False when another process holds the lock. Closing the file frees it.

        Raises OSError where files cannot be locked, as on some network drives: nobody holds such a lock.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True
