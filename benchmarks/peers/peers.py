"""Midspan beside other ways to fill a hole, on the same holes and cores, in one run.

All fills have 16 tokens, in real code that the model never read. A hole is filled for the first time, so that its
context must be read, and again after the next key. The engine, with other things in the kernel's place, runs our own
weights; llama.cpp's server runs networks of known shapes with random weights, so only its time means anything. All
take turns, so the ratios count, and not the milliseconds.

What is not there is left out with one line. `make llamacpp` fetches llama.cpp; ONNX Runtime is taken from PYTHONPATH:
`pip install --no-deps --target FOLDER onnxruntime onnx protobuf ml_dtypes`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable
from typing import Annotated

import attrs
import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common.machine import Machine, this_machine
from benchmarks.peers.peer import TOKENS, Peer, Took, holes_of
from benchmarks.peers.peer_engine import NUMPY, ONNX, WAYS, EnginePeer, Way, resident_megabytes
from benchmarks.peers.peer_llamacpp import LlamaCppPeer, backend
from benchmarks.peers.peer_onnx import OnnxPass, OnnxRunner, has_onnx
from benchmarks.peers.peer_quality import WayQuality, quality_of_ways
from benchmarks.peers.random_gguf import HUNDRED, QWEN, QWEN_SMALL
from engine.corpus import corpus
from engine.errors import MidspanError
from engine.fill.stream import StreamPass
from engine.library.device_memory import processor_has_bf16
from engine.library.resolve import folder_of
from engine.models.embedded.load import load
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import HostRunner, Runner, host_pass
from engine.models.embedded.weights import Weights

_OUT = Path(__file__).resolve().parents[1] / "out"
_KEYS = 300
"""Tokens before the rows of a pass."""
_ROWS = (1, 16)
_PASSES = 5
_TURNS = 20
_MEGABYTE = 1e6


@attrs.frozen
class PeerTimes:
    """Median milliseconds of a fill of 32 tokens and of passes by their rows, tokens read, and megabytes.

    `fills` counts those with all 32 tokens; no other counts. A pass that cannot be measured alone has no entry.
    """

    name: str
    fills: int
    first_ms: float
    first_read: float
    next_ms: float
    next_read: float
    pass_ms: dict[int, float]
    resident: float
    disk: float


@attrs.frozen
class Peers:
    """Everything that one run measured."""

    machine: Machine
    model: str
    threads: int
    llamacpp: str
    times: list[PeerTimes]
    quality: list[WayQuality]


def main(
    holes: Annotated[int, typer.Option(help="How many holes to fill.")] = 12,
    threads: Annotated[int, typer.Option(help="Threads of those that can use several.")] = 2,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with one of the same kind.')] = "embedded",
    without: Annotated[list[str] | None, typer.Option(help="Leave out peers whose names contain this.")] = None,
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with held-out.msgpack.")] = Path(
        "runs/small/corpus"
    ),
    lines: Annotated[int, typer.Option(help="Rests of lines to fill for the quality; 0 measures time only.")] = 250,
    places: Annotated[int, typer.Option(help="Places to type at for the quality.")] = 30,
    out: Annotated[Path, typer.Option(help="The folder for peers.json.")] = _OUT,
) -> None:
    """Measure all peers that are here; print two tables, write peers.json."""
    console = Console(highlight=False, width=140)
    try:
        loaded = load(folder_of(model), _config(model), 1, "cpu")
        with tempfile.TemporaryDirectory(prefix="midspan-peers-") as folder:
            os.environ["MIDSPAN_DATA_DIR"] = folder
            times = asyncio.run(_measure(loaded, model, holes, threads, without or [], Path(folder), console))
        _show_times(times, console)
        quality = _quality(loaded, model, corpus_folder, lines, places, console) if lines else []
    except MidspanError as error:
        typer.echo(f"peers: {error}", err=True)
        raise typer.Exit(1) from None
    out.mkdir(parents=True, exist_ok=True)
    measured = Peers(this_machine(), loaded.info.name, threads, backend(), times, quality)
    (out / "peers.json").write_text(json.dumps(attrs.asdict(measured), indent=1) + "\n", "utf-8")


def _config(model: str) -> dict[str, object]:
    config: dict[str, object] = json.loads((folder_of(model) / "config.json").read_text())
    return config


async def _measure(
    loaded: EmbeddedModel, model: str, count: int, threads: int, without: list[str], folder: Path, console: Console
) -> list[PeerTimes]:
    passes = _passes(loaded, model, threads, without)
    peers: list[Peer] = []
    try:
        for way in WAYS:
            if not any(part in way.name for part in without) and (way.precision != "bf16" or processor_has_bf16()):
                await _add(peers, way.name, EnginePeer.start(way, model, folder, threads), console)
        for shape in (HUNDRED, QWEN_SMALL, QWEN):
            if not any(part in f"llama.cpp, {shape.name}" for part in without):
                await _add(peers, shape.name, LlamaCppPeer.start(shape, folder, threads), console)
        holes = await holes_of(loaded, count + 1)
        took: dict[str, list[tuple[Took, Took]]] = {peer.name: [] for peer in peers}
        for number, hole in enumerate(holes):
            for turn in range(len(peers)):
                peer = peers[(turn + number) % len(peers)]
                took[peer.name].append((await peer.fill(hole.first), await peer.fill(hole.next)))
        for peer in peers:
            if isinstance(peer, LlamaCppPeer):
                passes[peer.name] = {rows: await peer.passes(holes[0].first.tokens[:_KEYS], rows) for rows in _ROWS}
        # The first hole warms up and does not count.
        times = [_times(peer, took[peer.name][1:], passes.get(peer.name, {}), console) for peer in peers]
        if not (found := [each for each in times if each is not None]):
            raise MidspanError(f"nobody filled a hole with {TOKENS} tokens; fill more of them: --holes")
        return found
    finally:
        for peer in peers:
            await peer.close()


async def _add(peers: list[Peer], name: str, starting: Awaitable[Peer], console: Console) -> None:
    try:
        peers.append(await starting)
    except MidspanError as error:
        console.print(f"without {name}: {error}", soft_wrap=True)


def _passes(loaded: EmbeddedModel, model: str, threads: int, without: list[str]) -> dict[str, dict[int, float]]:
    """Return the fastest milliseconds of a pass by the name of the way and the number of rows, all in this process."""
    torch.set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    folder, shape = folder_of(model), loaded.card.shape
    weights = Weights.load(folder / "model.safetensors")

    def runner_of(way: Way) -> Runner | None:
        if way.passes == NUMPY:
            return HostRunner(NumpyPass(weights, shape), weights, shape, [], [])
        if way.passes == ONNX:
            return OnnxRunner(OnnxPass(weights, shape), shape, [], []) if has_onnx() else None
        if way.precision == "auto":
            return HostRunner(host_pass(weights, shape), weights, shape, [], [])
        there = way.precision != "bf16" or processor_has_bf16()
        return load(folder, _config(model), threads, "cpu", way.precision).runner if there else None

    wanted = [way for way in WAYS if not any(part in way.name for part in without)]
    runners = {way.name: runner for way in wanted if (runner := runner_of(way)) is not None}
    found: dict[str, dict[int, float]] = {name: {} for name in runners}
    for rows in _ROWS:
        for name, taken in _in_turns(runners, shape.vocabulary, _KEYS, rows, _TURNS).items():
            found[name][rows] = min(taken)
    return found


def _in_turns(runners: dict[str, Runner], vocabulary: int, keys: int, rows: int, turns: int) -> dict[str, list[float]]:
    """Return the milliseconds of each runner's passes. The first one of a turn is not counted: its weights are not in
    the cache."""
    tokens = np.random.default_rng(0).integers(8, vocabulary, keys + rows).tolist()
    passes: dict[str, StreamPass] = {}
    for name, runner in runners.items():
        context = runner.new_context()
        _run(runner, StreamPass(context, tokens[:keys], [], []))
        context.tokens += tokens[:keys]
        passes[name] = StreamPass(context, tokens[keys:], [], range(rows))
    taken: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(turns):
        for name, runner in runners.items():
            taken[name] += [_run(runner, passes[name]) for _ in range(_PASSES)][1:]
    return taken


def _run(runner: Runner, item: StreamPass) -> float:
    """Run a pass and return its milliseconds."""
    started = time.perf_counter()
    with torch.inference_mode():
        runner.logits([item])
    return (time.perf_counter() - started) * 1000


def _times(peer: Peer, took: list[tuple[Took, Took]], passes: dict[int, float], console: Console) -> PeerTimes | None:
    whole = [pair for pair in took if all(each.tokens == TOKENS for each in pair)]
    if not whole:
        console.print(f"without {peer.name}: it filled no hole with {TOKENS} tokens; fill more of them: --holes")
        return None
    first, after = zip(*whole, strict=True)
    return PeerTimes(
        name=peer.name,
        fills=len(whole),
        first_ms=statistics.median(each.ms for each in first),
        first_read=statistics.fmean(each.read for each in first),
        next_ms=statistics.median(each.ms for each in after),
        next_read=statistics.fmean(each.read for each in after),
        pass_ms=passes,
        resident=resident_megabytes(peer.pid),
        disk=peer.disk / _MEGABYTE,
    )


def _show_times(times: list[PeerTimes], console: Console) -> None:
    title = f"Fills of {TOKENS} tokens: median ms, and how many times as long as the first row's"
    table = Table("", "first", "next key", "tokens/s", *(f"pass, {rows}" for rows in _ROWS), "MB", "disk", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for each in times:
        passes = (f"{each.pass_ms[rows]:.2f}" if rows in each.pass_ms else "" for rows in _ROWS)
        table.add_row(
            each.name,
            f"{each.first_ms:.1f} ({each.first_ms / times[0].first_ms:.1f}x)",
            f"{each.next_ms:.1f} ({each.next_ms / times[0].next_ms:.1f}x)",
            f"{1000 * TOKENS / each.next_ms:.0f}",
            *passes,
            f"{each.resident:.0f}",
            f"{each.disk:.0f}",
        )
    console.print(table)
    read = ", ".join(f"{each.name} {each.first_read:.0f} and {each.next_read:.1f}" for each in times)
    console.print(f"{times[0].fills} holes; tokens read for the first and the next fill: {read}", soft_wrap=True)


def _quality(
    model: EmbeddedModel, name: str, folder: Path, lines: int, places: int, console: Console
) -> list[WayQuality]:
    """Measure and show the quality; without a corpus say so, and return nothing."""
    try:
        files = corpus.load(folder, "held-out")
    except MidspanError as error:
        console.print(f"without quality: {error}", soft_wrap=True)
        return []
    ways = asyncio.run(quality_of_ways(model, name, files, "python", lines, places))
    table = Table("", "rest of line, exact", "keys saved", "right among shown", title="Python of hidden packages")
    for way in ways:
        table.add_row(way.way, f"{way.exact:.1%}", f"{way.saved:.1%}", f"{way.right:.1%}")
    console.print(table)
    return ways


if __name__ == "__main__":
    typer.run(main)
