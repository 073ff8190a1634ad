"""Editors that type at once, in processes of their own: benchmarks/scale types, and this says what must hold."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hardening.work import Row, Work

_SCALE = Path(__file__).resolve().parents[2] / "benchmarks" / "scale" / "scale.py"
KEYS = 800
"""Two minutes at a key every 150 ms."""
_FEWEST_KEYS = 40
_FEW, _MANY = 10, 50
_MOST_MS = 150.0
_LEAST_KEPT = 0.75
_MOST_UNFAIR = 1.5


def soak(work: Work) -> list[Row]:
    """Let 10 and 50 editors type."""
    keys = max(_FEWEST_KEYS, min(KEYS, work.of_hour(KEYS)))
    command = [sys.executable, str(_SCALE), "--only", "editors", "--keys", str(keys), "--out", str(work.folder)]
    environment = {**os.environ, "PYTHONPATH": str(_SCALE.parents[2])}
    for editors in (_FEW, _MANY):
        command += ["--editors", str(editors)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    found = json.loads((work.folder / "scale.json").read_text("utf-8"))["editors"]
    return [_row(figures, found[0]) for figures in found]


def _row(figures: dict[str, Any], few: dict[str, Any]) -> Row:
    lost = []
    if figures["failed"]:
        lost.append(f"{figures['failed']} requests neither answered nor replaced")
    if figures["editors"] == _FEW and figures["ms"]["p95"] > _MOST_MS:
        lost.append(f"p95 {figures['ms']['p95']:.0f} ms")
    if (kept := _answers(figures) / _answers(few)) < _LEAST_KEPT:
        lost.append(f"{kept:.0%} of the answers that {_FEW} editors get")
    if figures["slowest"] > _MOST_UNFAIR:
        lost.append(f"the slowest editor's p95 is {figures['slowest']:.2f} times the median's")
    seen = f"{figures['answered']:.0%} answered, p95 {figures['ms']['p95']:.0f} ms, slowest {figures['slowest']:.2f}"
    return Row(f"requests of {figures['editors']} editors at once", figures["requests"], lost, seen)


def _answers(figures: dict[str, Any]) -> float:
    """Return how many answers all editors get together, in those that one would get in the same time."""
    return float(max(figures["answered"] * figures["editors"], 0.01))
