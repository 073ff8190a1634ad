"""The person of benchmarks/editors/net_time.py: on paper, and one place in a real Neovim."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
from neovim import PROGRAM, ROOT

from benchmarks.editors.net_time_person import Pace, Part, Person, Seen, Tally
from benchmarks.editors.net_time_tools import Paper, Replayed, Words
from benchmarks.quality.prices import record, recorded
from benchmarks.quality.typing_tasks import TypingTask
from engine.evaluation.keystrokes import keys
from engine.models.load import load
from engine.protocol.confidence import FREE
from engine.schedule.scheduler import Scheduler
from lsp_server.settings import Settings

ABOVE = "def total(prices, quantities):\n    "
TEXT = "amounts = [price * count for price, count in zip(prices, quantities)]\n    return sum(amounts)"
TASK = TypingTask("shop.py", "python", ABOVE, TEXT, "\n")
PACE = Pace()


class Shows(Paper):
    """Shows a text where the written one ends with `after`, and nothing elsewhere."""

    def __init__(self, after: str, text: str) -> None:
        super().__init__()
        self._after, self._text = after, text

    def look(self, seconds: float) -> Seen:
        return Seen(self._text if self._written.endswith(self._after) else "")

    def take(self, part: Part) -> None:
        self._written += {"all": self._text, "line": self._text.partition("\n")[0], "word": "prices"}[part]


def written(tool: Paper, seed: int = 1, task: TypingTask = TASK) -> Tally:
    return Person(task, tool, PACE, seed).write()


def test_on_paper_each_key_is_pressed_and_nothing_is_read() -> None:
    tally = next(tally for tally in (written(Paper(), seed) for seed in range(50)) if not tally.typos)
    moved = tally.keys - keys(TEXT)
    assert moved % 2 == 0
    assert (tally.glances, tally.read, tally.accepted, tally.wrong) == (0, 0, 0, 0)
    assert tally.thoughts >= 2
    motion = tally.rhythm * PACE.key + tally.thoughts * PACE.thought
    assert tally.seconds(PACE) == pytest.approx(motion)


def test_a_typo_is_written_and_taken_back() -> None:
    slips = [written(Paper(), seed) for seed in range(100)]
    typed = [tally for tally in slips if tally.typos and tally.thoughts == 2]
    assert typed
    for tally in typed:
        # The wrong key and up to two more are pressed, and each is erased.
        assert keys(TEXT) + 2 * tally.typos <= tally.keys <= keys(TEXT) + 6 * tally.typos


def test_the_same_seed_is_the_same_person() -> None:
    assert written(Paper(), 7) == written(Paper(), 7)
    assert written(Paper(), 7) != written(Paper(), 8)


def test_a_right_text_is_read_once_and_taken_with_a_key() -> None:
    paper = written(Paper())
    tally = written(Shows("amounts = [price * count for ", "price, count in zip(prices, quantities)]"))
    assert (tally.glances, tally.accepted, tally.wrong, tally.lost) == (1, 1, 0, 0)
    assert tally.read == len("price, count in zip(prices, quantities)]")
    assert tally.keys < paper.keys
    assert tally.seconds(PACE) < paper.seconds(PACE)


def test_of_a_text_that_begins_right_the_words_are_taken_that_are() -> None:
    tally = written(Shows("count in zip(", "prices[0], 1)]"))
    assert (tally.glances, tally.accepted, tally.wrong) == (1, 1, 0)


def test_a_wrong_text_is_read_to_its_first_wrong_word_and_breaks_a_thought() -> None:
    tally = written(Shows("return su", "btotal(amounts)"))
    assert (tally.glances, tally.accepted, tally.wrong, tally.lost) == (1, 0, 1, 1)
    assert tally.read == len("btotal")
    assert tally.seconds(PACE) > written(Paper()).seconds(PACE)


def test_a_wrong_text_at_the_start_of_a_line_breaks_no_thought() -> None:
    tally = written(Shows("quantities)]\n    ", "print(amounts)"))
    assert (tally.wrong, tally.lost) == (tally.glances, 0)


def test_word_completion_saves_keys_and_is_read() -> None:
    tally = written(Words())
    assert tally.accepted
    assert tally.glances
    assert tally.keys < written(Paper()).keys


def test_a_person_types_with_recorded_fills(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # load sets it, and the editors of other tests shall not have it
    file, model = tmp_path / "fills", load(str(tiny_model), threads=1)
    asyncio.run(record(Scheduler(model), model.info, [(TASK, "")], file, 600, Settings(gate=FREE)))
    fills = recorded(file, [TASK])
    tally = written(Replayed(FREE, model.info, fills))
    assert tally.glances
    assert tally == written(Replayed(FREE, model.info, fills))


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.exists(), reason="Neovim is not here: make editors")
def test_a_person_types_in_a_real_neovim(tmp_path: Path) -> None:
    files = [[f"shop/{name}.py", "python", ABOVE + TEXT + "\n"] for name in "ab"]
    (tmp_path / "judge.msgpack").write_bytes(msgpack.packb(files))
    script = ROOT / "benchmarks" / "editors" / "net_time.py"
    # The other file has the same code, so the memory knows it. No pause ends before the answer.
    options = ["--corpus", str(tmp_path), "--places", "1", "--gate", "eager", "--slower", "100"]
    run = subprocess.run(
        [sys.executable, str(script), *options, "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "python, 1 places of three lines" in run.stdout
    tallies = json.loads((tmp_path / "net-time.json").read_text())["tallies"]
    assert list(tallies) == ["no tool", "word completion", "eager"]
    alone, eager = (Tally(**tallies[name][0]) for name in ("no tool", "eager"))
    assert alone.keys >= keys(TEXT)
    assert eager.glances > 0
    assert eager.accepted > 0
    assert alone.glances == 0
