"""How many of our files does a key press pass through, in the language server and in the engine?

Run it as `python benchmarks/latency/key_press_files.py`. It types a line of a real file into a real midspan-lsp with a
real engine, both of which record their calls (call_recorder/), and prints the files of one key press in the order of
their first call: of the key with the median number of files among those, after the first two, that the
engine was asked for. `make lint` runs it with `--most`, the figure that was reached.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import os
import tempfile
import time
from collections import Counter
from typing import Annotated

import attrs
import typer

from benchmarks.common.sources import Span, typed_lines
from benchmarks.common.startup import stop_engine
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.protocol.editor_messages import FillOptions

_RECORDER = Path(__file__).resolve().parent / "call_recorder"
_PROCESSES = {"lsp_server": "language server", "engine": "engine"}
# What a process still does after its last answer must not count for the next key.
_QUIET_S = 0.1
# The first keys after the start also build what reads and writes messages, and tell the editor that the engine is busy.
_FIRST_KEYS = 2
_END_S = 20.0


@attrs.frozen
class KeyPress:
    """One key, from the edit to the answer to the request for a suggestion; Unix times in seconds."""

    key: str
    pressed: float
    answered: float
    reused: bool


@attrs.frozen
class Call:
    """The first call of a key press into a file: the package of the process, seconds after the key, and the file."""

    process: str
    after: float
    file: str


def main(
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
    keys: Annotated[int, typer.Option(help="How many keys to type.")] = 12,
    most: Annotated[int | None, typer.Option(help="Fail if a key press passes through more files.")] = None,
) -> None:
    """Type a line, and print the files that a key press passes through."""
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = os.environ["MIDSPAN_CALLS"] = folder
        path = [str(_RECORDER), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
        presses = asyncio.run(_type(model, typed_lines(1)[0], keys))
        recorded = _read_calls(Path(folder))
    passed = [(press, first_calls(recorded, press)) for press in presses if not press.reused]
    if not passed:
        typer.echo("no key press asked the engine; type more: --keys", err=True)
        raise typer.Exit(1)
    # The median: beside one of the keys the engine may do what it does in the background, such as timing its passes.
    press, calls = sorted(passed, key=lambda pair: len(files_of(pair[1])))[len(passed) // 2]
    _print(press, calls, passed)
    if most is not None and len(files_of(calls)) > most:
        raise typer.Exit(1)


async def _type(model: str, span: Span, keys: int) -> list[KeyPress]:
    """Type the first `keys` characters of a span after a first fill, which starts the engine."""
    presses = []
    try:
        async with LspSession(model) as session:
            await session.open(span.path, span.text)
            await session.fill(Cursor.at_offset(span.path, span.text, span.offset), FillOptions())
            for typed, key in enumerate(span.middle[:keys]):
                reused = (await session.status()).reused
                await asyncio.sleep(_QUIET_S)
                pressed = time.time()
                await session.type_text(_cursor(span, typed), key)
                await session.suggest(_cursor(span, typed + 1))
                answered = time.time()
                presses.append(KeyPress(key, pressed, answered, (await session.status()).reused > reused))
    finally:
        await stop_engine(model)
    return presses[_FIRST_KEYS:]


def _cursor(span: Span, typed: int) -> Cursor:
    text = span.text[: span.offset] + span.middle[:typed] + span.text[span.offset :]
    return Cursor.at_offset(span.path, text, span.offset + typed)


def _read_calls(folder: Path) -> dict[str, list[tuple[float, str]]]:
    """Return the calls of both processes by package; wait for the processes to end, as they write then."""
    deadline = time.monotonic() + _END_S
    while True:
        documents = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json") if path.stem.isdigit()]
        recorded = {document["package"]: document["calls"] for document in documents}
        if recorded.keys() >= _PROCESSES.keys():
            return {package: recorded[package] for package in _PROCESSES}
        if time.monotonic() > deadline:
            raise SystemExit(f"only {', '.join(recorded) or 'no process'} wrote its calls within {_END_S:.0f} s")
        time.sleep(0.1)


def first_calls(recorded: dict[str, list[tuple[float, str]]], press: KeyPress) -> list[Call]:
    """Return the first call of a key press into each file of each process, in order of time."""
    first: dict[tuple[str, str], Call] = {}
    for package, calls in recorded.items():
        for called_at, file in calls:
            if press.pressed <= called_at <= press.answered:
                first.setdefault((package, file), Call(package, called_at - press.pressed, file))
    return sorted(first.values(), key=lambda call: call.after)


def files_of(calls: list[Call]) -> set[str]:
    """Return the different files; one that both processes call counts once."""
    return {call.file for call in calls}


def _print(press: KeyPress, calls: list[Call], passed: list[tuple[KeyPress, list[Call]]]) -> None:
    for package, name in _PROCESSES.items():
        own = [call for call in calls if call.process == package]
        typer.echo(f"{name}: {len(own)} files")
        for number, call in enumerate(own, 1):
            typer.echo(f"{number:4} {call.after * 1000:8.1f} ms  {call.file}")
    rooms = Counter(str(Path(file).parent) for file in files_of(calls))
    typer.echo("files by room: " + ", ".join(f"{room} {count}" for room, count in sorted(rooms.items())))
    counts = ", ".join(f"{other.key!r} {len(files_of(others))}" for other, others in passed)
    typer.echo(f"files by key: {counts}")
    typer.echo(f"a key press ({press.key!r}) passes through {len(files_of(calls))} files of ours")


if __name__ == "__main__":
    typer.run(main)
