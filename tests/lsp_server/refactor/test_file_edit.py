"""The places of a file: taken in any order they end with the same text, and a person sees them as blocks of lines."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refactor_case import edit_of

from lsp_server.languages.registry import language_for
from lsp_server.refactor.example import Example
from lsp_server.refactor.file_edit import Block, PendingFile, Ranges, Span, blocks_of
from lsp_server.refactor.learn import learn
from lsp_server.refactor.recent import places_in

_TEXT = "import os\nx = get(1)\ny = (get(2), get(get(3)))\nget(\n    4,\n)\n"
_RULES = learn([Example("get(a)", "fetch(a, timeout=3)")], language_for("python", ""))
_RANGE = st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))
TIMEOUT = ("get(a)", "get(a, timeout=10)")


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


@given(st.lists(_RANGE, max_size=12), _RANGE)
def test_it_finds_what_a_look_at_all_finds(ranges: Sequence[tuple[int, int]], near: tuple[int, int]) -> None:
    spans = [Span(start, end, line) for line, (start, end) in enumerate(ranges)]
    kept = Ranges[Span]()
    for span in spans:
        kept.add(span)
    expected = [span for span in spans if span.start <= near[1] and near[0] <= span.end]
    assert kept.touching(*near) == sorted(expected, key=lambda span: span.start)


def blocks(
    text: str, example: tuple[str, str] = TIMEOUT, language: str = "python"
) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    return blocks_of(text, edit_of(language, [example], text))


def test_places_on_lines_of_their_own_are_chosen_one_by_one() -> None:
    found, following = blocks("get(b)\n\nx = get(c)  # 🙂\n")

    assert [(one.line, one.before, one.after) for one in found] == [
        (0, "get(b)", "get(b, timeout=10)"),
        (2, "x = get(c)  # 🙂", "x = get(c, timeout=10)  # 🙂"),
    ]
    assert [(one.start, one.end) for one in found] == [(0, 6), (12, 18)]
    assert following == ()


def test_places_on_one_line_are_chosen_together() -> None:
    (one,), _ = blocks("f(get(b), get(c))\n")

    assert one.after == "f(get(b, timeout=10), get(c, timeout=10))"
    assert len(one.spans) == 2


def test_a_place_inside_of_another_is_chosen_with_it() -> None:
    (one,), _ = blocks("get(\n    get(b),\n)\n")

    assert (one.line, one.before) == (0, "get(\n    get(b),\n)")
    assert one.after == "get(\n    get(b, timeout=10),\n    timeout=10,\n)"


def test_a_long_place_does_not_take_along_what_is_inside_of_it() -> None:
    body = "".join(f"      <i{index} />\n" for index in range(20))
    text = f"const a = (\n  <Button old={{1}}>\n{body}    <Button old={{2}} />\n  </Button>\n);\n"
    found, _ = blocks(text, ("<Button old={x} />", "<Button new={x} />"), "typescriptreact")

    assert [one.after.strip() for one in found] == ["<Button new={1}>", "<Button new={2} />"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_imports_follow_the_places(newline: str) -> None:
    text = newline.join(["import os", "", "os.path.join(c, d)", ""])
    example = ("import os\nos.path.join(a, b)\n", "from pathlib import Path\nPath(a) / b\n")

    (place,), (imported,) = blocks(text, example)

    assert (place.before, place.after) == ("os.path.join(c, d)", "Path(c) / d")
    assert (imported.line, imported.before, imported.after) == (0, "import os", "from pathlib import Path")
    assert imported.spans == ()
