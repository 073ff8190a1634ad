"""Models that read related code get windows of the workspace in their prompt, the same while the cursor is near."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import numpy as np
import pytest
import pytest_asyncio
from scheduler_client import answer
from support.drafters import fim_family

from engine.fill.interface import Layout, Model
from engine.library.resolve import EMBEDDED_FOLDER
from engine.memory.mixing_network import MIXING_FILE, MixingNetwork
from engine.memory.workspace import EngineMemories
from engine.models.load import load
from engine.protocol.messages import Fill, MemoryName, Snippet
from engine.schedule.scheduler import Scheduler

KNOWN = "def area(width, height):\n    unlikely = width * height\n    return unlikely\n"
OTHER = "4711, 815, 2317, 90909, 6666\n"
HOLE = Fill(
    id=1,
    prefix="import os\ndef area(width, height):\n    unlikely = ",
    suffix="\n",
    path="new.py",
    max_tokens=8,
    budget_ms=6e5,
    workspace="home",
)


def memories_of(model: Model) -> EngineMemories:
    mixing = MixingNetwork.load(EMBEDDED_FOLDER / MIXING_FILE)
    return EngineMemories(model, model.tokenizer, mixing, 1 << 24, model.memory_use)


def learn(memories: EngineMemories, path: str, text: str, workspace: str = "home") -> None:
    memories.learn(workspace, path, np.array(memories.tokenize(text), np.int32))


@pytest.fixture(params=["masked", "gemma", "qwen"])
def model(request: pytest.FixtureRequest, tmp_path: object) -> Model:
    if request.param == "qwen":
        return fim_family(request.getfixturevalue("tmp_path") / "qwen")[1]
    found: Model = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def memories(model: Model) -> EngineMemories:
    found = memories_of(model)
    learn(found, "area.py", KNOWN)
    learn(found, "numbers.csv", OTHER)
    return found


@pytest_asyncio.fixture
async def scheduler(model: Model, memories: EngineMemories) -> AsyncIterator[Scheduler]:
    running = Scheduler(model, memories=memories)
    await running.start()
    yield running
    await running.stop()


def prompt(model: Model, layout: Layout) -> str:
    return "".join(model.texts_of([*layout.context, *layout.before]))


async def test_a_window_is_read_as_a_snippet_of_its_file(
    model: Model, memories: EngineMemories, scheduler: Scheduler
) -> None:
    assert memories.related(HOLE) == [Snippet("area.py", KNOWN)]
    given = attrs.evolve(HOLE, snippets=[Snippet("area.py", KNOWN)], memory="off")
    assert KNOWN in prompt(model, model.lay_out(given))
    with_memory, with_snippet = await answer(scheduler, HOLE), await answer(scheduler, given)
    assert with_memory.context_tokens == with_snippet.context_tokens
    assert with_memory.candidates == with_snippet.candidates
    without = await answer(scheduler, attrs.evolve(HOLE, memory="off"))
    assert without.context_tokens < with_memory.context_tokens


async def test_windows_come_next_to_the_hole_and_within_the_room_for_snippets(
    model: Model, memories: EngineMemories, scheduler: Scheduler
) -> None:
    others = [Snippet(f"{number}.py", f"number_{number} = {number}\n" * 9) for number in range(40)]
    hole = attrs.evolve(HOLE, snippets=others)
    text = prompt(model, model.lay_out(attrs.evolve(hole, snippets=[*memories.related(hole), *others])))
    assert KNOWN in text
    assert text.count("number_0 =") <= text.count("number_0 =", 0, text.index(KNOWN))
    filled = await answer(scheduler, hole)
    assert filled.context_tokens <= (model.info.reading_tokens or model.info.context_tokens) - HOLE.max_tokens


@pytest.mark.parametrize(
    "change",
    [{"workspace": "elsewhere"}, {"workspace": ""}, {"memory": "file"}, {"memory": "off"}, {"path": "area.py"}],
)
async def test_no_window_comes_from_where_it_may_not(
    memories: EngineMemories, scheduler: Scheduler, change: dict[str, str]
) -> None:
    hole = attrs.evolve(HOLE, **change)  # type: ignore[arg-type]
    assert memories.related(hole) == []
    filled = await answer(scheduler, hole)
    assert filled.context_tokens == (await answer(scheduler, attrs.evolve(hole, memory="off"))).context_tokens


def test_a_forgotten_file_leaves_a_held_choice_at_once(memories: EngineMemories) -> None:
    assert [snippet.path for snippet in memories.related(HOLE)] == ["area.py"]
    memories.forget("elsewhere", None)
    assert memories.related(HOLE)
    memories.forget("home", ["area.py"])
    assert memories.related(HOLE) == []


def test_a_file_that_is_learned_again_gives_its_new_lines(memories: EngineMemories) -> None:
    assert memories.related(HOLE)
    changed = KNOWN.replace("return", "yield")
    learn(memories, "area.py", changed)
    assert memories.related(HOLE) == [Snippet("area.py", changed)]


def test_windows_stay_while_the_cursor_moves_some_lines(memories: EngineMemories) -> None:
    chosen = memories.related(HOLE)
    typed = "width * height\n" + OTHER
    near = attrs.evolve(HOLE, prefix=HOLE.prefix + typed)
    assert memories.related(near) == chosen
    *above, _ = HOLE.prefix.splitlines(keepends=True)
    assert memories.related(attrs.evolve(HOLE, prefix="".join(above) + "4711, 815, 2317")) == chosen
    far = attrs.evolve(HOLE, prefix=HOLE.prefix + typed + "pass\n" * 20 + "4711, 815, 2317")
    assert memories.related(far) == [Snippet("numbers.csv", OTHER)]


async def test_the_next_key_reads_no_window_again(model: Model, memories: EngineMemories, scheduler: Scheduler) -> None:
    await answer(scheduler, HOLE)
    typed = await answer(scheduler, attrs.evolve(HOLE, prefix=HOLE.prefix + "width * height\n" + OTHER))
    cached = 0 if model.info.noise == "absorbing" else len(memories.tokenize(KNOWN))
    assert typed.cached_tokens >= cached


def test_windows_are_chosen_again_when_the_workspace_has_grown(memories: EngineMemories) -> None:
    assert len(memories.related(HOLE)) == 1
    learn(memories, "second.py", KNOWN)
    assert sorted(snippet.path for snippet in memories.related(HOLE)) == ["area.py", "second.py"]


def test_code_that_an_open_file_shows_already_is_not_repeated(memories: EngineMemories) -> None:
    shown = [Snippet("area.py", "import os\n" + KNOWN)]
    assert memories.related(attrs.evolve(HOLE, snippets=shown)) == []
    assert memories.related(attrs.evolve(HOLE, snippets=[Snippet("area.py", OTHER)]))


def with_room(tiny_model: Path, folder: Path, room: int) -> Model:
    """The tiny model with room for so many tokens of related code."""
    shutil.copytree(tiny_model, folder)
    config = json.loads((folder / "config.json").read_text())
    config["shape"]["context_tokens"] += room
    (folder / "config.json").write_text(json.dumps(config | {"related_tokens": room}))
    return load(str(folder), threads=1, device="cpu")


@pytest.mark.parametrize("room", [0, 64])
async def test_the_embedded_model_gets_windows_beside_the_memory_if_it_has_room_for_them(
    tiny_model: Path, tmp_path: Path, room: int
) -> None:
    model = with_room(tiny_model, tmp_path / "model", room)
    memories = memories_of(model)
    learn(memories, "area.py", KNOWN)
    found = memories.related(HOLE)
    assert found == ([Snippet("area.py", KNOWN)] if room else [])
    alone, layout = model.lay_out(HOLE), model.lay_out(attrs.evolve(HOLE, snippets=found))
    read = prompt(model, layout)
    assert read.endswith(prompt(model, alone)), "the hole's own code keeps its room"
    assert ("def area(width, height):" in read[: -len(prompt(model, alone))]) == bool(room)
    assert len(layout.context) - len(alone.context) <= room
    assert memories.for_fill(HOLE, layout) is not None


FAR = [f"step_{number} = {number} * scale\n" for number in range(200)]


@pytest.fixture
def near(tiny_model: Path, tmp_path: Path) -> EngineMemories:
    """The memories of an embedded model that has room for related code."""
    found = memories_of(with_room(tiny_model, tmp_path / "near", 64))
    learn(found, "area.py", KNOWN)
    return found


@pytest.mark.parametrize("memory", ["workspace", "file"])
@pytest.mark.parametrize("part", ["above", "below"])
def test_a_model_that_reads_little_gets_windows_of_its_own_file_from_far_above_and_below(
    near: EngineMemories, memory: MemoryName, part: str
) -> None:
    filler = "".join(FAR)
    above, below = (KNOWN + filler, "") if part == "above" else ("", filler + KNOWN)
    hole = attrs.evolve(HOLE, prefix=above + HOLE.prefix, suffix="\n" + below, memory=memory)
    own = [snippet.text for snippet in near.related(hole) if snippet.path == HOLE.path]
    assert KNOWN in own[0] + "\n"
    assert [snippet.path for snippet in near.related(hole)].count("area.py") == (memory == "workspace")
    assert near.related(attrs.evolve(hole, memory="off")) == []


def test_no_window_is_of_code_that_is_read_anyway(near: EngineMemories) -> None:
    hole = attrs.evolve(HOLE, prefix=KNOWN + "".join(FAR[:20]) + HOLE.prefix, suffix="\n" + KNOWN, workspace="")
    assert near.related(hole) == []


def test_a_window_of_the_own_file_is_held_while_that_file_is_learned_again(near: EngineMemories) -> None:
    hole = attrs.evolve(HOLE, prefix=KNOWN + "".join(FAR) + HOLE.prefix)
    learn(near, HOLE.path, hole.prefix)
    chosen = near.related(hole)
    learn(near, HOLE.path, hole.prefix)
    assert near.related(attrs.evolve(hole, prefix="x = 1\n" + hole.prefix)) == chosen


def test_a_window_of_the_own_file_is_as_the_file_is_now(near: EngineMemories) -> None:
    hole = attrs.evolve(HOLE, prefix=KNOWN + "".join(FAR) + HOLE.prefix)
    near.related(hole)
    changed = KNOWN.replace("return", "yield")
    again = near.related(attrs.evolve(hole, prefix=changed + "".join(FAR) + HOLE.prefix))
    assert changed in again[0].text + "\n"


def test_the_memory_is_mixed_into_no_other_model_unless_it_says_so(model: Model, memories: EngineMemories) -> None:
    assert memories.for_fill(HOLE, model.lay_out(HOLE)) is None
