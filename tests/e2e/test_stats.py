"""`midspan stats` on the command line."""

import json
from pathlib import Path

import pytest
from support.ended import Ended, run_here

from engine.usage_file import EARLIER, Row, StatisticsFile, Tally, statistics_path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StatisticsFile:
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(tmp_path))
    return StatisticsFile(statistics_path())


def stats(*options: str) -> Ended:
    return run_here("stats", *options)


def add_counts(file: StatisticsFile) -> None:
    file.append(
        {
            Row("2026-11-20", "go"): Tally(
                shown=10, accepted=4, dismissed=1, characters=80, shown_file=1, accepted_file=1
            )
        }
    )
    file.append(
        {Row("2026-11-21", "python"): Tally(shown=30, accepted=6, partial=2, characters=300, shown_workspace=7)}
    )
    file.append({Row(EARLIER, "python"): Tally(shown=2)})


def test_without_counts_it_says_so(file: StatisticsFile) -> None:
    assert "nothing has been counted yet" in stats().out


def test_it_shows_one_line_for_each_language_and_the_sums(file: StatisticsFile) -> None:
    add_counts(file)

    lines = [line.split() for line in stats().out.splitlines()]
    assert ["python", "32", "6", "19%", "2", "0", "300"] in lines
    assert ["go", "10", "4", "40%", "0", "1", "80"] in lines
    assert ["all", "42", "10", "24%", "2", "1", "380"] in lines


def test_it_says_how_many_of_each_source_were_accepted(file: StatisticsFile) -> None:
    add_counts(file)

    line = "accepted by source: model 9 of 34 shown, file 1 of 1 shown, workspace 0 of 7 shown"
    assert line in stats().out.splitlines()


def test_it_shows_one_line_for_each_day(file: StatisticsFile) -> None:
    add_counts(file)

    names = [line.split()[0] for line in stats("--by", "day").out.splitlines() if line.strip()]
    assert names[:5] == ["day", "earlier", "2026-11-20", "2026-11-21", "all"]


def test_it_prints_everything_as_json(file: StatisticsFile) -> None:
    add_counts(file)

    answer = json.loads(stats("--json").out)
    assert answer["file"] == str(file.path)
    assert answer["total"] == {
        **{"shown": 42, "accepted": 10, "partial": 2, "dismissed": 1, "characters": 380},
        **{"shown_file": 1, "shown_workspace": 7, "accepted_file": 1, "accepted_workspace": 0},
    }
    assert answer["languages"]["go"]["accepted"] == 4
    assert answer["days"]["2026-11-21"]["characters"] == 300


def test_reset_deletes_the_counts(file: StatisticsFile) -> None:
    add_counts(file)

    assert "all counts are deleted" in stats("--reset").out
    assert json.loads(stats("--json").out)["total"]["shown"] == 0


def test_a_file_that_cannot_be_read_is_one_clear_line(file: StatisticsFile) -> None:
    file.path.mkdir()
    ended = stats()

    assert ended.status == 1
    assert len(ended.err.splitlines()) == 1
    assert "cannot use the statistics in" in ended.err
