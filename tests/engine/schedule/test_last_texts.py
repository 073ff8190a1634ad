"""The text that was written last in a document is the first draft of the next fill there."""

import attrs
import pytest
from scheduler_client import HOLE, answer, prefixes

from engine.fill.interface import Model
from engine.models.load import load
from engine.protocol.messages import Fill
from engine.schedule.caches import MOST_DOCUMENTS, LastTexts
from engine.schedule.scheduler import Scheduler

WRITTEN = "part.width * 2"


@pytest.mark.parametrize(
    ("typed", "rest"),
    [("", WRITTEN), ("p", "art.width * 2"), ("part.", "width * 2"), (WRITTEN, ""), ("q", ""), ("part.height", "")],
)
def test_what_is_typed_along_it_leaves_the_rest(typed: str, rest: str) -> None:
    texts = LastTexts()
    texts.note(HOLE, 1, WRITTEN)
    assert texts.rest(attrs.evolve(HOLE, prefix=HOLE.prefix + typed), 1) == rest


@pytest.mark.parametrize(
    "hole",
    [
        attrs.evolve(HOLE, prefix=HOLE.prefix[:-9]),
        attrs.evolve(HOLE, prefix=""),
        attrs.evolve(HOLE, path="other.py"),
        attrs.evolve(HOLE, scope="somebody"),
    ],
)
def test_another_place_or_document_has_none(hole: Fill) -> None:
    texts = LastTexts()
    texts.note(HOLE, 1, WRITTEN)
    assert texts.rest(hole, 1) == ""
    assert texts.rest(HOLE, 2) == ""


def test_a_fill_that_was_cancelled_early_does_not_shorten_it() -> None:
    texts = LastTexts()
    texts.note(HOLE, 1, WRITTEN)
    typed = attrs.evolve(HOLE, prefix=HOLE.prefix + "pa")
    texts.note(typed, 1, "rt")
    assert texts.rest(typed, 1) == "rt.width * 2"
    texts.note(typed, 1, "ss")
    assert texts.rest(typed, 1) == "ss"


def test_only_so_many_documents_are_remembered() -> None:
    texts = LastTexts()
    for number in range(MOST_DOCUMENTS + 1):
        texts.note(attrs.evolve(HOLE, path=f"{number}.py"), 1, WRITTEN)
    assert texts.rest(attrs.evolve(HOLE, path="0.py"), 1) == ""
    assert texts.rest(attrs.evolve(HOLE, path="1.py"), 1) == WRITTEN


@pytest.fixture(scope="module")
def family() -> Model:
    return load("embedded")


async def test_who_types_along_it_has_the_same_text_in_one_pass(scheduler: Scheduler) -> None:
    (hole,) = prefixes(1)
    hole = attrs.evolve(hole, suffix="\n", extent="line", choose_from=1, prefix="for index, value in enumerate(va")
    first = await answer(scheduler, hole)
    along = attrs.evolve(hole, prefix=hole.prefix + first.candidates[0].text[:1])
    fresh = await scheduler.submit(along, None, owner=2).result
    drafted = await answer(scheduler, along)
    assert drafted.candidates[0].text == fresh.candidates[0].text == first.candidates[0].text[1:]
    assert drafted.steps == 1 < fresh.steps
    watched = await answer(scheduler, attrs.evolve(along, progress=True, trace=True))
    assert watched.candidates[0].text == fresh.candidates[0].text
    assert watched.steps > 1, "who watches how a text is written is shown one that was just written"
