"""The tests in real Neovim and real VS Code, again and again."""

import os
import subprocess
import sys
import time
from pathlib import Path

from hardening.work import Row, Work

ROOT = Path(__file__).resolve().parents[2]
TIMES = 20
TESTS = "tests/editors"


def soak(work: Work) -> list[Row]:
    """Run tests/editors up to 20 times, once at least, while there is time for one more."""
    if not (ROOT / ".editors").is_dir():
        return [Row("tests in real editors", 0, seen="skipped: make editors")]
    command = [sys.executable, "-m", "pytest", "--no-header", "-o", "addopts=", "-p", "no:cacheprovider", TESTS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    for name in ("MIDSPAN_RUNTIME_DIR", "MIDSPAN_DATA_DIR", "MIDSPAN_CONFIG_DIR"):
        environment.pop(name, None)
    lost, longest, times, last = list[str](), 0.0, 0, ""
    while times < TIMES and (not times or work.left > longest):
        began = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        longest, times = max(longest, time.monotonic() - began), times + 1
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if done.returncode:
            lost.append(f"run {times}: {'; '.join(failed)[:300] or f'pytest ended with {done.returncode}'}")
        last = (done.stdout.strip().splitlines() or [""])[-1].strip("= ")
        work.say(f"run {times} of at most {TIMES}: {last}")
    return [Row("runs of the tests in real Neovim and VS Code", times, lost, f"the last one: {last}")]
