"""Restraint: wrong starts raise the price; what was dismissed, ignored twice or just deleted stays hidden there."""

from itertools import pairwise

import pytest
from lsprotocol import types
from support.marked import CURSOR, at_cursor

from engine.protocol.confidence import FREE, Price
from lsp_server.documents.store import Documents, Snapshot, position_in
from lsp_server.suggest.restraint import Dismissals, Restraint, gives_back, only_formats

PRICE = Price(wrong=5.0, least=0.64)
RAISED, TWICE = 10.0, 20.0


@pytest.fixture
def restraint() -> Restraint:
    return Restraint(doubt=2.0, most_wrong=2)


def see(restraint: Restraint, marked: str, text: str = "") -> float:
    """Show `text` at the marked cursor, "" for nothing, and return what a wrong text costs there."""
    snapshot, offset = at_cursor(marked)
    restraint.observe(snapshot, offset)
    price = restraint.price(PRICE)
    if text and restraint.refusal(snapshot, offset, text) is not None:
        text = ""
    restraint.showed(snapshot, offset, text)
    return price.wrong


def allows(restraint: Restraint, marked: str, text: str) -> bool:
    snapshot, offset = at_cursor(marked)
    restraint.observe(snapshot, offset)
    return restraint.refusal(snapshot, offset, text) is None


def test_a_wrong_start_raises_the_price_for_the_rest_of_its_line(restraint: Restraint) -> None:
    assert see(restraint, "x = ¦\n", "foo(1)") == PRICE.wrong
    assert see(restraint, "x = b¦\n") == pytest.approx(RAISED)
    assert see(restraint, "x = bar¦\n") == pytest.approx(RAISED)
    assert see(restraint, "x = bar\n¦\n") == PRICE.wrong


def test_a_start_that_the_user_typed_along_first_is_wrong_once_they_leave_it(restraint: Restraint) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    assert see(restraint, "x = fo¦\n", "o(1)") == PRICE.wrong
    assert see(restraint, "x = for¦\n") == pytest.approx(RAISED)


def test_the_third_wrong_start_of_a_line_does_not_raise_the_price_further(restraint: Restraint) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    see(restraint, "x = b¦\n", "ytes()")
    assert see(restraint, "x = ba¦\n", "nd") == pytest.approx(TWICE)
    assert see(restraint, "x = bar¦\n", "nd") == pytest.approx(TWICE)


def test_a_wrong_start_raises_the_least_probability_too(restraint: Restraint) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    see(restraint, "x = b¦\n")
    assert restraint.price(PRICE).least == pytest.approx(0.8)


@pytest.mark.parametrize("price", [FREE, Price(least=1.0)])
def test_a_gate_that_shows_all_or_nothing_stays(restraint: Restraint, price: Price) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    see(restraint, "x = b¦\n")
    raised = restraint.price(price)
    assert (raised.least, raised.hides_nothing) == (price.least, price.hides_nothing)


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("it was taken", "x = foo(1)¦\n"),
        ("it was taken and the line continued", "x = foo(1) + 2¦\n"),
        ("a part of it was taken", "x = foo(¦\n"),
        ("the editor closed a bracket", "x = foo(¦)\n"),
        ("a deletion", "x¦\n"),
        ("the cursor left", "¦x = \n"),
        ("the line ended", "x = \n¦\n"),
        ("an edit elsewhere", "y\nx = ¦\n"),
    ],
    ids=lambda value: value if "¦" not in value else "",
)
def test_this_is_no_wrong_start(restraint: Restraint, name: str, now: str) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    assert see(restraint, now) == PRICE.wrong


def test_a_typo_that_is_deleted_takes_the_wrong_start_back(restraint: Restraint) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    assert see(restraint, "x = g¦\n") == pytest.approx(RAISED)
    assert see(restraint, "x = ¦\n", "foo(1)") == PRICE.wrong


def test_typos_do_not_count_as_ignoring(restraint: Restraint) -> None:
    for _ in range(3):
        assert allows(restraint, "x = ¦\n", "foo(1)")
        see(restraint, "x = ¦\n", "foo(1)")
        see(restraint, "x = g¦\n")
        see(restraint, "x = g¦\n")


