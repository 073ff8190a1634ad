"""What the user dismissed or ignored stays hidden until the text around it changes."""

import pytest
from support.marked import at_cursor

from lsp_server.suggest.restraint import Dismissals

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


def test_another_document_is_another_place() -> None:
    dismissals = Dismissals()
    snapshot, offset = at_cursor(CODE)
    dismissals.note(snapshot, offset, [])
    dismissals.forget(snapshot.uri)

    assert not dismissals.holds(snapshot, offset)


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
    assert dismissals.refuse(*at_cursor(now), text) == refused


def test_the_rest_of_a_dismissed_text_stays_hidden_in_a_line_of_a_million_characters() -> None:
    dismissals, long = Dismissals(), "a + " * 250_000
    dismissals.note(*at_cursor(f"{long}¦\n"), ["first(second)"])
    assert dismissals.refuse(*at_cursor(f"{long}fir¦\n"), "st(second)")
    assert not dismissals.refuse(*at_cursor(f"{long}fir¦\n"), "st(third)")
