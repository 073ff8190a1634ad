"""What the two processes take while files change and holes are filled: no more after four fifths than after one."""

import itertools
import statistics
from pathlib import Path

import psutil

from engine.schedule.caches import CACHE_BYTES
from hardening.language_server import LanguageServer
from hardening.running_engine import engine_of
from hardening.work import Row, Work

FILLS = 50_000
SETTINGS = {"model": "embedded", "threads": 1, "idleMinutes": 5, "maxTokens": 8}
_WEIGHED = (0.2, 0.8)
_KEYS_A_FILE = 40
_KEYS_A_PLACE = 8
"""A fill at another place reads some 320 tokens first, which takes ten times as long as the fill itself."""
_LINES_APART = 53
_MOST_SERVER, _MOST_ENGINE = 110e6, 300e6 + CACHE_BYTES
"""Bytes. An engine keeps contexts besides what it takes after its first fill."""
_MOST_GROWTH = 1.05
_LEAST_LINES = 60
_WARM_FILLS = 5_000
"""Before so many fills growth is what each process loads and keeps, within the bounds."""


def soak(work: Work) -> list[Row]:
    """Type words into one file after the other, and weigh both processes at a fifth and at four fifths of the fills."""
    fills = work.of_hour(FILLS)
    server = LanguageServer(work.folder, SETTINGS)
    try:
        resident, done = _type(work, server, fills)
    finally:
        server.close()
        if (engine := engine_of(work.folder)) is not None:
            engine.terminate()
    lost, seen = list[str](), list[str]()
    for name, bound, first, last in zip(("server", "engine"), (_MOST_SERVER, _MOST_ENGINE), *resident, strict=True):
        seen.append(f"{name} {first / 1e6:.0f} to {last / 1e6:.0f} MB")
        if last > bound:
            lost.append(f"the {name} takes {last / 1e6:.0f} MB, more than {bound / 1e6:.0f}")
        if last > first * _MOST_GROWTH and done * _WEIGHED[0] >= _WARM_FILLS:
            lost.append(f"the {name} grew by {last / first - 1:.1%}")
    if done * _WEIGHED[0] < _WARM_FILLS:
        seen.append("too few fills to judge growth")
    return [Row("fills of changing files; resident after a fifth and after four fifths", done, lost, ", ".join(seen))]


def _type(work: Work, server: LanguageServer, fills: int) -> tuple[list[tuple[int, int]], int]:
    """Return the bytes of both processes, weighed twice, and the number of fills that were done."""
    marks, resident, done = list(_WEIGHED), list[tuple[int, int]](), 0
    for path, text in itertools.cycle(_texts()):
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "python", "version": 0, "text": text}
        server.notify("textDocument/didOpen", {"textDocument": document})
        lines = text.count("\n")
        for key in range(_KEYS_A_FILE):
            place, column = divmod(done, _KEYS_A_PLACE)
            _press(server, uri, key + 1, (place * _LINES_APART) % lines, column)
            done += 1
        server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        # On a slow machine the time is what ends it.
        progress = max(done / fills, 1 - work.left / work.seconds)
        if marks and progress >= marks[0]:
            marks.pop(0)
            resident.append(_weigh(work.folder, server))
            work.say(f"{done:,} fills, server and engine {[round(each / 1e6) for each in resident[-1]]} MB")
        if progress >= 1:
            break
    return resident, done


def _press(server: LanguageServer, uri: str, version: int, line: int, column: int) -> None:
    """Type a letter, and ask for a fill after it."""
    here = {"line": line, "character": column}
    change = {"range": {"start": here, "end": here}, "text": "abcdefgh"[version % 8]}
    identifier = {"uri": uri, "version": version}
    server.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})
    after = {"line": line, "character": column + 1}
    server.ask("midspan/fill", {"textDocument": {"uri": uri}, "position": after})


def _weigh(runtime: Path, server: LanguageServer) -> tuple[int, int]:
    engine = engine_of(runtime)
    return psutil.Process(server.process.pid).memory_info().rss, engine.memory_info().rss if engine is not None else 0


def _texts() -> list[tuple[Path, str]]:
    """Return modules of the standard library, which every machine has."""
    paths = sorted(Path(statistics.__file__).parent.glob("*.py"))
    texts = [(path, path.read_text("utf-8")) for path in paths]
    return [(path, text) for path, text in texts if text.count("\n") > _LEAST_LINES]