def test_a_cursor_that_comes_back_to_the_line_finds_the_price_as_it_was(restraint: Restraint) -> None:
    see(restraint, "x = ¦\ny\n", "foo(1)")
    see(restraint, "x = b¦\ny\n")
    see(restraint, "x = b\ny¦\n")
    assert see(restraint, "x = b¦\ny\n") == PRICE.wrong


def test_when_nothing_is_on_the_screen_any_more_nothing_is_typed_past(restraint: Restraint) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    see(restraint, "x = f¦\n")
    assert see(restraint, "x = fx¦\n") == PRICE.wrong


def ignore(restraint: Restraint, times: int, marked: str = "x = ¦\ny\n", text: str = "foo(1)") -> None:
    for _ in range(times):
        see(restraint, marked, text)
        see(restraint, "x = \ny¦\n")


def test_a_text_that_was_left_twice_is_not_shown_there_again(restraint: Restraint) -> None:
    ignore(restraint, 1)
    assert allows(restraint, "x = ¦\ny\n", "foo(1)")
    ignore(restraint, 1)
    assert not allows(restraint, "x = ¦\ny\n", "foo(1)")
    assert not allows(restraint, "x = f¦\ny\n", "oo(1)"), "nor its rest"


def test_other_texts_and_other_places_stay_free(restraint: Restraint) -> None:
    ignore(restraint, 2)
    assert allows(restraint, "x = ¦\ny\n", "bar(1)")
    assert allows(restraint, "z = ¦\ny\n", "foo(1)")
    assert allows(restraint, "a\nx = ¦\ny\n", "foo(1)")


def test_a_text_that_was_typed_past_twice_is_not_shown_there_again(restraint: Restraint) -> None:
    for _ in range(2):
        assert allows(restraint, "x = ¦\n", "foo(1)")
        for now in ("x = ¦\n", "x = b¦\n", "x = ba¦\n"):
            see(restraint, now, "foo(1)" if now == "x = ¦\n" else "")
        see(restraint, "¦\n")
    assert not allows(restraint, "x = ¦\n", "foo(1)")


def test_who_deletes_more_than_what_they_typed_past_a_text_ignores_it(restraint: Restraint) -> None:
    for _ in range(2):
        see(restraint, "x = ¦\n", "foo(1)")
        see(restraint, "x = b¦\n")
        see(restraint, "x¦\n")
    assert not allows(restraint, "x = ¦\n", "foo(1)")


def test_a_deletion_right_before_a_text_does_not_ignore_it(restraint: Restraint) -> None:
    for _ in range(3):
        see(restraint, "x = ¦\n", "foo(1)")
        see(restraint, "x¦\n")
    assert allows(restraint, "x = ¦\n", "foo(1)")


def test_after_a_text_was_taken_the_next_one_is_another(restraint: Restraint) -> None:
    see(restraint, "¦\n\ny\n", "if a:\n    b()")
    for _ in range(2):
        see(restraint, "if a:\n    b()¦\n\ny\n", ".c()")
        see(restraint, "if a:\n    b()\n¦\ny\n")
    assert not allows(restraint, "if a:\n    b()¦\n\ny\n", ".c()")


def test_a_text_that_was_taken_is_not_ignored(restraint: Restraint) -> None:
    for _ in range(3):
        see(restraint, "x = ¦\n", "foo(1)")
        see(restraint, "x = foo(1)¦\n")
        see(restraint, "¦x = foo(1)\n")
    assert allows(restraint, "x = ¦\n", "foo(1)")


def test_only_the_last_ignored_texts_are_remembered(restraint: Restraint) -> None:
    ignore(restraint, 2)
    for number in range(100):
        ignore(restraint, 1, f"x{number} = ¦\ny\n")
    assert allows(restraint, "x = ¦\ny\n", "foo(1)")


def test_formatting_is_not_shown(restraint: Restraint) -> None:
    assert not allows(restraint, "x = (a¦\n)\n", ",\n")


def test_the_last_comma_of_a_suggestion_on_the_screen_stays(restraint: Restraint) -> None:
    snapshot, offset = at_cursor("items = [name¦\n]\n")

    assert restraint.refusal(snapshot, offset, ",") == "formats"
    assert restraint.refusal_of_rest(snapshot, offset, ",") is None


