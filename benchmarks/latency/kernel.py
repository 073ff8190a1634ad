"""What a pass of the embedded model costs in the kernel, on each of its paths: `python benchmarks/latency/kernel.py`.

Random weights of the real shape, so no model is needed: speed does not depend on their values. Rows of one hole after a
context, with the logits of all rows, and the reading of a context at once. All paths and numbers of threads take turns
in one run, so their ratios count, and not their milliseconds. The fastest pass is shown, because other work on the
machine only adds; the median beside it is in benchmarks/out/kernel.jsonl.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import json
import statistics
import time
from collections.abc import Iterable

import attrs
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.common.machine import this_machine
from engine.models.embedded.runner import KernelPass, kernel_paths
from engine.models.embedded.shape import GROUP, Shape
from engine.models.embedded.slabs import Hole, SlabContext
from engine.models.embedded.weights import HALF, OFFSET, SCALE, Weights, shapes_of

SHAPE = Shape(
    vocabulary=16_384,
    width=576,
    layers=30,
    heads=9,
    key_heads=3,
    head_width=64,
    hidden=1536,
    context_tokens=1024,
    canvas_tokens=32,
    rope_base=100_000.0,
)
_OUT = Path(__file__).resolve().parents[1] / "out"


@attrs.frozen
class Measured:
    """Milliseconds of a pass of some rows after a context: the fastest and the median. `logits`: of how many rows."""

    path: str
    threads: int
    rows: int
    keys: int
    logits: int
    fastest: float
    median: float


@attrs.frozen
class Task:
    """Rows of one hole after `keys` tokens."""

    rows: int
    keys: int
    logits: int

    @property
    def name(self) -> str:
        return f"read {self.rows}" if not self.logits else "1 row" if self.rows == 1 else f"{self.rows} rows"


def main() -> None:
    parser = argparse.ArgumentParser(description="What a pass costs on each path of the kernel.")
    parser.add_argument("--keys", type=int, default=300, help="tokens of the context")
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 2, 4, 8, 12, 16, 32])
    parser.add_argument("--read", type=int, nargs="*", default=[256, 768], help="tokens of contexts to read at once")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--paths", nargs="*", default=kernel_paths())
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    arguments = parser.parse_args()
    weights = random_weights(SHAPE)
    # Each has its own weights in memory, as a process that runs one of them alone.
    kernels = {
        (path, threads): KernelPass(weights, SHAPE, path, threads)
        for path in arguments.paths
        for threads in arguments.threads
    }
    tasks = [Task(rows, arguments.keys, rows) for rows in arguments.rows]
    tasks += [Task(rows, 0, 0) for rows in arguments.read]
    results = [result for task in tasks for result in measured(kernels, task, arguments.turns)]
    _show(results, tasks, kernels)
    _OUT.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(attrs.asdict(this_machine())), *(json.dumps(attrs.asdict(result)) for result in results)]
    (_OUT / "kernel.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def random_weights(shape: Shape) -> Weights:
    """Return weights in 4 bits, with an embedding in int8."""
    rng = np.random.default_rng(0)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, size in shapes_of(shape).items():
        if len(size) == 1:
            stored[name] = np.ones(size, np.float32)
            continue
        int8 = name == "embed.weight"
        largest = 127 if int8 else 8
        values = np.frombuffer(rng.bytes(size[0] * size[1] // (1 if int8 else 2)), np.int8 if int8 else np.uint8)
        stored[name] = values.reshape(size[0], -1)
        groups, scale = (size[0], size[1] // (GROUP if int8 else HALF)), 1.5 / largest / size[1] ** 0.5
        stored[name + SCALE] = np.full(groups, scale, np.float16)
        if not int8:
            stored[name + OFFSET] = np.full(groups, -7.5 * scale, np.float16)
    return Weights(stored)


def measured(kernels: dict[tuple[str, int], KernelPass], task: Task, turns: int) -> Iterable[Measured]:
    """Return what the passes of a task took. The first of a turn is not counted: its weights are not in the cache."""
    rng = np.random.default_rng(0)
    positions = np.arange(task.keys + task.rows)
    numbers = np.stack((rng.integers(0, SHAPE.vocabulary, len(positions)), positions))
    context = SlabContext(SHAPE, np.float16)
    context.reserve(len(positions))
    first = next(iter(kernels.values()))
    if task.keys:
        first.run(numbers[:, : task.keys].copy(), [Hole(task.keys, task.keys, 0, context.slabs)], np.zeros(0, np.int64))
    last = numbers[:, task.keys :].copy()
    hole = Hole(task.rows, task.rows, task.keys, context.slabs)
    taken: dict[tuple[str, int], list[float]] = {each: [] for each in kernels}
    for _ in range(turns):
        for each, kernel in kernels.items():
            for counts in (False, *(True,) * (4 if task.rows < 64 else 1)):
                started = time.perf_counter()
                kernel.run(last, [hole], np.arange(task.logits))
                if counts:
                    taken[each].append((time.perf_counter() - started) * 1000)
    return [
        Measured(path, threads, task.rows, task.keys, task.logits, min(times), statistics.median(times))
        for (path, threads), times in taken.items()
    ]


def _show(results: list[Measured], tasks: list[Task], kernels: Iterable[tuple[str, int]]) -> None:
    table = Table(title="a pass: the fastest, ms")
    table.add_column("")
    for task in tasks:
        table.add_column(task.name, justify="right")
    for path, threads in kernels:
        own = [result.fastest for result in results if (result.path, result.threads) == (path, threads)]
        table.add_row(f"{path}, {threads} thread{'s' if threads > 1 else ''}", *(f"{ms:.2f}" for ms in own))
    Console(highlight=False, width=140).print(table)


if __name__ == "__main__":
    main()
