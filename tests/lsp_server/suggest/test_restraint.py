"""Restraint: wrong starts raise the price on their line, and a text that was ignored twice is not shown there again."""

import pytest
from support.marked import at_cursor

from engine.protocol.price import FREE, Price
from lsp_server.suggest.restraint import Restraint

PRICE = Price(wrong=5.0, least=0.64)
RAISED, TWICE = 10.0, 20.0


@pytest.fixture
def restraint() -> Restraint:
    return Restraint(doubt=2.0, most_wrong=2)


def see(restraint: Restraint, marked: str, text: str = "") -> float:
    """Show `text` at the marked cursor, "" for nothing, and return what a wrong text costs there."""
    snapshot, offset = at_cursor(marked)
    restraint.observe(snapshot, offset)
    price = restraint.price(snapshot.uri, PRICE)
    if text and not restraint.allows(snapshot, offset, text):
        text = ""
    restraint.showed(snapshot, offset, text)
    return price.wrong


def allows(restraint: Restraint, marked: str, text: str) -> bool:
    snapshot, offset = at_cursor(marked)
    restraint.observe(snapshot, offset)
    return restraint.allows(snapshot, offset, text)


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
    assert restraint.price(at_cursor("¦")[0].uri, PRICE).least == pytest.approx(0.8)


@pytest.mark.parametrize("price", [FREE, Price(least=1.0)])
def test_a_gate_that_shows_all_or_nothing_stays(restraint: Restraint, price: Price) -> None:
    see(restraint, "x = ¦\n", "foo(1)")
    see(restraint, "x = b¦\n")
    raised = restraint.price(at_cursor("¦")[0].uri, price)
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


def test_a_closed_document_is_forgotten(restraint: Restraint) -> None:
    ignore(restraint, 2)
    restraint.forget(at_cursor("¦")[0].uri)
    assert allows(restraint, "x = ¦\ny\n", "foo(1)")


def test_formatting_is_not_shown(restraint: Restraint) -> None:
    assert not allows(restraint, "x = (a¦\n)\n", ",\n")


def test_the_last_comma_of_a_suggestion_on_the_screen_stays(restraint: Restraint) -> None:
    snapshot, offset = at_cursor("items = [name¦\n]\n")

    assert not restraint.allows(snapshot, offset, ",")
    assert restraint.keeps(snapshot, offset, ",")
