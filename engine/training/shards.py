"""Shards: files cut to a given size, each with a checksum, for a machine that only takes small files.

A folder of shards lists them in shards.sha256, in the format of sha256sum. A corpus is compressed to about a fifth of
its text, and each shard can be read by itself. Other files are cut into pieces.
"""

import hashlib
import lzma
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import msgpack

from engine.corpus import corpus
from engine.corpus.fetch import Split
from engine.corpus.languages import File
from engine.errors import MidspanError

LIST, TOKENIZER = "shards.sha256", "tokenizer.json"
MEGABYTE = 1_000_000
HELD_OUT_SHARE = 0.02
"""The share of a corpus's bytes for held-out files: a few hundred files are enough for losses and samples."""
_WINDOW = 1 << 26
"""How far back the compressor finds a repetition, in bytes: a whole shard's text."""
_GROUP = 200_000
"""Characters of neighbouring files that are packed together, because they are similar."""
_WORST = 3
"""Characters that a compressed byte holds at the least."""


class ShardError(MidspanError):
    """A shard that is missing or damaged."""

    code = "shards"


def pack(
    source: Path, tokenizer: Path, target: Path, shares: Mapping[str, float], megabytes: float, shard: float, loads: int
) -> list[str]:
    """Pack a corpus and its tokenizer into folders target/load-0, target/load-1, ...; return a line for each load.

    A load has at most `megabytes`, in shards of at most `shard` megabytes. Files are drawn such that every shard has
    the languages' shares; if a language runs out, the others get its room. No file is in two loads. The held-out files
    are in the first load. A small corpus fills fewer loads.
    """
    files, held_out = corpus.load(source, "train"), corpus.load(source, "held-out")
    room, report = int(shard * MEGABYTE), []
    groups = _GroupQueue(_mixed(files, shares, min(_GROUP, room)))
    for number in range(loads):
        if groups.next_group is None:
            break
        folder, left, before = target / f"load-{number}", int(megabytes * MEGABYTE), groups.characters
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.iterdir():
            stale.unlink()
        if number == 0:
            (folder / TOKENIZER).write_bytes(tokenizer.read_bytes())
            limit = min(room, int(left * HELD_OUT_SHARE))
            left -= tokenizer.stat().st_size
            left -= _compress(
                _GroupQueue(_mixed(held_out, shares, min(_GROUP, limit))), folder / "held-out-000.xz", limit
            )
        count = 0
        while left > room // 2 or not count:
            limit = min(room, left)
            written = _compress(groups, folder / f"train-{count:03}.xz", limit)
            if not written:
                break
            left, count = left - written, count + 1
        _list(folder)
        size = sum(path.stat().st_size for path in folder.iterdir())
        characters = (groups.characters - before) / 1e6
        report.append(
            f"{folder}: {size / MEGABYTE:.1f} MB in {count} shards, {characters:.0f} million characters of code"
        )
    return report


def unpack(folder: Path, work: Path) -> None:
    """Add a load's files to the corpus in `work`, which may already hold other loads. Raises ShardError."""
    paths = check(folder)
    target, listed = work / "corpus", (folder / LIST).read_text()
    target.mkdir(parents=True, exist_ok=True)
    done = target / "unpacked.sha256"
    known = done.read_text() if done.exists() else ""
    if listed in known:
        return
    splits: tuple[Split, ...] = ("train", "held-out")
    for split in splits:
        files = [file for path in paths if path.name.startswith(split) for file in _decompress(path)]
        if not files:
            continue
        before = corpus.load(target, split) if known and (target / f"{split}.msgpack").exists() else []
        rows = [attrs.astuple(file) for file in before + files]
        (target / f"{split}.msgpack").write_bytes(msgpack.packb(rows))
    if (folder / TOKENIZER).exists():
        (work / TOKENIZER).write_bytes((folder / TOKENIZER).read_bytes())
    done.write_text(known + listed)


