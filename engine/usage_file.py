"""What became of suggestions, counted by day and language in a file on the user's own disk: numbers, never code.

Each line of the file is a JSON object with a day, a language and what is to be added to their counts, so that several
language servers can append to it at once and a damaged line costs only itself. A file that has grown is folded: one
line for each day and language, and one for all that is long ago.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from engine.errors import MidspanError
from engine.file_lock import try_lock
from engine.folders import data_folder

EARLIER = "earlier"
OTHER = "other"
FOLD_BYTES = 256 * 1024
MOST_ROWS = 1500
_DAYS_KEPT = 92
# Ours never gets there; who knows what else has been put in its place.
_MOST_BYTES = 8 * FOLD_BYTES
_LOCK_PATIENCE_S = 2.0
_LOCK_GAP_S = 0.01
_LANGUAGE = re.compile(r"[a-z0-9+#._-]{1,32}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d|earlier")
_MOST = 2**53


@attrs.frozen
class Tally:
    """How many suggestions were shown, accepted whole, accepted in part, dismissed; `characters` were accepted."""

    shown: int = 0
    accepted: int = 0
    partial: int = 0
    dismissed: int = 0
    characters: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        mine, theirs = attrs.astuple(self), attrs.astuple(other)
        return Tally(*(one + two for one, two in zip(mine, theirs, strict=True)))


@attrs.frozen
class Row:
    """Whose tally it is: `day` is as in 2026-11-21, or "earlier"; an odd language is "other"."""

    day: str
    language: str


Tallies = dict[Row, Tally]


def row_of_today(language: str) -> Row:
    """Return the row for what happens now, by the user's clock, in a language of this id."""
    return Row(time.strftime("%Y-%m-%d"), language if _LANGUAGE.fullmatch(language) else OTHER)


def by_language(tallies: Mapping[Row, Tally]) -> dict[str, Tally]:
    """Return the sums of each language."""
    sums: dict[str, Tally] = {}
    for row, tally in tallies.items():
        sums[row.language] = sums.get(row.language, Tally()) + tally
    return sums


def by_day(tallies: Mapping[Row, Tally]) -> dict[str, Tally]:
    """Return the sums of each day."""
    sums: dict[str, Tally] = {}
    for row, tally in tallies.items():
        sums[row.day] = sums.get(row.day, Tally()) + tally
    return sums


def statistics_path() -> Path:
    """Return where the file is: in $MIDSPAN_DATA_DIR, else in the system's own place for a user's data."""
    return data_folder() / "statistics.jsonl"


class StatisticsFile:
    """The file at `path`. Every method raises MidspanError, in one line, when the disk does not let it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Tallies:
        """Return what was counted; nothing where there is no file. Damaged lines are passed over."""
        with self._told():
            return self._read()

    def append(self, tallies: Mapping[Row, Tally]) -> None:
        """Add `tallies` to the file: all of them, or none when this raises."""
        with self._told(), self._locked():
            if self.path.exists() and self.path.stat().st_size > FOLD_BYTES:
                self._replace(_folded(self._read()))
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            try:
                size = os.lseek(descriptor, 0, os.SEEK_END)
                # A line that was cut off by a crash must not take the next one with it.
                newline = b"" if size == 0 or _last_byte(descriptor, size) == b"\n" else b"\n"
                _write_whole(descriptor, newline + _lines(tallies), size)
            finally:
                os.close(descriptor)

    def reset(self) -> None:
        """Forget everything that was counted."""
        with self._told(), self._locked():
            self.path.unlink(missing_ok=True)

    def _read(self) -> Tallies:
        try:
            with self.path.open("rb") as file:
                data = file.read(_MOST_BYTES)
        except FileNotFoundError:
            return {}
        tallies: Tallies = {}
        for line in data.split(b"\n"):
            if (read := _read_line(line)) is not None:
                row, tally = read
                tallies[row] = tallies.get(row, Tally()) + tally
        return tallies

    def _replace(self, tallies: Tallies) -> None:
        fresh = self.path.with_suffix(".new")
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _write_whole(descriptor, _lines(tallies), 0)
        finally:
            os.close(descriptor)
        fresh.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # The lock is a file of its own, which stays: the counts are replaced when they are folded.
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + _LOCK_PATIENCE_S
            while not try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise MidspanError(f"{self.path} is locked by another process; close editors that hang")
                time.sleep(_LOCK_GAP_S)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MidspanError(
                f"cannot use the statistics in {self.path}: {error.strerror or type(error).__name__}; "
                "make room there, or set MIDSPAN_DATA_DIR to a folder that you can write"
            ) from None


def _lines(tallies: Mapping[Row, Tally]) -> bytes:
    objects = ({**attrs.asdict(row), **attrs.asdict(tally)} for row, tally in tallies.items())
    return "".join(json.dumps(line) + "\n" for line in objects).encode()


def _read_line(line: bytes) -> tuple[Row, Tally] | None:
    try:
        read = json.loads(line)
        day, language = read["day"], read["language"]
        counts = [read.get(field.name, 0) for field in attrs.fields(Tally)]
        if not (_DAY.fullmatch(day) and _LANGUAGE.fullmatch(language)):
            return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    # type() and not isinstance(): true is an int to Python alone.
    if not all(type(count) is int and 0 <= count < _MOST for count in counts):
        return None
    return Row(day, language), Tally(*counts)


def _folded(tallies: Tallies) -> Tallies:
    """Make `tallies` few: what is long ago becomes "earlier"; then, if need be, every day, then every language."""
    oldest = time.strftime("%Y-%m-%d", time.localtime(time.time() - _DAYS_KEPT * 24 * 3600))
    for days, languages in ((oldest, True), ("9999", True), ("9999", False)):
        folded: Tallies = {}
        for row, tally in tallies.items():
            kept = Row(row.day if days <= row.day < EARLIER else EARLIER, row.language if languages else OTHER)
            folded[kept] = folded.get(kept, Tally()) + tally
        if len(folded) <= MOST_ROWS:
            break
    return folded


def _last_byte(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _write_whole(descriptor: int, data: bytes, at: int) -> None:
    """Write `data` at `at`, or leave the file as it was: half of it would be counted twice with the next attempt."""
    os.lseek(descriptor, at, os.SEEK_SET)
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(0, "only a part was written")
    except OSError:
        os.ftruncate(descriptor, at)
        raise
