"""The machine that figures were measured on: figures of different machines do not compare."""

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

import attrs

from engine import __version__


@attrs.frozen
class Machine:
    """Processor, system and versions."""

    processor: str
    cores: int
    system: str
    python: str
    torch: str
    midspan: str
    commit: str


def this_machine() -> Machine:
    """Describe the machine and the versions; "" for what cannot be found out."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
    return Machine(
        processor=_processor(),
        cores=cores,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        torch=metadata.version("torch"),
        midspan=__version__,
        commit=_commit(),
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", path.read_text(errors="replace")) if path.exists() else None
    return match[1].strip() if match else platform.processor()


def _commit() -> str:
    try:
        run = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return run.stdout.strip()
