"""GGUF files in our kernel beside llama.cpp: random weights of true shapes, the same tokens, in one run.

    python benchmarks/peers/gguf_models.py [--model FILE.gguf]

With --model a file of one's own is measured instead, with its own weights. The columns: 600 tokens of context read for
the first time; the next key, of which two tokens are read and 32 written one by one; the same 32 tokens where the
workspace has the text, so that drafts of 12 are verified; 32 tokens in 8 steps of a canvas, 4 committed a step, as a
masked model of this shape denoises (fill/denoise.py: what is committed moves into the context, and the canvas slides
on). llama.cpp has the first two; `make llamacpp` fetches it. Each of ours runs in a process of its own, for its
resident memory and the milliseconds of a processor that its load takes. What 4 bits lose is measured with a real file,
in tests/engine/models/left_to_right/test_smollm2.py.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from typing import Annotated

import numpy as np
import psutil
import typer

from benchmarks.peers.peer_llamacpp import LlamaCppPeer
from benchmarks.peers.random_gguf import QWEN, QWEN_SMALL, Llama, write_random_gguf
from engine.errors import MidspanError
from engine.fill.strategies import MOST_REMEMBERED
from engine.fill.stream import CanvasUse, StreamPass
from engine.models.left_to_right.load import load_gguf
from engine.models.left_to_right.model import LeftToRightModel

SHAPES = {"0.5": QWEN_SMALL, "1.5": QWEN}
KINDS = ("Q8_0", "Q4_0")
READ, PIECE, KEY, STEPS, TOKENS = 600, 64, 2, 8, 32
_PROMPT = [60 + at * 7 % 180 for at in range(READ)]
Times = dict[str, float]

app = typer.Typer()


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    sizes: Annotated[list[str] | None, typer.Option("--size", help="0.5 or 1.5; by default both.")] = None,
    threads: Annotated[int, typer.Option(help="Threads of each.")] = 2,
    turns: Annotated[int, typer.Option(help="Turns, of which the median counts.")] = 5,
    model: Annotated[Path | None, typer.Option(help="A GGUF to measure instead, without llama.cpp.")] = None,
) -> None:
    """Print a line for each model, type and program: milliseconds and megabytes."""
    if context.invoked_subcommand is not None:
        return
    if model is not None:
        _show(f"Midspan, {model.name}", _measured(model, threads, turns))
        return
    with tempfile.TemporaryDirectory(prefix="midspan-gguf-") as folder:
        for size in sizes or SHAPES:
            for kind in KINDS:
                path = Path(folder) / f"own-{kind}.gguf"
                write_random_gguf(path, SHAPES[size], kind)
                _show(f"Midspan, {SHAPES[size].name}, {kind}", _measured(path, threads, turns))
                path.unlink()
                try:
                    name = f"llama.cpp, {SHAPES[size].name}, {kind}"
                    _show(name, asyncio.run(_llamacpp(SHAPES[size], kind, Path(folder), threads, turns)))
                except MidspanError as error:
                    print(f"without {name}: {error}")


def _measured(path: Path, threads: int, turns: int) -> Times:
    """Measure our kernel with a file in a process of its own."""
    command = [sys.executable, __file__, "own", str(path), str(threads), str(turns)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times: Times = json.loads(done.stdout)
    return times


@app.command()
def own(path: Path, threads: int, turns: int) -> None:
    """Measure our kernel with one file, and print JSON."""
    started = time.process_time()
    model = load_gguf(path, threads)
    loading = (time.process_time() - started) * 1000
    taken = [_own_turn(model) for _ in range(turns + 1)][1:]
    times = {name: statistics.median(turn[name] for turn in taken) for name in taken[0]}
    megabytes = psutil.Process().memory_info().rss / 1e6
    print(json.dumps({"load (of a processor)": loading, **times, "MB": megabytes}))


def _own_turn(model: LeftToRightModel) -> Times:
    context, begun = model.new_context(), time.perf_counter()
    for first in range(0, READ, PIECE):
        model.run([model.read(context, _PROMPT[first : first + PIECE])])
    times = {"first read": (time.perf_counter() - begun) * 1000}
    begun, token = time.perf_counter(), 60
    model.run([model.read(context, _PROMPT[: KEY - 1])])
    for _ in range(TOKENS):
        (result,) = model.run([StreamPass(context, [token], [], [0])])
        token = int(result.predictions.tokens[0, 0])
    times["next key"] = (time.perf_counter() - begun) * 1000
    context.truncate(READ)
    begun, left = time.perf_counter(), TOKENS
    model.run([model.read(context, _PROMPT[: KEY - 1])])
    while left > 0:
        rows = min(left, MOST_REMEMBERED + 1)
        model.run([StreamPass(context, _PROMPT[:rows], [], range(rows))])
        left -= rows
    times["next key, drafted"] = (time.perf_counter() - begun) * 1000
    context.truncate(READ)
    begun = time.perf_counter()
    model.run([model.read(context, _PROMPT[: KEY - 1])])
    committed = TOKENS // STEPS
    for step in range(STEPS):
        written = _PROMPT[:committed] if step else [60]
        canvas = [60] * (min(CanvasUse().most, TOKENS - step * committed) - 1)
        model.run([StreamPass(context, written, canvas, range(len(written) - 1, len(written) + len(canvas)))])
    times["masked"] = (time.perf_counter() - begun) * 1000
    return times


async def _llamacpp(shape: Llama, kind: str, folder: Path, threads: int, turns: int) -> Times:
    peer = await LlamaCppPeer.start(shape, folder, threads, kind)
    try:
        first, following = [], []
        for turn in range(turns + 1):
            # Another first token each time, so that nothing of the prompt is in the server's cache.
            prompt = [60 + turn, *_PROMPT[1:]]
            read = await peer.complete(prompt, 1)
            following.append((await peer.complete([*prompt, *_PROMPT[:KEY]], TOKENS)).ms)
            first.append(read.prompt_ms)
        times = {"first read": statistics.median(first[1:]), "next key": statistics.median(following[1:])}
        return {**times, "MB": psutil.Process(peer.pid).memory_info().rss / 1e6}
    finally:
        await peer.close()


def _show(name: str, times: Times) -> None:
    print(f"{name:40}", "  ".join(f"{what} {np.round(value):.0f}" for what, value in times.items()), flush=True)


if __name__ == "__main__":
    app()