CODE = "import os\n\ndef f(a):\n    b = a\n    ¦\n    return b\n"


def holds(dismissed_at: str, now: str) -> bool:
    dismissals = Dismissals()
    dismissals.note(*at_cursor(dismissed_at), [])
    return dismissals.holds(*at_cursor(now))


def test_a_dismissal_holds_at_the_same_place() -> None:
    assert holds(CODE, CODE)


def test_a_dismissal_holds_when_lines_are_added_further_up() -> None:
    assert holds(CODE, "import sys\n" + CODE)


@pytest.mark.parametrize(
    "now",
    [
        CODE.replace("    ¦", "    c¦"),
        CODE.replace("    ¦", "    ¦ + 1"),
        CODE.replace("b = a", "b = 2 * a"),
        CODE.replace("    ¦", "  ¦  "),
    ],
)
def test_a_dismissal_ends_when_the_text_there_changes(now: str) -> None:
    assert not holds(CODE, now)


def test_another_empty_line_is_another_place() -> None:
    assert not holds("a = 1\n¦\nb = 2\n\n", "a = 1\n\nb = 2\n¦\n")


def test_only_the_newest_places_are_kept() -> None:
    dismissals = Dismissals()
    for number in range(1000):
        dismissals.note(*at_cursor(f"{number}¦"), [])

    assert dismissals.holds(*at_cursor("999¦"))
    assert not dismissals.holds(*at_cursor("1¦"))


@pytest.mark.parametrize(
    ("now", "text", "refused"),
    [
        ("b = 1\nx = s¦ + 1\n", "elf.a", True),
        ("b = 1\nx = self¦ + 1\n", ".a", True),
        ("b = 1\nx = s¦ + 1\n", "elf.b", False),
        ("b = 1\nx = s¦ + 1\n", "elf.a()", False),
        ("b = 1\nx = r¦ + 1\n", "elf.a", False),
        ("b = 1\nx = s¦ + 2\n", "elf.a", False),
        ("b = 2\nx = s¦ + 1\n", "elf.a", False),
    ],
)
def test_the_rest_of_a_dismissed_text_is_refused_after_typing_along(now: str, text: str, refused: bool) -> None:
    dismissals = Dismissals()
    dismissals.note(*at_cursor("b = 1\nx = ¦ + 1\n"), ["self.a", "other"])
    assert dismissals.refusal(*at_cursor(now), text) == ("dismissed" if refused else None)


def test_the_rest_of_a_dismissed_text_stays_hidden_in_a_line_of_a_million_characters() -> None:
    dismissals, long = Dismissals(), "a + " * 250_000
    dismissals.note(*at_cursor(f"{long}¦\n"), ["first(second)"])
    assert dismissals.refusal(*at_cursor(f"{long}fir¦\n"), "st(second)") == "dismissed"
    assert dismissals.refusal(*at_cursor(f"{long}fir¦\n"), "st(third)") is None


URI = "file:///project/a.py"
UTF32 = types.PositionEncodingKind.Utf32


def edited(*versions: str) -> tuple[Snapshot, int]:
    """Return the last of these texts, each made from the one before by one change, and its marked cursor."""
    documents = Documents()
    *_, last = versions
    texts = [version.replace(CURSOR, "") for version in versions]
    documents.open(URI, "python", 0, texts[0])
    snapshot = documents.snapshot(URI)
    for old, new in pairwise(texts):
        assert snapshot is not None
        start = next((index for index in range(len(new)) if not old.startswith(new[: index + 1])), len(new))
        end = len(old)
        while (
            end > start and len(new) - (len(old) - end) > start and old[end - 1] == new[end - 1 + len(new) - len(old)]
        ):
            end -= 1
        replaced = types.Range(position_in(snapshot.source, start, UTF32), position_in(snapshot.source, end, UTF32))
        typed = new[start : len(new) - (len(old) - end)]
        documents.change(URI, 1, [types.TextDocumentContentChangePartial(replaced, typed)], UTF32)
        snapshot = documents.snapshot(URI)
    assert snapshot is not None
    assert snapshot.text == texts[-1]
    return snapshot, last.index(CURSOR)


