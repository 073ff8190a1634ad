"""The history of suggestions: typing along one gives its rest without the engine, and a dismissed one stays hidden."""

import pytest
from marked import CURSOR, at_cursor, opened

from lsp_server.suggest.history import Dismissals, Reuse


def rests_after(shown_at: str, suggestions: list[str], now: str, language: str = "python") -> list[str]:
    reuse = Reuse()
    reuse.remember(*at_cursor(shown_at, language), suggestions)
    return reuse.follow(*at_cursor(now, language))


def test_the_same_place_gives_the_same_again() -> None:
    assert rests_after("x = ¦\n", ["foo(1)"], "x = ¦\n") == ["foo(1)"]


def test_typed_characters_are_removed() -> None:
    assert rests_after("x = ¦\n", ["foo(1)"], "x = fo¦\n") == ["o(1)"]


def test_only_suggestions_that_the_user_followed_remain() -> None:
    assert rests_after("x = ¦\n", ["foo", "far", "bar"], "x = f¦\n") == ["oo", "ar"]


def test_suggestions_that_become_equal_are_one() -> None:
    assert rests_after("x = ¦\n", ["foo", "foo"], "x = f¦\n") == ["oo"]


def test_going_back_along_the_typed_text_keeps_the_suggestion() -> None:
    reuse = Reuse()
    reuse.remember(*at_cursor("x = ¦\n"), ["foo(1)"])
    assert reuse.follow(*at_cursor("x = foo¦\n")) == ["(1)"]
    assert reuse.follow(*at_cursor("x = f¦\n")) == ["oo(1)"]


def test_several_lines_are_followed_over_a_line_end() -> None:
    assert rests_after("¦\r\n", ["if a:\r\n    b"], "if a:\r\n    ¦\r\n") == ["b"]


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("another character", "x = g¦\n"),
        ("all of it typed", "x = foo(1)¦\n"),
        ("the cursor before the place", "x =¦\n"),
        ("another place", "¦x = \n"),
        ("a change before", "y = f¦\n"),
        ("a change after the cursor", "x = f¦\nz\n"),
        ("characters after the cursor that nobody typed", "x = f¦oo\n"),
    ],
    ids=lambda value: value if " " in value and CURSOR not in value else "",
)
def test_nothing_remains_after(name: str, now: str) -> None:
    assert rests_after("x = ¦\n", ["foo(1)"], now) == []


@pytest.mark.parametrize(
    ("shown_at", "suggestion", "now", "rests"),
    [
        ("x = ¦\n", "foo(a, b)", "x = foo(¦)\n", ["a, b"]),
        ("x = ¦\n", "foo(a, b).c", "x = foo(a¦)\n", [", b"]),
        ("x = ¦\n", "foo([a], b)", "x = foo([¦])\n", ["a"]),
        ("x = ¦\n", "foo([a], b)", "x = foo([a]¦)\n", [", b"]),
        ("x = ¦\n", 'foo("a)b", c)', 'x = foo("¦")\n', ["a)b"]),
        ("x = ¦\n", "foo(a)", "x = foo(¦]\n", []),
        ("x = foo(¦)\n", "bar(a)", "x = foo(bar(¦))\n", ["a"]),
        ("x = ¦\n", "foo()", "x = foo(¦)\n", []),
        ("x = ¦\n", "foo(a", "x = foo(¦)\n", ["a"]),
        ("x = ¦\n", "foo(", "x = foo(¦)\n", []),
        ("x = ¦\n", 'foo("a', 'x = foo("¦")\n', ["a"]),
        ("x = ¦\n", "foo(a]", "x = foo(¦)\n", []),
    ],
)
def test_a_bracket_that_the_editor_closed_ends_the_suggestion(
    shown_at: str, suggestion: str, now: str, rests: list[str]
) -> None:
    assert rests_after(shown_at, [suggestion], now) == rests


def test_a_brace_that_return_put_on_its_own_line_ends_the_suggestion_too() -> None:
    now = "if (a) {\n  ¦\n}\n"
    assert rests_after("if (a) ¦\n", ["{\n  b();\n}"], now, "javascript") == ["b();"]


def test_documents_do_not_share_suggestions() -> None:
    reuse = Reuse()
    reuse.remember(opened("x", path="/a.py"), 1, ["yz"])
    assert reuse.follow(opened("x", path="/b.py"), 1) == []
    assert reuse.follow(opened("x", path="/a.py"), 1) == ["yz"]


def test_a_forgotten_document_has_no_suggestions() -> None:
    reuse = Reuse()
    snapshot, offset = at_cursor("x = ¦\n")
    reuse.remember(snapshot, offset, ["foo"])
    reuse.forget(snapshot.uri)
    assert reuse.follow(snapshot, offset) == []


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
