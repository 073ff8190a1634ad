"""Counts of shown, accepted and dismissed suggestions by day and language, in a file on the user's disk. No code.

Each line of the file is a JSON object with a day, a language and the counts to add. So several language servers can
append to it at once, and a damaged line spoils no other line. A large file is folded to one line for each day and
language; the days before the last 92 become one line for each language.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import attrs

from engine.errors import MidspanError
from engine.folders import data_folder
from engine.protocol.messages import SourceName
from engine.whole_files import make_folder, try_lock

EARLIER = "earlier"
OTHER = "other"
FOLD_BYTES = 256 * 1024
MAX_ROWS = 1500
_DAYS_KEPT = 92
# Our own file never gets this large. The limit is for another file that was put in its place.
_MAX_READ_BYTES = 8 * FOLD_BYTES
_LOCK_TIMEOUT_S = 2.0
_LOCK_RETRY_S = 0.01
_LANGUAGE = re.compile(r"[a-z0-9+#._-]{1,32}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d|earlier")
_MAX_COUNT = 2**53


@attrs.frozen
class Tally:
    """Numbers of suggestions that were shown, accepted, accepted in part and dismissed, and of accepted characters.

    Those whose text came mostly from the edited file, or from other files of the workspace, are counted again in fields
    of their own. The others came from the model.
    """

    shown: int = 0
    accepted: int = 0
    partial: int = 0
    dismissed: int = 0
    characters: int = 0
    shown_file: int = 0
    shown_workspace: int = 0
    accepted_file: int = 0
    accepted_workspace: int = 0

    @classmethod
    def of_shown(cls, source: SourceName) -> "Tally":
        """Return the count of one suggestion that is shown."""
        return cls(shown=1, shown_file=int(source == "file"), shown_workspace=int(source == "workspace"))

    @classmethod
    def of_accepted(cls, source: SourceName) -> "Tally":
        """Return the count of one suggestion that is taken whole."""
        return cls(accepted=1, accepted_file=int(source == "file"), accepted_workspace=int(source == "workspace"))

    def of_source(self, source: SourceName) -> "Tally":
        """Return what was shown and accepted of one source."""
        match source:
            case "file":
                return Tally(self.shown_file, self.accepted_file)
            case "workspace":
                return Tally(self.shown_workspace, self.accepted_workspace)
            case "model":
                shown = self.shown - self.shown_file - self.shown_workspace
                return Tally(shown, self.accepted - self.accepted_file - self.accepted_workspace)

    def __add__(self, other: "Tally") -> "Tally":
        counts = zip(attrs.astuple(self), attrs.astuple(other), strict=True)
        return Tally(*(mine + theirs for mine, theirs in counts))


@attrs.frozen
class Row:
    """What a tally belongs to. `day` is a date such as 2026-11-21 or "earlier"; `language` is an id or "other"."""

    day: str
    language: str


Tallies = dict[Row, Tally]


def row_of_today(language: str) -> Row:
    """Return the row of today, by the user's clock, and of this language. An invalid language id becomes "other"."""
    return Row(time.strftime("%Y-%m-%d"), language if _LANGUAGE.fullmatch(language) else OTHER)


Key = TypeVar("Key")


def summed(tallies: Iterable[tuple[Key, Tally]]) -> dict[Key, Tally]:
    """Return the sum of each key's tallies."""
    sums: dict[Key, Tally] = {}
    for key, tally in tallies:
        sums[key] = sums.get(key, Tally()) + tally
    return sums


def by_language(tallies: Mapping[Row, Tally]) -> dict[str, Tally]:
    """Return the sum of each language."""
    return summed((row.language, tally) for row, tally in tallies.items())


def by_day(tallies: Mapping[Row, Tally]) -> dict[str, Tally]:
    """Return the sum of each day."""
    return summed((row.day, tally) for row, tally in tallies.items())


def statistics_path() -> Path:
    """Return the path of the file, in the data folder."""
    return data_folder() / "statistics.jsonl"


class StatisticsFile:
    """The file at `path`. Every method raises MidspanError in one line when the disk refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Tallies:
        """Return all counts; none when there is no file. Damaged lines are skipped."""
        with self._disk_errors_explained():
            return self._read()

    def append(self, tallies: Mapping[Row, Tally]) -> None:
        """Add `tallies` to the file. When this raises, none of them was added."""
        with self._disk_errors_explained(), self._locked():
            if self.path.exists() and self.path.stat().st_size > FOLD_BYTES:
                self._replace(_folded(self._read()))
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            try:
                size = os.lseek(descriptor, 0, os.SEEK_END)
                # If a crash cut the last line off, the next one must not be joined to it.
                newline = b"" if size == 0 or _last_byte(descriptor, size) == b"\n" else b"\n"
                _write_all_or_nothing(descriptor, newline + _lines(tallies), size)
            finally:
                os.close(descriptor)

    def reset(self) -> None:
        """Delete all counts."""
        with self._disk_errors_explained(), self._locked():
            self.path.unlink(missing_ok=True)

    def _read(self) -> Tallies:
        try:
            with self.path.open("rb") as file:
                data = file.read(_MAX_READ_BYTES)
        except FileNotFoundError:
            return {}
        return summed(parsed for line in data.split(b"\n") if (parsed := _parse_line(line)) is not None)

    def _replace(self, tallies: Tallies) -> None:
        new = self.path.with_suffix(".new")
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _write_all_or_nothing(descriptor, _lines(tallies), 0)
        finally:
            os.close(descriptor)
        new.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # The lock is a separate file, because folding replaces the file of counts.
        make_folder(self.path.parent)
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + _LOCK_TIMEOUT_S
            while not try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise MidspanError(f"{self.path} is locked by another process; close editors that hang")
                time.sleep(_LOCK_RETRY_S)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _disk_errors_explained(self) -> Iterator[None]:
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


def _parse_line(line: bytes) -> tuple[Row, Tally] | None:
    try:
        fields = json.loads(line)
        day, language = fields["day"], fields["language"]
        counts = [fields.get(field.name, 0) for field in attrs.fields(Tally)]
        if not (_DAY.fullmatch(day) and _LANGUAGE.fullmatch(language)):
            return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    # type() instead of isinstance(): for Python, JSON's true is an int as well.
    if not all(type(count) is int and 0 <= count < _MAX_COUNT for count in counts):
        return None
    return Row(day, language), Tally(*counts)


def _folded(tallies: Tallies) -> Tallies:
    """Return fewer rows: old days become "earlier". If needed, all days do, and then all languages become "other"."""
    oldest = time.strftime("%Y-%m-%d", time.localtime(time.time() - _DAYS_KEPT * 24 * 3600))
    for first_day, keeps_language in ((oldest, True), ("9999", True), ("9999", False)):
        folded = summed(
            (
                Row(
                    row.day if first_day <= row.day < EARLIER else EARLIER,
                    row.language if keeps_language else OTHER,
                ),
                tally,
            )
            for row, tally in tallies.items()
        )
        if len(folded) <= MAX_ROWS:
            break
    return folded


def _last_byte(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _write_all_or_nothing(descriptor: int, data: bytes, offset: int) -> None:
    """Write `data` at the end of the file, which is at `offset`. If that fails, cut the file off there again.

    Otherwise the next attempt would count the written part twice.
    """
    os.lseek(descriptor, offset, os.SEEK_SET)
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(0, "only a part was written")
    except OSError:
        os.ftruncate(descriptor, offset)
        raise
