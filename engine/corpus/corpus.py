"""The corpus: pinned, permissively licensed packages, fetched by name, cleaned, and split by what they are for.

The manifest is a TOML file with one list for each registry and split; an entry reads "name version licence". No part of
the corpus is ever committed: training fetches it.
"""

import gzip
import hashlib
import json
import math
import subprocess
import tarfile
import tempfile
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import msgpack
import numpy as np
from numpy.typing import NDArray

from engine.corpus.fetch import REGISTRIES, SPLITS, CorpusError, Package, Split, fetch
from engine.corpus.languages import LANGUAGES, MARKUP, File, clean, is_copyleft, is_older_code, worth_reading

__all__ = ["SPLITS", "CorpusError", "File", "Package", "Split", "build", "clean", "load", "read_manifest"]

Shingles = NDArray[np.uint64]

SIMILAR = 0.7  # files with at least this Jaccard similarity of their shingles are near-duplicates
_LINES = 3  # lines in a shingle; one changed line changes three shingles, so 0.7 means about 9 of 10 lines are equal
_BANDS, _ROWS = 16, 4  # a pair at 0.7 becomes a candidate in 99 of 100 cases, a pair at 0.3 in 12
_random = np.random.default_rng(0)
_FACTORS = _random.integers(1, 2**63, _BANDS * _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_TERMS = _random.integers(0, 2**63, _BANDS * _ROWS, dtype=np.uint64)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def shingles_of(text: str) -> Shingles:
    """Return the sorted, distinct hashes of all runs of three lines, shape [n] with n >= 1.

    Empty lines and white space at the ends of lines are ignored.
    """
    lines = [zlib.crc32(line) for line in map(bytes.strip, text.encode().split(b"\n")) if line]
    hashes = np.array(lines or [0], dtype=np.uint64)
    rolled = hashes[: max(1, len(hashes) - _LINES + 1)].copy()
    for step in range(1, min(_LINES, len(hashes))):
        rolled = rolled * _MIX + hashes[step : step + len(rolled)]
    rolled ^= rolled >> np.uint64(29)
    return np.unique(rolled * _MIX)


def jaccard(first: Shingles, second: Shingles) -> float:
    """Return the size of the intersection divided by the size of the union."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / (len(first) + len(second) - both)


def _bands(shingles: Shingles) -> list[bytes]:
    """Return the MinHash signature of a file, cut into bands; equal bands make two files candidates."""
    signature = np.full(_BANDS * _ROWS, np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(shingles), 1024):
        hashes = shingles[start : start + 1024, None] * _FACTORS + _TERMS
        signature = np.minimum(signature, (hashes >> np.uint64(16)).min(axis=0))
    return [bytes([band]) + row.tobytes() for band, row in enumerate(signature.reshape(_BANDS, _ROWS))]


@attrs.define
class NearDuplicates:
    """Finds files that share most of their lines with a file kept before, and keeps the others.

    MinHash signatures over shingles of lines, banded as in locality-sensitive hashing (Broder, "On the resemblance and
    containment of documents", 1997). A candidate counts only if the true Jaccard similarity of the shingles is high.
    """

    _kept: list[Shingles] = attrs.field(init=False, factory=list)
    _buckets: dict[bytes, list[int]] = attrs.field(init=False, factory=dict)

    def add(self, text: str) -> int | None:
        """Keep the text and return None, or return the index of the kept text that it nearly duplicates."""
        shingles = shingles_of(text)
        bands = _bands(shingles)
        for index in dict.fromkeys(index for band in bands for index in self._buckets.get(band, ())):
            other = self._kept[index]
            similar_size = min(len(shingles), len(other)) >= SIMILAR * max(len(shingles), len(other))
            if similar_size and jaccard(shingles, other) >= SIMILAR:
                return index
        for band in bands:
            self._buckets.setdefault(band, []).append(len(self._kept))
        self._kept.append(shingles)
        return None


FEWEST_FILES = 5
"""A smaller package is no workspace."""


def packages(files: Sequence[File]) -> Iterator[list[File]]:
    """Yield the files of each package with at least FEWEST_FILES.

    A corpus keeps the files of a package together, in the order of their paths' hashes.
    """
    part: list[File] = []
    last = ("", b"")
    for file in files:
        key = (file.path.split("/")[0], hashlib.sha1(file.path.encode()).digest())
        if key[0] != last[0] or key[1] < last[1]:
            if len(part) >= FEWEST_FILES:
                yield part
            part = []
        part.append(file)
        last = key
    if len(part) >= FEWEST_FILES:
        yield part


_ROOM: dict[Split, int] = {"train": 4_000_000, "judge": 600_000}
"""Characters that one package may give to one language, so that none dominates it; markup may have a tenth of that."""
_VENDORED = 3  # a package with this many files of a held-out or judge package carries a copy of it


def read_manifest(path: Path) -> list[Package]:
    """Return the packages of a manifest: [held-out], [judge], which may be missing, and [train]; or [judge] alone.

    Raises CorpusError if it cannot be read.
    """
    try:
        fields = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} is no manifest: {str(error).splitlines()[0]}") from None
    packages = []
    for split in SPLITS:
        registries = fields.get(split, {} if split == "judge" or fields.keys() == {"judge"} else None)
        if not isinstance(registries, dict):
            raise CorpusError(f"{path} has no [{split}]; add one list of packages for each registry")
        for registry, lines in registries.items():
            if registry not in REGISTRIES:
                raise CorpusError(f"{path} names the registry {registry!r}; known are {', '.join(REGISTRIES)}")
            if not isinstance(lines, list):
                raise CorpusError(f"{path} has no list of packages at {split}.{registry}; make it one")
            packages += [_entry(path, registry, str(line), split) for line in lines]
    return packages


def _entry(path: Path, registry: str, line: str, split: Split) -> Package:
    words = line.split(maxsplit=2)
    if len(words) != 3:
        raise CorpusError(f'{path} has the entry {line!r}; write "name version licence"')
    name, version, licence = words
    return Package(registry, name, version, licence, split)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the files worth reading, in the archive's order."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if worth_reading(info.filename, info.file_size):
                    yield info.filename, opened.read(info)
    elif archive.suffix == ".deb":
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg", "-x", str(archive), folder], check=True, capture_output=True)
            for path in sorted(Path(folder).rglob("*")):
                name = str(path.relative_to(folder))
                if path.is_file() and not path.is_symlink() and worth_reading(name, path.stat().st_size):
                    yield name, path.read_bytes()
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and worth_reading(member.name, member.size):
                    content = tar.extractfile(member)
                    if content is not None:
                        yield member.name, content.read()


def distinctive_lines(evaluation: list[Path]) -> set[str]:
    """Return all lines of 30 characters and more in evaluation sets (gzipped JSON lines)."""
    lines: set[str] = set()
    for path in evaluation:
        with gzip.open(path, "rt") as rows:
            for row in rows:
                for value in json.loads(row).values():
                    if isinstance(value, str):
                        lines.update(line.strip() for line in value.split("\n") if len(line.strip()) >= 30)
    return lines


@attrs.define
class Sieve:
    """Keeps new files only: none that equals or nearly equals a kept one, and none from an evaluation set."""

    _forbidden: set[str]
    _owners: dict[bytes, Split] = attrs.field(init=False, factory=dict)
    _index: NearDuplicates = attrs.field(init=False, factory=NearDuplicates)
    _splits: list[Split] = attrs.field(init=False, factory=list)

    def sift(self, package: Package, files: list[File]) -> list[File]:
        """Return the package's new files, or none if it would train on a copy of a held-out or judge package."""
        most = _ROOM.get(package.split, math.inf)
        room = {language: most / 10 if language in MARKUP else most for language in LANGUAGES.values()}
        kept, copied = [], 0
        for file in files:
            if len(file.text) > room[file.language] or _is_unfit(file, package.split):
                continue
            digest = hashlib.sha1("".join(file.text.split()).lower().encode()).digest()
            owner = self._owners.get(digest)
            if owner is None and self._is_evaluation(file):
                continue
            if owner is None and (twin := self._index.add(file.text)) is not None:
                owner = self._splits[twin]
            self._owners.setdefault(digest, owner or package.split)
            if owner is None:
                self._splits.append(package.split)
                kept.append(file)
                room[file.language] -= len(file.text)
            elif owner != "train" and file.language not in MARKUP:
                copied += 1
        if package.split == "train" and copied >= _VENDORED:
            print(f"corpus: {package.name} carries {copied} files of held-out or judge packages; left out")
            return []
        return kept

    def _is_evaluation(self, file: File) -> bool:
        return bool(self._forbidden) and sum(line.strip() in self._forbidden for line in file.text.split("\n")) >= 3


def _is_unfit(file: File, split: Split) -> bool:
    return (split == "train" and is_copyleft(file)) or (split == "judge" and is_older_code(file))


def files_of(archive: Path, package: Package) -> list[File]:
    """Return an archive's cleaned files in a fixed random order: of a large package only a part is kept.

    Every npm archive's folder is "package". In the judge it gets the package's name, so that equal paths of two
    packages do not become one workspace; the other splits keep their paths, and with them their earlier figures.
    """
    files = [file for path, raw in _members(archive) if (file := clean(path, raw)) is not None]
    if package.split == "judge" and package.registry == "npm":
        root = package.name.replace("/", "+")
        files = [attrs.evolve(file, path=root + file.path.removeprefix("package")) for file in files]
    return sorted(files, key=lambda file: hashlib.sha1(file.path.encode()).digest())


def build(
    manifest: Path, downloads: Path, target: Path, evaluation: list[Path], splits: Sequence[Split] = SPLITS
) -> None:
    """Fetch, clean, deduplicate and decontaminate; write SPLIT.msgpack into `target` for each of `splits`.

    With "train" all are built, because it must have no file of the others.
    """
    wanted = SPLITS if "train" in splits else splits
    target.mkdir(parents=True, exist_ok=True)
    sieve = Sieve(distinctive_lines(evaluation))
    pairs = fetch([package for package in read_manifest(manifest) if package.split in wanted], downloads)
    kept: dict[Split, list[File]] = {split: [] for split in SPLITS if split in wanted}
    for package, archive in pairs:  # in the order of SPLITS, so that an earlier split owns its files
        try:
            kept[package.split] += sieve.sift(package, files_of(archive, package))
        except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, subprocess.CalledProcessError) as error:
            reason = str(error).split("\n")[0]
            print(f"corpus: {archive} cannot be read; left out; delete it to fetch it again: {reason}")
    for split, files in kept.items():
        (target / f"{split}.msgpack").write_bytes(msgpack.packb([attrs.astuple(file) for file in files]))
        for line in report(split, files):
            print(line)


def report(split: Split, files: list[File]) -> list[str]:
    """Return one line for each language, the largest first: files and megabytes of text."""
    counts = Counter(file.language for file in files)
    sizes: Counter[str] = Counter()
    for file in files:
        sizes[file.language] += len(file.text)
    return [f"corpus: {split}: {name} {counts[name]} files, {size / 1e6:.1f} MB" for name, size in sizes.most_common()]


def load(target: Path, split: Split) -> list[File]:
    """Return the files of a split that `build` wrote. Raises CorpusError if there are none."""
    path = target / f"{split}.msgpack"
    if not path.exists():
        command = "midspan train judge" if split == "judge" else "midspan train"
        raise CorpusError(f"no corpus at {path}; run `{command}` first")
    return [File(*row) for row in msgpack.unpackb(path.read_bytes())]
