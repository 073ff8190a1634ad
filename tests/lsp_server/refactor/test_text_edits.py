"""Edits that the benchmark makes one after the other, as one list."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.refactor.ast_grep import apart, chain
from lsp_server.refactor.file_edit import FileEdit, TextEdit

_TEXT = st.text("abcde\n", max_size=20)


def _applied(text: str, edits: list[TextEdit]) -> str:
    return FileEdit("a", edits=tuple(edits)).applied(text)


@st.composite
def _edits(draw: st.DrawFn, text: str) -> list[TextEdit]:
    position = st.integers(0, len(text))
    found = [sorted(draw(st.tuples(position, position))) for _ in range(draw(st.integers(0, 4)))]
    return apart([TextEdit(0, 0, start, end, draw(st.text("XYZ", max_size=4))) for start, end in found])


@given(st.data(), _TEXT)
def test_chained_edits_do_what_the_runs_do_one_after_the_other(data: st.DataObject, text: str) -> None:
    runs: list[list[TextEdit]] = []
    after = text
    for _ in range(3):
        runs.append(data.draw(_edits(after)))
        after = _applied(after, runs[-1])
    assert _applied(text, chain(text, runs)) == after


def test_chained_edits_leave_alone_what_no_run_touches() -> None:
    runs = [[TextEdit(0, 0, 1, 2, "XX")], [TextEdit(0, 0, 0, 2, "Y"), TextEdit(0, 0, 5, 6, "")]]
    assert chain("abcde", runs) == [TextEdit(0, 0, 0, 2, "YX"), TextEdit(0, 0, 4, 5, "")]


def test_the_outer_of_two_edits_comes_first() -> None:
    outer, inner, beside = (TextEdit(0, 0, start, end, "x") for start, end in ((0, 9), (4, 6), (9, 10)))
    assert apart([inner, beside, outer]) == [outer, beside]
