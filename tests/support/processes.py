"""The processes that a test looks at, some of which end while it looks."""

from collections.abc import Callable
from pathlib import Path

import psutil


def lives(process: psutil.Process) -> bool:
    """Whether a process runs: one that ended and was not waited for yet does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def children(pid: int, asked: Callable[[psutil.Process], bool], *, recursive: bool = False) -> list[psutil.Process]:
    """Return the children of a process that live and are asked for.

    Each can end between two looks at it, and then it is no child of that kind.
    """
    found: list[psutil.Process] = []
    for child in psutil.Process(pid).children(recursive=recursive):
        try:
            if lives(child) and asked(child):
                found.append(child)
        except psutil.NoSuchProcess:
            pass
    return found


def niceness_of(pid: int) -> set[int]:
    """Return the niceness of a process, and that of its session's group where Linux has such groups."""
    group = Path(f"/proc/{pid}/autogroup")
    return {psutil.Process(pid).nice(), *([int(group.read_text().split()[-1])] if group.exists() else [])}
