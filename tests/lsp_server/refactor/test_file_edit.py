"""The edits of a file: taken place by place in any order, shown as blocks of lines, and one list made of two."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refactor_case import edit_of

from benchmarks.refactor.ast_grep import apart, chain
from benchmarks.refactor.refactor_edits import Edit, after_example, read_edits, read_unseen, score
from lsp_server.documents.text_edit import TextEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.blocks import Block, blocks_of
from lsp_server.refactor.edit.file_edit import FileEdit, Span
from lsp_server.refactor.edit.ranges import Ranges
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example, NoRule
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.pending import PendingFile
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


_ANY_TEXT = st.text("abcde\n", max_size=20)


def _applied(text: str, edits: list[TextEdit]) -> str:
    return FileEdit("a", edits=tuple(edits)).applied(text)


@st.composite
def _edits(draw: st.DrawFn, text: str) -> list[TextEdit]:
    position = st.integers(0, len(text))
    found = [sorted(draw(st.tuples(position, position))) for _ in range(draw(st.integers(0, 4)))]
    return apart([TextEdit(start, end, draw(st.text("XYZ", max_size=4))) for start, end in found])


@given(st.data(), _ANY_TEXT)
def test_chained_edits_do_what_the_runs_do_one_after_the_other(data: st.DataObject, text: str) -> None:
    runs: list[list[TextEdit]] = []
    after = text
    for _ in range(3):
        runs.append(data.draw(_edits(after)))
        after = _applied(after, runs[-1])
    assert _applied(text, chain(text, runs)) == after


def test_chained_edits_leave_alone_what_no_run_touches() -> None:
    runs = [[TextEdit(1, 2, "XX")], [TextEdit(0, 2, "Y"), TextEdit(5, 6, "")]]
    assert chain("abcde", runs) == [TextEdit(0, 2, "YX"), TextEdit(4, 5, "")]


def test_the_outer_of_two_edits_comes_first() -> None:
    outer, inner, beside = (TextEdit(start, end, "x") for start, end in ((0, 9), (4, 6), (9, 10)))
    assert apart([inner, beside, outer]) == [outer, beside]


@pytest.mark.parametrize("edit", read_edits(), ids=lambda edit: edit.name)
def test_no_place_is_edited_wrongly(edit: Edit) -> None:
    for place in edit.places:
        rules = learn([edit.example(place)], edit.language)
        done = score(edit, rewrite(rules, edit.name, edit.before, edit.language), {place})
        assert done.wrong == 0, edit.sites[place].text
        assert done.imports_right or not done.is_whole


@pytest.mark.parametrize("edit", read_unseen(), ids=lambda edit: edit.name)
def test_an_edit_that_nobody_tuned_is_wrong_in_no_place_and_silent_about_none(edit: Edit) -> None:
    for place in edit.places:
        try:
            rules = learn([edit.example(place)], edit.language)
        except NoRule:
            assert edit.name == "try_macro.rs"  # the grammar of Rust does not know `try!`
            continue
        for text, examples in ((edit, {place}), (after_example(edit, place), set[int]())):
            done = score(text, rewrite(rules, edit.name, text.before, edit.language), examples)
            assert done.wrong == 0, edit.sites[place].text
        # The other sites' rules may say too little of the rest, for example of a header with two changes.
        if place == edit.places[0]:
            assert done.silent == ()


def test_of_the_edits_that_nobody_tuned_nineteen_of_twenty_places_are_right() -> None:
    right = missed = 0
    for edit in read_unseen():
        left = after_example(edit, edit.places[0])
        try:
            rules = learn([edit.example(edit.places[0])], edit.language)
        except NoRule:
            missed += len(left.places)
            continue
        done = score(left, rewrite(rules, edit.name, left.before, edit.language), set())
        right, missed = right + done.right, missed + done.missed
    assert right / (right + missed) >= 0.95
