"""The counts for the user's statistics: none is lost while the disk refuses, or while they are written."""

from pathlib import Path

import pytest
from support.lsp_editor import eventually

from engine.usage_file import StatisticsFile, Tally, by_language
from engine.whole_files import try_lock
from lsp_server.engine_link import offers
from lsp_server.engine_link.offers import Ledger


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StatisticsFile:
    monkeypatch.setattr(offers, "_FLUSH_S", 0.01)
    return StatisticsFile(tmp_path / "data" / "statistics.jsonl")


def counted(file: StatisticsFile) -> int:
    return by_language(file.read()).get("python", Tally()).shown


async def test_what_the_disk_refused_is_written_at_the_end(
    file: StatisticsFile, caplog: pytest.LogCaptureFixture
) -> None:
    file.path.parent.write_text("in the way")
    ledger = Ledger(file)
    ledger.add("python", Tally(shown=1))
    await eventually(lambda: "nothing is counted" in caplog.text)

    file.path.parent.unlink()
    await ledger.close()
    assert counted(file) == 1


async def test_the_end_waits_for_what_is_being_written(file: StatisticsFile) -> None:
    ledger = Ledger(file)
    ledger.add("python", Tally(shown=1))
    await eventually(lambda: counted(file) == 1)
    (lock,) = file.path.parent.glob("*.lock")
    with lock.open("rb+") as held:
        assert try_lock(held.fileno())
        ledger.add("python", Tally(shown=1))
        await eventually(lambda: not ledger._waiting)
    await ledger.close()
    assert counted(file) == 2
