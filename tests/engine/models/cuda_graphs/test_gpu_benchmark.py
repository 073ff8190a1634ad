"""The GPU benchmark on tiny shapes: it prints each figure with its floor, and a failing section stops no other."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu.gpu_floor import Speeds
from benchmarks.gpu.gpu_models import FULL_DREAM, FULL_GEMMA

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
H200 = Speeds(4.3e9, 790e9)


def figures(*arguments: str) -> tuple[int, list[dict[str, object]]]:
    """Run the benchmark; return its exit status and the lines that it printed."""
    command = [sys.executable, "-m", "benchmarks.gpu", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_dreams_fill_is_compared_with_its_floor_and_the_released_loop() -> None:
    status, lines = figures("--only", "dream-fill")
    assert status == 0
    assert [line["figure"] for line in lines] == ["Dream fill, 16 tokens over 64", "Dream step over kept sides"]
    assert {"ms", "floor_ms", "times_floor", "other_ms", "times_faster", "device"} <= set(lines[0])


def test_a_failing_section_fails_the_run() -> None:
    status, lines = figures("--only", "embedded-alone", "--model", str(ROOT / "docs"))
    assert status != 0
    assert lines == []


@pytest.mark.parametrize(("canvas", "stated"), [(16, 8.4), (64, 12.0), (256, 12.2)])
def test_floors_equal_those_computed_by_hand(canvas: int, stated: float) -> None:
    assert FULL_GEMMA.step(canvas, 4096, 2.0).floor_ms(H200) == pytest.approx(stated, rel=0.12)


def test_the_floor_of_a_dense_step_is_reading_its_weights() -> None:
    """7.6 billion weights without the embedding table, of which a step reads only a few rows."""
    assert FULL_DREAM.step(16, 0, 2.0).bytes / 2 == pytest.approx(7.07e9, rel=0.01)
