"""Where the text of a fill comes from: its main source, and the places of its parts."""

import attrs
import pytest
from known_line import HOLE as KNOWN_HOLE
from known_line import LINE, REST
from scheduler_client import answer
from support.sources import source_paths

from engine.protocol.messages import Candidate, Fill, Origin, RuleName
from engine.schedule.scheduler import Scheduler

HOLE = attrs.evolve(KNOWN_HOLE, rule="verify", explain=True)


async def fill(scheduler: Scheduler, hole: Fill) -> Candidate:
    return (await answer(scheduler, hole)).candidates[0]


@pytest.mark.parametrize("rule", ["left-to-right", "verify"])
async def test_a_known_line_names_its_place(scheduler: Scheduler, rule: RuleName) -> None:
    found = await fill(scheduler, attrs.evolve(HOLE, rule=rule))
    assert found.source == "workspace"
    (origin,) = found.origins
    assert (origin.start, origin.text) == (0, REST)
    assert (origin.path, origin.line) == ("known.py", 4), "the latest of three"
    assert (origin.count, origin.total) == (3, 3)
    assert origin.alone < 0.01, "the network has random weights"


async def test_nothing_is_explained_unless_the_fill_asks(scheduler: Scheduler) -> None:
    found = await fill(scheduler, attrs.evolve(HOLE, explain=False))
    assert found.text == REST
    assert found.source == "workspace"
    assert found.origins == []


async def test_without_a_memory_all_comes_from_the_model(scheduler: Scheduler) -> None:
    found = await fill(scheduler, attrs.evolve(HOLE, memory="off"))
    assert found.text
    assert found.source == "model"
    assert found.origins == []


async def test_a_place_in_the_edited_file_has_its_line_there(scheduler: Scheduler) -> None:
    hole = attrs.evolve(HOLE, memory="file")
    above = attrs.evolve(hole, prefix="\n" + LINE + hole.prefix)
    below = attrs.evolve(hole, suffix="\n\n" + LINE)
    windowed = attrs.evolve(above, line=104)
    for each, line in ((above, 2), (below, 4), (windowed, 102), (attrs.evolve(below, line=50), 52)):
        found = await fill(scheduler, each)
        assert found.source == "file"
        (origin,) = found.origins
        assert (origin.text, origin.path, origin.line, origin.total) == (REST, "a/b.py", line, 1)


async def test_typed_lines_at_the_cursor_move_no_line(scheduler: Scheduler) -> None:
    code = "def first():\n    return 1\n\n\ndef second():\n    return 1\n\n\n"
    hole = attrs.evolve(HOLE, prefix=code + code, suffix="\n", extent="lines", memory="file")
    found = await fill(scheduler, hole)
    assert found.origins
    for origin in found.origins:
        assert stands_at(code + code, origin)


async def test_a_place_above_the_file_is_left_out(scheduler: Scheduler) -> None:
    """Other cells of a notebook come before a cell in its prefix."""
    hole = attrs.evolve(HOLE, memory="file", prefix="\n" + LINE + HOLE.prefix, line=1)
    found = await fill(scheduler, hole)
    assert found.text == REST
    assert found.origins == []


@pytest.mark.parametrize("rule", ["left-to-right", "verify", "entropy"])
async def test_each_part_stands_at_its_place(scheduler: Scheduler, rule: RuleName) -> None:
    paths = source_paths()
    files = {path.stem: path.read_text() for path in paths[:10]}
    text = paths[5].read_text()
    explained = 0
    for cursor in range(700, 2800, 150):
        edge = text.index("\n", cursor - 600) + 1
        hole = attrs.evolve(
            HOLE,
            prefix=text[edge:cursor],
            suffix=text[cursor:],
            path=paths[5].stem,
            line=1 + text[:cursor].count("\n"),
            extent="lines",
            max_tokens=16,
            rule=rule,
        )
        found = await fill(scheduler, hole)
        for origin in found.origins:
            assert found.text[origin.start :].startswith(origin.text)
            assert stands_at(files[origin.path], origin)
            assert 1 <= origin.count <= origin.total
        explained += len(found.origins)
    assert explained > 3


def stands_at(text: str, origin: Origin) -> bool:
    """Return whether the text of an origin begins in its line."""
    lines = text.split("\n")[origin.line - 1 :]
    return 0 <= "\n".join(lines).find(origin.text.lstrip()) <= len(lines[0])