def split(files: Sequence[Path], folder: Path, megabytes: float) -> list[Path]:
    """Cut files into pieces NAME.000, NAME.001, ... of at most `megabytes`, and list them; return the pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = []
    for file in files:
        content, size = file.read_bytes(), int(megabytes * MEGABYTE)
        for number, start in enumerate(range(0, max(1, len(content)), size)):
            piece = folder / f"{file.name}.{number:03}"
            piece.write_bytes(content[start : start + size])
            pieces.append(piece)
    _list(folder)
    return pieces


def join(folder: Path, target: Path) -> list[Path]:
    """Put the files together that `split` cut, and return them. Raises ShardError."""
    target.mkdir(parents=True, exist_ok=True)
    pieces: dict[str, list[bytes]] = {}
    for path in check(folder):
        pieces.setdefault(path.stem, []).append(path.read_bytes())
    for name, contents in pieces.items():
        (target / name).write_bytes(b"".join(contents))
    return [target / name for name in pieces]


def check(folder: Path) -> list[Path]:
    """Return the shards that a folder lists, in order. Raises ShardError for the first missing or damaged one."""
    try:
        lines = (folder / LIST).read_text().splitlines()
    except OSError:
        raise ShardError(f"{folder} has no {LIST}; bring the whole folder") from None
    paths = []
    for line in lines:
        digest, _, name = line.partition("  ")
        path = folder / name
        if not path.is_file():
            raise ShardError(f"{folder} lacks the shard {name}; bring it too")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise ShardError(f"{path} is damaged: its checksum is not the one in {LIST}; bring it again")
        paths.append(path)
    return paths


def _list(folder: Path) -> None:
    paths = sorted(path for path in folder.iterdir() if path.name != LIST)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths]
    (folder / LIST).write_text("".join(lines))


def _mixed(files: list[File], shares: Mapping[str, float], size: int) -> Iterator[list[File]]:
    """Yield all files in groups of neighbours, each time from the language that is furthest below its share."""
    rng, groups = random.Random(0), {name: _groups(files, name, size) for name, share in shares.items() if share}
    for pending in groups.values():
        rng.shuffle(pending)
    given: Counter[str] = Counter()
    while left := [language for language in groups if groups[language]]:
        language = min(left, key=lambda name: given[name] / shares[name])
        group = groups[language].pop()
        given[language] += sum(len(file.text) for file in group)
        yield group


def _groups(files: list[File], language: str, size: int) -> list[list[File]]:
    groups: list[list[File]] = []
    room = 0
    for file in files:
        if file.language == language:
            if room < len(file.text):
                groups.append([])
                room = size
            groups[-1].append(file)
            room -= len(file.text)
    return groups


class _GroupQueue:
    """Groups of files one after the other; `next_group` can be examined before it is taken."""

    def __init__(self, groups: Iterator[list[File]]) -> None:
        self._groups, self.characters = groups, 0
        self.next_group = next(groups, None)

    @property
    def size(self) -> int:
        """Characters in the next group."""
        return sum(len(file.text) for file in self.next_group or [])

    def take(self) -> bytes:
        """Return the next group as msgpack rows and move on."""
        self.characters += self.size
        rows = b"".join(msgpack.packb(attrs.astuple(file)) for file in self.next_group or [])
        self.next_group = next(self._groups, None)
        return rows


def _compress(groups: _GroupQueue, path: Path, limit: int) -> int:
    """Write at least one group to a shard of at most `limit` bytes; return its size, 0 if no group is left."""
    if groups.next_group is None:
        return 0
    compressor = lzma.LZMACompressor(filters=[{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": _WINDOW}])
    written, pending = b"", 0
    while groups.next_group is not None and (
        not pending + len(written) or (len(written) + (pending + groups.size) // _WORST < limit)
    ):
        rows = groups.take()
        block = compressor.compress(rows)
        pending = len(rows) + (0 if block else pending)
        written += block
    written += compressor.flush()
    path.write_bytes(written)
    return len(written)


def _decompress(path: Path) -> Iterator[File]:
    with lzma.open(path) as stream:
        for row in msgpack.Unpacker(stream):
            yield File(*row)
