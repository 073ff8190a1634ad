"""Texts that are not shown unasked: what the user just deleted, and what only changes the formatting."""

from itertools import pairwise

import pytest
from lsprotocol import types
from support.marked import CURSOR

from lsp_server.documents.store import Documents, Snapshot, position_in
from lsp_server.suggest.restraint import gives_back, only_formats

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


def test_after_an_edit_elsewhere_the_deleted_text_is_free() -> None:
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
