"""The recording of fills that benchmarks/quality/prices.py replays: what is typed with it is what was typed live."""

from pathlib import Path

from benchmarks.quality.prices import Recorded, record, recorded
from benchmarks.quality.suggester import Suggester
from benchmarks.quality.typing_tasks import TypingTask, type_place
from engine.models.load import load
from engine.protocol.confidence import FREE
from engine.schedule.scheduler import Scheduler
from lsp_server.settings import Settings
from lsp_server.suggest.restraint import DOUBT, Restraint

_TASKS = [
    TypingTask("a.py", "python", "def total(items):\n    ", "return sum(items)", "\n"),
    TypingTask("b.py", "python", "names = []\n", "names.append(1)", "\n"),
]


async def test_a_replay_types_as_the_engine_did(tiny_model: Path, tmp_path: Path) -> None:
    file, model = tmp_path / "fills", load(str(tiny_model), threads=1)
    named = [(task, "") for task in _TASKS]
    settings = Settings(gate=FREE)
    assert await record(Scheduler(model), model.info, named, file, 600, settings) == 2
    replayed = recorded(file, _TASKS)
    assert [task for task, _ in replayed] == _TASKS
    scheduler = Scheduler(model)
    await scheduler.start()
    for task, fills in replayed:
        live = await type_place(task, Suggester(scheduler, model.info, task, settings, "", Restraint(DOUBT)))
        assert any(stroke.shown for stroke in live)
        assert await type_place(task, Recorded(fills, model.info, task, settings)) == live
    await scheduler.stop()


async def test_a_recording_that_was_cut_has_whole_tasks_only(tiny_model: Path, tmp_path: Path) -> None:
    file, model = tmp_path / "fills", load(str(tiny_model), threads=1)
    assert await record(Scheduler(model), model.info, [(task, "") for task in _TASKS], file, 0) == 1
    assert [task for task, _ in recorded(file, _TASKS)] == _TASKS[:1]
