"""What a pass costs in the kernel, on each of its paths: `python benchmarks/kernel.py`, on one core.

Rows of one hole after a context, with the logits of all rows, beside the same pass in torch with the same weights. All
take turns in one run, a few passes a turn, as a fill runs several; so their ratios count, and not their milliseconds.
The fastest pass is shown, because other work on the machine only adds. The floor is what the processor's arithmetic and
the reading of the weights allow: benchmarks/kernel_floor.c measures both, if there is gcc.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import attrs
import numpy as np
import torch
from machine import this_machine
from rich.console import Console
from rich.table import Table

from engine.fill.stream import StreamPass
from engine.library.device_memory import processor_has_bf16
from engine.library.resolve import folder_of
from engine.models.embedded.host_runner import HostRunner
from engine.models.embedded.kernel_pass import KernelPass, kernel_paths
from engine.models.embedded.load import load
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.numpy_pass import HostPass, NumpyPass
from engine.models.embedded.rows import PackedRows
from engine.models.embedded.runner import Runner
from engine.models.embedded.shape import Shape
from engine.models.embedded.weights import Weights

ROWS = (1, 8, 16, 32)
_PASSES = 5
"""Of one runner in a turn."""
_OUT = Path(__file__).resolve().parent / "out"


@attrs.frozen
class Speeds:
    """Of one path: products of int16 and of fp32 added up in a second, and bytes of weights read in a second."""

    ints: float
    floats: float
    bytes: float


@attrs.frozen
class Measured:
    """Milliseconds of one pass: the median, the fastest, and what the arithmetic allows (None where not known)."""

    runner: str
    rows: int
    median: float
    fastest: float
    floor: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description="What a pass costs on each path of the kernel.")
    parser.add_argument("--model", default="embedded", help='"embedded" or a folder with a model')
    parser.add_argument("--keys", type=int, default=300, help="tokens of the context")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--torch", choices=("bf16", "fp32"), default=_precision(), help="what torch computes in")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder = folder_of(arguments.model)
    reference = load(folder, json.loads((folder / "config.json").read_text()), 1, "cpu", arguments.torch)
    weights, shape = Weights.load(folder / "model.safetensors"), reference.card.shape
    runners: dict[str, Runner] = {f"torch {arguments.torch}": reference.runner}
    hosts: list[HostPass] = [KernelPass(weights, shape, path) for path in kernel_paths()]
    for host in (*hosts, NumpyPass(weights, shape)):
        runners[host.name] = HostRunner(host, shape, [], [])
    speeds = measured_speeds(shape)
    results: list[Measured] = []
    for rows in ROWS:
        times = in_turns(reference, runners, arguments.keys, rows, arguments.turns)
        results += [
            Measured(name, rows, statistics.median(taken), min(taken), floor(shape, rows, arguments.keys, speeds, name))
            for name, taken in times.items()
        ]
    _show(results, arguments.keys)
    _OUT.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(attrs.asdict(this_machine())), *(json.dumps(attrs.asdict(result)) for result in results)]
    (_OUT / "kernel.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def _precision() -> Literal["bf16", "fp32"]:
    """Return what torch computes fastest in on this processor."""
    return "bf16" if processor_has_bf16() else "fp32"


def in_turns(
    model: EmbeddedModel, runners: dict[str, Runner], keys: int, rows: int, turns: int
) -> dict[str, list[float]]:
    """Return the milliseconds of each runner's passes. The first one of a turn is not counted: its weights are not in
    the cache."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(8, model.card.shape.vocabulary, keys + rows).tolist()
    passes: dict[str, StreamPass] = {}
    for name, runner in runners.items():
        context = runner.new_context()
        _run(model, runner, StreamPass(context, tokens[:keys], [], []))
        context.tokens += tokens[:keys]
        passes[name] = StreamPass(context, tokens[keys:], [], range(rows))
    taken: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(turns):
        for name, runner in runners.items():
            taken[name] += [_run(model, runner, passes[name]) for _ in range(_PASSES)][1:]
    return taken


def _run(model: EmbeddedModel, runner: Runner, item: StreamPass) -> float:
    """Run a pass over already prepared rows and return its milliseconds."""
    packed = PackedRows.of([item], [len(item.context.tokens)], model.card.marks, model.card.shape.gram_buckets)
    started = time.perf_counter()
    with torch.inference_mode():
        runner.run([item], packed).logits()
    return (time.perf_counter() - started) * 1000


def measured_speeds(shape: Shape) -> dict[str, Speeds]:
    """Return what each path's arithmetic reaches here; nothing without gcc or on another processor."""
    if shutil.which("gcc") is None or not kernel_paths():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        program, source = Path(folder) / "floor", Path(__file__).with_name("kernel_floor.c")
        if subprocess.run(["gcc", "-O2", str(source), "-o", str(program)], capture_output=True).returncode:
            return {}
        command = [str(program), str(_products_a_row(shape)), *kernel_paths()]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: Speeds(*map(float, numbers)) for name, *numbers in (line.split() for line in lines)}


def floor(shape: Shape, rows: int, keys: int, speeds: dict[str, Speeds], name: str) -> float | None:
    """Return the milliseconds of the products and the attention, or of reading the weights if that is more."""
    speed = speeds.get(name)
    if speed is None:
        return None
    attention = 2 * shape.layers * shape.width * rows * (keys + (rows + 1) / 2)
    computing = rows * _products_a_row(shape) / speed.ints + attention / speed.floats
    return 1000 * max(computing, _products_a_row(shape) / speed.bytes)


def _products_a_row(shape: Shape) -> int:
    """Return the int8 weights that each row is multiplied with; each takes a byte."""
    return shape.width * (shape.layers * (4 + 2 * shape.feed_forward) * shape.width + shape.vocabulary)


def _show(results: Sequence[Measured], keys: int) -> None:
    table = Table(title=f"a pass after {keys} keys: fastest ms, times as fast as torch (and as the floor)")
    table.add_column("")
    for rows in ROWS:
        table.add_column(f"{rows} rows" if rows > 1 else "1 row", justify="right")
    for name in dict.fromkeys(result.runner for result in results):
        cells = []
        for result in (result for result in results if result.runner == name):
            torch_ms = next(other.fastest for other in results if other.rows == result.rows)
            beside = "" if result.floor is None else f", {result.floor / result.fastest:.2f}"
            cells.append(f"{result.fastest:.3f} ({torch_ms / result.fastest:.1f}x{beside})")
        table.add_row(name, *cells)
    Console(highlight=False, width=120).print(table)


if __name__ == "__main__":
    main()
