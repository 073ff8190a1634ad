"""Files for a machine that is reached through a narrow door only: in shards of a settable size, each with its checksum.

A folder of shards lists them in shards.sha256, as sha256sum does. A corpus travels compressed, about a fifth of its
text, each shard readable by itself; other files are cut in pieces.
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
from engine.corpus.corpus import File, Split
from engine.errors import MidspanError

LIST, TOKENIZER = "shards.sha256", "tokenizer.json"
MEGABYTE = 1_000_000
HELD_OUT_SHARE = 0.02
"""Of the bytes that a corpus may take, those for its held-out files: for losses and samples a few hundred do."""
_WINDOW = 1 << 26
"""How far back a repetition is found while compressing; all of a shard's text."""
_GROUP = 200_000
"""Characters of neighbouring files, which are alike, that are taken together."""
_WORST = 3
"""Characters a compressed byte, at the least."""


class ShardError(MidspanError):
    """A shard that is missing or damaged."""

    code = "shards"


def pack(
    source: Path, tokenizer: Path, target: Path, shares: Mapping[str, float], megabytes: float, shard: float, loads: int
) -> list[str]:
    """Pack a corpus folder's files and its tokenizer into folders target/load-0, ..., each of `megabytes` at the most
    in shards of `shard` megabytes; return a line for each load.

    Files are drawn such that every shard has the languages' shares; a language that runs out leaves its room to the
    others. No file is in two loads; the held-out files are in the first. A corpus that is small fills fewer loads.
    """
    files, held_out = corpus.load(source, "train"), corpus.load(source, "held-out")
    room, told = int(shard * MEGABYTE), []
    groups = _Drawn(_mixed(files, shares, min(_GROUP, room)))
    for number in range(loads):
        if groups.following is None:
            break
        folder, left, before = target / f"load-{number}", int(megabytes * MEGABYTE), groups.characters
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.iterdir():
            stale.unlink()
        if number == 0:
            (folder / TOKENIZER).write_bytes(tokenizer.read_bytes())
            limit = min(room, int(left * HELD_OUT_SHARE))
            left -= tokenizer.stat().st_size
            left -= _compress(_Drawn(_mixed(held_out, shares, min(_GROUP, limit))), folder / "held-out-000.xz", limit)
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
        told.append(
            f"{folder}: {size / MEGABYTE:.1f} MB in {count} shards, {characters:.0f} million characters of code"
        )
    return told


def unpack(folder: Path, work: Path) -> None:
    """Add a load's files to the corpus in `work`, which may hold other loads already; raises ShardError."""
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
    """Cut files into pieces NAME.000, NAME.001, ... of `megabytes` at the most, and list them; return the pieces."""
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
    """Put the files together that `split` cut; return them. Raises ShardError."""
    target.mkdir(parents=True, exist_ok=True)
    pieces: dict[str, list[bytes]] = {}
    for path in check(folder):
        pieces.setdefault(path.stem, []).append(path.read_bytes())
    for name, contents in pieces.items():
        (target / name).write_bytes(b"".join(contents))
    return [target / name for name in pieces]


def check(folder: Path) -> list[Path]:
    """Return the shards that a folder lists, in order; raises ShardError for the first that is missing or damaged."""
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
            raise ShardError(f"{path} is damaged: its checksum is not the one in {LIST}; bring it anew")
        paths.append(path)
    return paths


def _list(folder: Path) -> None:
    paths = sorted(path for path in folder.iterdir() if path.name != LIST)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths]
    (folder / LIST).write_text("".join(lines))


def _mixed(files: list[File], shares: Mapping[str, float], size: int) -> Iterator[list[File]]:
    """Yield all files in groups of neighbours, each time of the language that lags furthest behind its share."""
    rng, groups = random.Random(0), {name: _groups(files, name, size) for name, share in shares.items() if share}
    for waiting in groups.values():
        rng.shuffle(waiting)
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


class _Drawn:
    """Groups of files one after the other: the `following` one can be looked at before it is taken."""

    def __init__(self, groups: Iterator[list[File]]) -> None:
        self._groups, self.characters = groups, 0
        self.following = next(groups, None)

    @property
    def size(self) -> int:
        return sum(len(file.text) for file in self.following or [])

    def take(self) -> bytes:
        self.characters += self.size
        rows = b"".join(msgpack.packb(attrs.astuple(file)) for file in self.following or [])
        self.following = next(self._groups, None)
        return rows


def _compress(groups: _Drawn, path: Path, limit: int) -> int:
    """Write groups to a shard of `limit` bytes at the most, one group at the least; return its size, 0 for none."""
    if groups.following is None:
        return 0
    press = lzma.LZMACompressor(filters=[{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": _WINDOW}])
    written, pending = b"", 0
    while groups.following is not None and (
        not pending + len(written) or (len(written) + (pending + groups.size) // _WORST < limit)
    ):
        rows = groups.take()
        out = press.compress(rows)
        pending = len(rows) + (0 if out else pending)
        written += out
    written += press.flush()
    path.write_bytes(written)
    return len(written)


def _decompress(path: Path) -> Iterator[File]:
    with lzma.open(path) as stream:
        for row in msgpack.Unpacker(stream):
            yield File(*row)
