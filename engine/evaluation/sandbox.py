"""Runs code that a model wrote, in an interpreter of its own that may compute and nothing else.

On every system: a new interpreter in an empty folder, without environment, input or output, with limits on time and
memory. It refuses to write, to start processes, to send signals and to connect (sandbox_child.py). On Linux the kernel
also refuses to change or execute any file (Landlock). Where unprivileged namespaces are allowed (`unshare` of
util-linux), the program has no network, sees no other process, and its children die with it. Without namespaces only
the interpreter's own refusal keeps the code off the network. The program can read files, but it cannot send them
anywhere.
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

_CHILD_SCRIPT = Path(__file__).with_name("sandbox_child.py")
_NAMESPACES = ("--user", "--map-root-user", "--net", "--pid", "--ipc", "--fork", "--kill-child")


@attrs.frozen
class Limits:
    """`wall_s` is elapsed time, `cpu_s` processor time."""

    cpu_s: int = 5
    wall_s: float = 10.0
    memory_bytes: int = 1 << 30


@functools.cache
def isolation() -> tuple[str, ...]:
    """Return the command that hides the network and other processes; empty if the system does not allow it."""
    unshare = shutil.which("unshare")
    if unshare is None or sys.platform != "linux":
        return ()
    command = (unshare, *_NAMESPACES)
    attempt = subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False)
    return command if attempt.returncode == 0 else ()


def run(program: str, limits: Limits | None = None) -> Verdict:
    """Run a Python program and return its verdict; a sys.exit() before the end is a failure."""
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="midspan-sandbox-") as folder:
        process = subprocess.Popen(
            [
                *isolation(),
                *(sys.executable, "-I", "-S", "-B", str(_CHILD_SCRIPT)),
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
    """Kill the whole process group: a child may outlive the program that started it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
