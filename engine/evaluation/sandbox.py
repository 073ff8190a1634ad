"""Runs code that a model wrote: in an interpreter of its own that may compute, and nothing else.

Everywhere: a fresh interpreter in an empty folder, without environment, input or output, with bounded time and memory,
that refuses to write, start, signal or connect (cell.py). On Linux the kernel refuses as well to change or execute any
file (Landlock), and where unprivileged namespaces are allowed (`unshare` of util-linux) there is no network and no
other process to see, and whatever was started dies with it. Without them only the interpreter's own refusal keeps code
from the network. Files can be read: the answer has no way out.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import attrs

from engine.evaluation.sandbox_child import OUT_OF_TIME, PASSED

Verdict = Literal["passed", "failed", "out of time"]

_CELL = Path(__file__).with_name("sandbox_child.py")
_NAMESPACES = ("--user", "--map-root-user", "--net", "--pid", "--ipc", "--fork", "--kill-child")


@attrs.frozen
class Limits:
    """`wall_s` counts from the start, `cpu_s` what was computed."""

    cpu_s: int = 5
    wall_s: float = 10.0
    memory_bytes: int = 1 << 30


@functools.cache
def isolation() -> tuple[str, ...]:
    """Return the command that cuts a process off the network and other processes; empty where it is not allowed."""
    unshare = shutil.which("unshare")
    if unshare is None or sys.platform != "linux":
        return ()
    command = (unshare, *_NAMESPACES)
    tried = subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False)
    return command if tried.returncode == 0 else ()


def run(program: str, limits: Limits | None = None) -> Verdict:
    """Run a Python program to its end and tell how it ended; sys.exit() before the end is a failure."""
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="midspan-sandbox-") as folder:
        process = subprocess.Popen(
            [
                *isolation(),
                *(sys.executable, "-I", "-S", "-B", str(_CELL)),
                *(str(limits.cpu_s), str(limits.memory_bytes)),
            ],
            cwd=folder,
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.communicate(program.encode("utf-8", "replace"), timeout=limits.wall_s)
        except subprocess.TimeoutExpired:
            return "out of time"
        finally:
            _end(process)
    if process.returncode == PASSED:
        return "passed"
    return "out of time" if process.returncode in (OUT_OF_TIME, -signal.SIGXCPU, -signal.SIGKILL) else "failed"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole group: a child may outlive the program that started it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
