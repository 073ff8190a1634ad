"""What the user did, as a few edits: each has the text before and after it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from support.typist import Typist

from engine.protocol.rewrite import changed_part
from lsp_server.refactor.recent import recent_places

_LINES = "".join(f"line {number}\n" for number in range(20))
_TEXTS = st.text("ab\n", max_size=12)


class _Typist(Typist):
    @property
    def parts(self) -> Sequence[tuple[str, str]]:
        return [(one.before[one.start : one.old_end], one.after[one.start : one.end]) for one in self.edits.all]


def test_typing_at_one_place_is_one_edit() -> None:
    typist = _Typist(_LINES)
    typist.type("line 3", ", more")
    assert typist.parts == [("", ", more")]
    assert typist.edits.all[0].before == _LINES


def test_changes_on_one_line_are_one_edit_and_changes_far_apart_are_two() -> None:
    typist = _Typist(_LINES)
    typist.replace("line 3", "lane 3")
    typist.replace("lane 3", "lanes 33")
    typist.replace("line 9", "lane 9")
    assert [one.serial for one in typist.edits.all] == [1, 2]
    first, second = typist.edits.all
    assert first.after == second.before
    assert second.after == typist.text


def test_an_edit_of_lines_that_were_typed_just_now_is_an_example() -> None:
    typist = _Typist("def f(a):\n")
    for line in ("    get(a)\n", "    first = 1\n", "    second = 2\n", "    get(a.b)\n"):
        typist.type(typist.text, line)
    typist.replace("get(a)", "get(a, 3)")
    typist.replace("3)", "34)")
    new, edit = typist.edits.all
    assert (new.may_be_example, edit.may_be_example) == (False, True)
    found = recent_places(typist.edits.all, "python", "file.py")
    assert found is not None
    assert [block.after for block in found.found.blocks] == ["    get(a.b, 34)"]


def test_a_slip_on_the_line_before_belongs_to_new_lines() -> None:
    typist = _Typist("def f(a):\n")
    typist.type("def f(a):\n", "    first = 1\n    secnd = 2\n")
    typist.replace("secnd", "second")
    assert len(typist.edits.all) == 1


def test_what_is_undone_is_no_edit() -> None:
    typist = _Typist(_LINES)
    typist.replace("line 3", "lane 3")
    typist.replace("lane 3", "line 3")
    assert not typist.edits.all


def test_an_undo_over_several_edits_is_no_edit_the_other_way_round() -> None:
    typist = _Typist(_LINES)
    for number in (3, 9, 15):
        typist.replace(f"line {number}", f"lane {number}")
    for number in (15, 9):
        typist.replace(f"lane {number}", f"line {number}")
    assert typist.parts == [("line 3", "lane 3")]
    assert typist.edits.newest is not None
    assert typist.edits.newest.undone
    typist.replace("lane 3", "line 3")
    assert not typist.edits.all


def test_the_undo_of_a_bulk_edit_is_none_in_whatever_order_it_comes() -> None:
    typist = _Typist("".join(f"word {number:02}\n" for number in range(80)))
    typist.replace("word 77", "name 77")
    for number in range(0, 60, 4):
        typist.replace(f"word {number:02}", f"name {number:02}")
    for number in range(0, 60, 4):
        typist.replace(f"name {number:02}", f"word {number:02}")
    assert not typist.edits.all
    typist.replace("word 70", "name 70")
    assert typist.parts == [("word 70", "name 70")]


def test_only_the_last_edits_are_kept() -> None:
    typist = _Typist("".join(f"word {number:02}\n" for number in range(40)))
    for number in range(0, 40, 4):
        typist.replace(f"word {number:02}", f"name {number:02}")
    assert [one.serial for one in typist.edits.all] == [3, 4, 5, 6, 7, 8, 9, 10]


def test_the_edits_of_a_huge_text_are_not_kept() -> None:
    typist = _Typist("x" * 2_000_000)
    typist.change(5, 1, "y")
    assert not typist.edits.all


@given(_TEXTS, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), _TEXTS), max_size=8))
def test_outside_of_its_part_an_edit_changes_nothing(text: str, changes: Sequence[tuple[int, int, str]]) -> None:
    typist = _Typist(text)
    for start, length, new in changes:
        at = min(start, len(typist.text))
        typist.change(at, min(length, len(typist.text) - at), new)
    for edit in typist.edits.all:
        assert edit.before[: edit.start] == edit.after[: edit.start]
        assert edit.before[edit.old_end :] == edit.after[edit.end :]
        assert edit.start <= edit.old_end
        assert edit.start <= edit.end


@given(_TEXTS, _TEXTS)
def test_the_changed_part_is_what_differs(before: str, after: str) -> None:
    start, end, new_end = changed_part(before, after)
    assert before[:start] + after[start:new_end] + before[end:] == after
    assert start <= min(end, new_end)
