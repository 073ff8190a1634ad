"""The places of a file that wait for the user: taken in any order, they end with the same text."""

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.languages.registry import language_for
from lsp_server.refactor.example import Example
from lsp_server.refactor.learn import learn
from lsp_server.refactor.pending import PendingFile
from lsp_server.refactor.recent import places_in

_TEXT = "import os\nx = get(1)\ny = (get(2), get(get(3)))\nget(\n    4,\n)\n"
_RULES = learn([Example("get(a)", "fetch(a, timeout=3)")], language_for("python", ""))


def _file() -> PendingFile:
    return PendingFile.of(_TEXT, places_in(_RULES, _TEXT, "python", "file"))


@given(st.lists(st.integers(0, len(_TEXT) + 100), min_size=4, max_size=4))
def test_places_can_be_taken_in_any_order(cursors: list[int]) -> None:
    file = _file()
    for left, cursor in zip((4, 3, 2, 1), cursors, strict=True):
        assert file.count == left
        place = file.nearest(cursor)
        assert place is not None
        assert file.follow(place.applied(file.text)) == "taken"
    assert file.nearest(0) is None
    assert file.text == (
        "import os\nx = fetch(1, timeout=3)\ny = (fetch(2, timeout=3), fetch(fetch(3, timeout=3), timeout=3))\n"
        "fetch(\n    4,\n    timeout=3,\n)\n"
    )


def test_the_nearest_place_is_the_one_at_or_after_the_cursor_and_then_the_first() -> None:
    file = _file()
    places = [file.nearest(_TEXT.index(text)) for text in ("get(1)", "get(2)", "get(get", "4")]
    assert len(set(places)) == 4
    assert file.nearest(len(_TEXT)) == file.nearest(0) == places[0]


def test_other_changes_are_told_from_offered_ones() -> None:
    file = _file()
    place = file.nearest(0)
    assert place is not None
    assert file.follow(_TEXT) == "same"
    assert file.follow(_TEXT.replace("x = ", "z = ")) == "other"
    assert file.follow(place.applied(_TEXT)) == "taken"
    assert file.follow(_TEXT) == "undone"
