"""Typing along a suggestion gives its rest without the engine, and deleting that again brings it back."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.marked import CURSOR, at_cursor

from lsp_server.documents.store import Snapshot
from lsp_server.suggest.pipeline import Presented
from lsp_server.suggest.reuse import Reuse, longer


def remember(reuse: Reuse, snapshot: Snapshot, offset: int, *texts: str) -> None:
    reuse.remember(snapshot, offset, [Presented(text, is_start=True, confidence=0.9) for text in texts], lambda: 1)


def follow(reuse: Reuse, snapshot: Snapshot, offset: int) -> list[str]:
    rest = reuse.follow(snapshot, offset)
    return rest.texts if rest is not None else []


def rests_after(shown_at: str, suggestions: list[str], now: str, language: str = "python") -> list[str]:
    reuse = Reuse()
    remember(reuse, *at_cursor(shown_at, language), *suggestions)
    return follow(reuse, *at_cursor(now, language))


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
    remember(reuse, *at_cursor("x = ¦\n"), "foo(1)")
    assert follow(reuse, *at_cursor("x = foo¦\n")) == ["(1)"]
    assert follow(reuse, *at_cursor("x = f¦\n")) == ["oo(1)"]


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


def test_after_clearing_nothing_is_followed() -> None:
    reuse = Reuse()
    snapshot, offset = at_cursor("x = ¦\n")
    remember(reuse, snapshot, offset, "foo")
    reuse.clear()
    assert follow(reuse, snapshot, offset) == []


def test_what_was_typed_past_and_deleted_again_brings_the_suggestion_back() -> None:
    reuse = Reuse()
    remember(reuse, *at_cursor("x = ¦\n"), "foo(1)")
    remember(reuse, *at_cursor("x = g¦\n"), "et(2)")
    assert follow(reuse, *at_cursor("x = g¦\n")) == ["et(2)"]
    assert follow(reuse, *at_cursor("x = ¦\n")) == ["foo(1)"]


def test_a_longer_text_is_the_same_offer_from_its_first_character_on() -> None:
    reuse, numbers = Reuse(), iter(range(9))
    first = reuse.remember(*at_cursor("¦\n"), [Presented("foo", True, 0.9)], lambda: next(numbers))
    second = reuse.remember(*at_cursor("f¦\n"), [Presented("oo(1)", False, 0.9)], lambda: next(numbers))
    other = reuse.remember(*at_cursor("b¦\n"), [Presented("ar", False, 0.9)], lambda: next(numbers))
    assert (first.number, second.number, other.number) == (0, 0, 1)
    assert second.offset == 0
    assert follow(reuse, *at_cursor("¦\n")) == ["foo(1)"]


def test_only_a_start_along_which_the_user_typed_may_grow() -> None:
    reuse = Reuse()
    offer = reuse.remember(*at_cursor("¦\n"), [Presented("foo", True, 0.9)], lambda: 1)
    assert offer.may_grow("oo", *at_cursor("f¦\n"))
    assert not offer.may_grow("foo", *at_cursor("¦\n")), "nothing was typed"
    whole = reuse.remember(*at_cursor("f¦\n"), [Presented("oo(1)", False, 0.9)], lambda: 1)
    assert not whole.may_grow("o(1)", *at_cursor("fo¦\n")), "a whole line cannot grow"


def test_where_the_editor_closes_a_bracket_the_suggestion_is_back_without_asking() -> None:
    offer = Reuse().remember(*at_cursor("¦\n"), [Presented("foo(bar", True, 0.9)], lambda: 1)
    assert offer.rests(*at_cursor("foo(¦)\n")) == ["bar"]
    assert not offer.may_grow("bar", *at_cursor("foo(¦)\n"))
    assert offer.may_grow("ar", *at_cursor("foo(b¦)\n"))
    assert offer.may_grow("bar", *at_cursor("foo(¦\n")), "nothing was closed"


class _Screen:
    """A document that is typed at its end, and a model that may answer anything at each key."""

    def __init__(self) -> None:
        self.reuse, self.typed = Reuse(), ""

    def show(self, answer: str) -> str:
        """Return what is on the screen, as requests/suggestions.py finds it."""
        here = at_cursor(f"{self.typed}¦")
        rest = self.reuse.follow(*here)
        if rest is not None and not rest.offer.may_grow(rest.texts[0], *here):
            return rest.texts[0]
        presented = [Presented(answer, True, 0.9)] if answer else []
        if rest is not None:
            presented = longer(presented, rest)
        if not presented:
            return ""
        self.reuse.remember(*here, presented, lambda: 1)
        return presented[0].text


_ANSWERS = st.text("ab \n", max_size=12)
_KEYS = ["along", "past", "delete"]
_ACCEPTS = {"word": re.compile(r"\s*\w*"), "line": re.compile(r"\n?[^\n]*"), "whole": re.compile(r"(?s).*")}
"""What an editor takes of a suggestion: its next word, the rest of the line or else the next line, or all of it."""


def press(screen: _Screen, key: str, before: str) -> str:
    """Type what `key` says where `before` is shown. Return what was taken or typed of it, "" if nothing was."""
    if key == "delete":
        screen.typed = screen.typed[:-1]
        return ""
    if key in _ACCEPTS or (key == "along" and before):
        accepted = _ACCEPTS[key].match(before) if key in _ACCEPTS else None
        taken = before[0] if key == "along" else accepted[0] if accepted else ""
        screen.typed += taken
        return taken
    screen.typed += "b" if before.startswith("a") else "a"
    return ""


@example("ab a\nb", [("word", ""), ("word", ""), ("line", ""), ("delete", ""), ("delete", "")])
@given(_ANSWERS, st.lists(st.tuples(st.sampled_from([*_KEYS, *_ACCEPTS]), _ANSWERS), max_size=24))
def test_what_the_user_types_along_or_takes_in_parts_never_vanishes_or_changes(
    first: str, keys: list[tuple[str, str]]
) -> None:
    screen = _Screen()
    shown = {"": screen.show(first)}
    for key, answer in keys:
        start, before = screen.typed, shown[screen.typed]
        taken = press(screen, key, before)
        if key != "delete":  # What was shown further on may belong to another answer.
            shown = {typed: text for typed, text in shown.items() if len(typed) <= len(start)}
        now = screen.show(answer)
        if taken:
            assert now.startswith(before[len(taken) :]), "it may only grow"
        if key == "delete" and screen.typed in shown and len(shown) < 8:
            assert now.startswith(shown[screen.typed]), "what was there is back, or more of it"
        shown[screen.typed] = now
