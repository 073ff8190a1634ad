"""How fast is a region of 40 lines with one changed line rewritten, and how much of that is its own draft?

Run it as `python benchmarks/edits/rewriting_speed.py --model FILE.gguf`; next_edits.py prints the same after its table.
All lines of a text are of one run, so their ratios hold on a busy machine too. llama.cpp is beside them where `make
llamacpp` has brought it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "engine"))

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import attrs
import typer
from fetch_llamacpp import SERVER, environment  # this module is in the folder of the engine's tests

from benchmarks.peers.peer_llamacpp import backend
from engine.fill.draft_planner import PassTimer
from engine.fill.stream import StreamModel
from engine.models.edit_formats import EDIT_FORMATS, EditPrompt, Mark
from engine.models.load import load
from engine.protocol.messages import Fill, Filled
from engine.protocol.rewrite import PastEdit, Rewrite
from engine.schedule.caches import ContextCache
from engine.schedule.job import FillJob, OpenHole
from engine.schedule.warm_up import time_passes

_CACHE_BYTES = 256 * 1024 * 1024
_START_S = 120.0
BUDGET_MS = 600_000.0
"""Nothing is cut off on a busy machine."""
_MOST_TOKENS = 1_000
_STEPS = "".join(
    f"    {name} = {call}(order.{name}, limit)\n    if {name} is None:\n        return None\n"
    for name, call in (("price", "price_of"), ("tax", "tax_of"), ("weight", "weigh"), ("postage", "post"))
)
_CODE = f"def ship(order, limit, currency):\n{_STEPS * 3}    return price + tax + weight\n\n\n"
_NUMBERS = "".join(f"    {100 + 7 * at}: ({at * 0.25}, 'row {at}'),\n" for at in range(38))
REGIONS = {
    "40 lines of code": (
        _CODE,
        PastEdit("shop.py", "def ship(order, limit):\n", "def ship(order, limit, currency):\n"),
    ),
    "40 lines with numbers": (
        f"ROWS = {{\n{_NUMBERS}}}\n",
        PastEdit("shop.py", "ROWS = {}\n", "ROWS = {\n"),
    ),
}


@attrs.frozen
class Took:
    """Milliseconds of a rewrite, the tokens it wrote, and its passes."""

    ms: float
    tokens: int
    passes: int


def fill_of(region: str, edit: PastEdit, rule: str = "verify") -> Fill:
    """Return the request to rewrite a region after an edit of its first line."""
    kept = region.index("\n") + 1
    return Fill(
        1,
        "",
        "",
        path="shop.py",
        language="python",
        extent="lines",
        budget_ms=BUDGET_MS,
        max_tokens=_MOST_TOKENS,
        memory="off",
        rule="left-to-right" if rule == "left-to-right" else "verify",
        rewrite=Rewrite(region, kept=kept, edits=[edit]),
    )


class Rewriter:
    """A model that rewrites in this process, without the wait for other work of a scheduler."""

    def __init__(self, model: Path, threads: int) -> None:
        loaded = load(str(model), threads=threads)
        assert isinstance(loaded, StreamModel)
        self.model, self._timer = loaded, PassTimer()
        time_passes(loaded)
        self._cache = ContextCache(loaded, _CACHE_BYTES)

    def run(self, fill: Fill) -> tuple[Filled, int]:
        """Return the answer, and how many tokens were written for it. Raises MidspanError for what is refused."""
        hole = OpenHole(fill, self.model, self._cache, time.perf_counter())
        job = FillJob(hole, fill)
        while True:
            for index, result in enumerate(self.model.run(job.passes(64))):
                job.absorb(index, result, 1.0, 1.0)
            if job.done(self._timer):
                tokens = len(self.model.tokenizer.encode(job.text, add_special_tokens=False).ids)
                hole.release(0)
                return job.filled(), tokens

    def took(self, fill: Fill) -> Took:
        """Return the time of a rewrite."""
        began = time.perf_counter()
        filled, tokens = self.run(fill)
        return Took((time.perf_counter() - began) * 1000, tokens, filled.steps)


def _prompt(fill: Fill, name: str) -> str:
    row = next(one for one in EDIT_FORMATS if one.name == name)
    assert fill.rewrite is not None
    rewrite = fill.rewrite
    asked = EditPrompt(fill.path, "", rewrite.region, "", -1, rewrite.kept, rewrite.edits)
    return "".join(piece.token if isinstance(piece, Mark) else piece for piece in row.prompt(asked))


@contextmanager
def _llamacpp(model: Path, threads: int) -> Iterator[str]:
    """Yield the address of llama.cpp's server with a model."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(SERVER), "--model", str(model), "--port", str(port), "--parallel", "1", "--ctx-size", "4096"]
    with tempfile.TemporaryFile() as log:
        variables = {**os.environ, **environment(backend())}
        process = subprocess.Popen([*command, "--threads", str(threads)], stdout=log, stderr=log, env=variables)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _by_llamacpp(address: str, prompt: str, tokens: int) -> Took:
    """Return the time of so many tokens, left to right, with the prompt read: the second of two requests."""
    body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "cache_prompt": True, "ignore_eos": True}
    kind = {"content-type": "application/json"}
    request = urllib.request.Request(f"{address}/completion", json.dumps(body).encode(), kind)
    deadline = time.monotonic() + _START_S
    while True:
        try:
            for _ in range(2):
                with urllib.request.urlopen(request, timeout=BUDGET_MS / 1000) as answer:
                    timings = json.load(answer)["timings"]
            return Took(timings["predicted_ms"], timings["predicted_n"], timings["predicted_n"])
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def lines_of(rewriter: Rewriter, model: Path, threads: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'':58} tokens passes tokens/pass      ms times"
    edits = rewriter.model.info.edits
    for name, (region, edit) in REGIONS.items():
        drafted = fill_of(region, edit)
        rewriter.run(fill_of("x = 1\n" * 2, edit))  # the examples at the start of each prompt
        cold = rewriter.took(drafted)
        read = min((rewriter.took(drafted) for _ in range(3)), key=lambda one: one.ms)
        alone = rewriter.took(fill_of(region, edit, "left-to-right"))
        rows = [
            ("the prompt not read", cold),
            ("the prompt read", read),
            ("read, left to right without a draft", alone),
        ]
        if SERVER.exists():
            with _llamacpp(model, threads) as address:
                rows.append(("read, llama.cpp", _by_llamacpp(address, _prompt(drafted, edits), alone.tokens)))
        for what, took in rows:
            speed = took.tokens / max(1, took.passes)
            yield (
                f"{f'{name}: {what}':58} {took.tokens:6} {took.passes:6} {speed:11.1f} {took.ms:7.0f} "
                f"{took.ms / read.ms:5.1f}"
            )


def main(
    model: Annotated[Path, typer.Option(help="A GGUF of a model for edits.")],
    threads: Annotated[int, typer.Option()] = 2,
) -> None:
    """Print how fast a region is rewritten."""
    for line in lines_of(Rewriter(model, threads), model, threads):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
