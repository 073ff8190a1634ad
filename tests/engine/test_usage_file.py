"""The statistics file: several writers, damage, a full disk, and its size."""

import errno
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

import pytest

from engine.errors import MidspanError
from engine.usage_file import (
    EARLIER,
    FOLD_BYTES,
    OTHER,
    Row,
    StatisticsFile,
    Tally,
    by_day,
    by_language,
    row_of_today,
    statistics_path,
)

TODAY = time.strftime("%Y-%m-%d")
PYTHON = Row(TODAY, "python")


@pytest.fixture
def file(tmp_path: Path) -> StatisticsFile:
    return StatisticsFile(tmp_path / "data" / "statistics.jsonl")


def test_the_environment_says_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(tmp_path))

    assert statistics_path().parent == tmp_path


def test_without_a_file_there_are_no_counts(file: StatisticsFile) -> None:
    assert file.read() == {}


def test_appended_counts_add_up(file: StatisticsFile) -> None:
    file.append({PYTHON: Tally(shown=2, characters=7), Row(TODAY, "go"): Tally(shown=1)})
    file.append({PYTHON: Tally(shown=1, accepted=1), Row("2026-01-02", "python"): Tally(dismissed=1)})

    assert file.read()[PYTHON] == Tally(shown=3, accepted=1, characters=7)
    assert by_language(file.read())["python"] == Tally(shown=3, accepted=1, dismissed=1, characters=7)
    assert by_day(file.read())[TODAY] == Tally(shown=4, accepted=1, characters=7)


@pytest.mark.skipif(sys.platform == "win32", reason="file modes mean nothing there")
def test_no_other_user_can_read_the_file(file: StatisticsFile) -> None:
    file.append({PYTHON: Tally(shown=1)})

    assert file.path.stat().st_mode & 0o077 == 0
    assert file.path.parent.stat().st_mode & 0o077 == 0


def _count(path: Path, times: int) -> None:
    for _ in range(times):
        StatisticsFile(path).append({PYTHON: Tally(shown=1)})


def test_several_servers_lose_no_counts_while_one_of_them_folds_the_file(file: StatisticsFile) -> None:
    file.path.parent.mkdir()
    line = json.dumps({"day": TODAY, "language": "python", "shown": 1}) + "\n"
    before = FOLD_BYTES // len(line) - 20
    file.path.write_text(line * before)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_count, args=(file.path, 100)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert file.read() == {PYTHON: Tally(shown=before + 300)}
    assert file.path.stat().st_size < FOLD_BYTES / 2, "it was folded"


@pytest.mark.parametrize(
    "damage",
    [
        b"\xff\xfe\x00 no text at all",
        b"[]",
        b'"day"',
        b"{}",
        b'{"day": "2026-11-21", "language": "python", "shown": -1}',
        b'{"day": "2026-11-21", "language": "python", "shown": true}',
        b'{"day": "2026-11-21", "language": "python", "shown": 1e400}',
        b'{"day": "2026-11-21", "language": "def f(): pass", "shown": 1}',
        b'{"day": 5, "language": "python", "shown": 1}',
        b"[" * 100_000,
        b'{"day": "2026-11-21", "lang',
    ],
)
def test_a_damaged_line_spoils_no_other_line(file: StatisticsFile, damage: bytes) -> None:
    file.append({PYTHON: Tally(shown=1)})
    with file.path.open("ab") as end:
        end.write(damage)
    file.append({PYTHON: Tally(shown=1)})

    assert file.read() == {PYTHON: Tally(shown=2)}


def test_the_size_of_the_file_is_bounded(file: StatisticsFile) -> None:
    for day in range(1, 30):
        for part in range(4):
            languages = (f"language-{part}-{number}" for number in range(40))
            file.append({Row(f"2026-11-{day:02}", language): Tally(shown=1) for language in languages})

    assert file.path.stat().st_size < 2 * FOLD_BYTES
    assert sum(tally.shown for tally in file.read().values()) == 29 * 160


def test_old_days_become_one_line_for_each_language(file: StatisticsFile) -> None:
    old = {Row(f"20{year:02}-01-01", "python"): Tally(shown=1) for year in range(10, 20)}
    while not file.path.exists() or file.path.stat().st_size <= FOLD_BYTES:
        file.append(old)
    file.append({PYTHON: Tally(shown=1)})

    assert set(file.read()) == {Row(EARLIER, "python"), PYTHON}


def test_an_invalid_language_id_is_not_written() -> None:
    assert row_of_today("C++/CLI my secret").language == OTHER
    assert row_of_today("objective-c++").language == "objective-c++"


def test_a_full_disk_is_one_clear_line_and_leaves_the_file_unchanged(
    file: StatisticsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.append({PYTHON: Tally(shown=1)})
    before = file.path.read_bytes()
    write = os.write

    def fill_up(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", fill_up)
    with pytest.raises(MidspanError, match="No space left on device; make room there, or set MIDSPAN_DATA_DIR"):
        file.append({PYTHON: Tally(shown=1)})

    assert file.path.read_bytes() == before


def test_a_folder_that_cannot_be_created_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(MidspanError, match=r"cannot use the statistics in .*statistics\.jsonl: "):
        StatisticsFile(tmp_path / "file" / "statistics.jsonl").append({PYTHON: Tally(shown=1)})


def test_the_counts_can_be_deleted(file: StatisticsFile) -> None:
    file.append({PYTHON: Tally(shown=1)})
    file.reset()
    file.reset()

    assert file.read() == {}