@pytest.mark.parametrize("text", ["", " ", "\n\n", ",", ";", " ;\n", ",\n    "])
def test_white_space_commas_and_semicolons_are_formatting(text: str) -> None:
    assert only_formats(text)


@pytest.mark.parametrize("text", [")", "}", ", b", "; a()", "\n    return"])
def test_everything_else_is_not(text: str) -> None:
    assert not only_formats(text)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("connect(host)", True),
        (" connect(host)  ", True),
        ("connect(host).close()", True),
        ("connect(", True),
        ("connect", True),
        ("conn", False),
        ("connector(host)", False),
        ("other(host)", False),
    ],
)
def test_right_after_a_deletion_neither_the_deleted_text_nor_its_start_is_shown(text: str, hidden: bool) -> None:
    assert gives_back(*edited("x = connect(host)\n", "x = ¦\n"), text) == hidden


def test_a_longer_word_than_the_deleted_one_is_another_word() -> None:
    here = edited("x = connect\n", "x = ¦\n")
    assert gives_back(*here, "connect")
    assert gives_back(*here, "connect.now()")
    assert not gives_back(*here, "connection")


def test_after_another_character_everything_is_free() -> None:
    assert not gives_back(*edited("x = connect\n", "x = \n", "x = b¦\n"), "uild()")


def test_after_the_first_character_of_the_deleted_text_its_rest_is_still_hidden() -> None:
    here = edited("x = connect(host)\n", "x = \n", "x = c¦\n")
    assert gives_back(*here, "onnect(host)")
    assert not gives_back(*here, "onnect("), "the user may want another argument"


def test_who_types_two_characters_of_it_again_wants_it_back() -> None:
    assert not gives_back(*edited("x = connect\n", "x = \n", "x = c\n", "x = co¦\n"), "nnect")


def test_a_deleted_character_was_a_typo() -> None:
    assert not gives_back(*edited("x = f\n", "x = ¦\n"), "f(1)")
    assert not gives_back(*edited("x = (\n", "x = ¦\n"), "(a + b)")


@pytest.mark.parametrize("elsewhere", ["b\na\n{}z = 1\n", "ab\n{}z = 1\n", "\n{}z = 1\n", "a\n{}z = 123\n"])
def test_after_an_edit_elsewhere_deleted_lines_are_still_hidden(elsewhere: str) -> None:
    lines = "x = foo(1)\ny = bar(x)\n"
    here = edited(f"a\n{lines}z = 1\n", "a\nz = 1\n", elsewhere.format(""), elsewhere.format("¦"))
    assert gives_back(*here, "x = foo(1)")
    assert gives_back(*here, "x = foo(1)\ny = bar(x)")
    assert not gives_back(*here, "other()")


def test_lines_that_were_deleted_one_by_one_are_all_hidden() -> None:
    here = edited("a(1)\nb(2)\nc(3)\nd\n", "a(1)\nb(2)\nd\n", "b(2)\nd\n", "b(2)\n¦d\n")
    assert gives_back(*here, "c(3)")
    assert gives_back(here[0], 0, "a(1)")


def test_after_an_edit_elsewhere_a_deleted_part_of_a_line_is_free() -> None:
    assert not gives_back(*edited("a\nx = foo\n", "a\nx = \n", "ab\nx = ¦\n"), "foo")


def test_a_deleted_line_is_not_shown_on_a_new_line_there() -> None:
    here = edited("a = 1\n    foo(a)\n", "a = 1\n", "a = 1\n    ¦\n")
    assert gives_back(*here, "foo(a)")
    assert not gives_back(*here, "bar(a)")


def test_the_first_of_several_deleted_lines_is_not_shown_alone() -> None:
    assert gives_back(*edited("a(1)\nb(2)\nc\n", "¦\nc\n"), "a(1)")
    assert gives_back(*edited("a(1)\nb(2)\nc\n", "¦\nc\n"), "a(1)\nd(3)")


def test_a_bracket_that_the_editor_closed_does_not_hide_what_was_lost_inside() -> None:
    assert gives_back(*edited("f(host)\n", "f\n", "f(¦)\n"), "host")


def test_an_accepted_suggestion_that_was_undone_is_not_shown_again() -> None:
    assert gives_back(*edited("x = \n", "x = self.a\n", "x = ¦\n"), "self.a")
