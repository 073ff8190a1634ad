"""What the user deleted last in a document, and what would have to be inserted to undo that."""

import pytest
from lsprotocol import types

from lsp_server.documents.store import Documents, position_in

URI = "file:///project/a.py"
UTF32 = types.PositionEncodingKind.Utf32


class Typist:
    """Edits one document with its cursor, as an editor does."""

    def __init__(self, text: str) -> None:
        self.documents = Documents()
        self.documents.open(URI, "python", 0, text)

    def replace(self, start: int, end: int, new: str) -> None:
        snapshot = self.documents.snapshot(URI)
        assert snapshot is not None
        replaced = types.Range(position_in(snapshot.source, start, UTF32), position_in(snapshot.source, end, UTF32))
        change = types.TextDocumentContentChangePartial(replaced, new)
        self.documents.change(URI, snapshot.version + 1, [change], UTF32)

    def backspace(self, offset: int, count: int) -> None:
        for place in range(offset, offset - count, -1):
            self.replace(place - 1, place, "")

    def lost(self, offset: int) -> list[str]:
        snapshot = self.documents.snapshot(URI)
        assert snapshot is not None
        return [lost.text for lost in snapshot.deletions.lost_at(snapshot.text, offset)]


def test_nothing_is_lost_in_a_new_document() -> None:
    assert Typist("x = foo\n").lost(4) == []


def test_backspaces_in_a_row_are_one_deletion() -> None:
    typist = Typist("x = foo\n")
    typist.backspace(7, 3)
    assert typist.lost(4) == ["foo"]
    assert typist.lost(2) == []


def test_forward_deletions_in_a_row_are_one_deletion() -> None:
    typist = Typist("x = foo\n")
    for _ in range(3):
        typist.replace(4, 5, "")
    assert typist.lost(4) == ["foo"]


def test_after_typing_a_start_of_it_again_the_rest_is_lost() -> None:
    typist = Typist("x = foo\n")
    typist.backspace(7, 3)
    typist.replace(4, 4, "f")
    assert typist.lost(5) == ["oo"]


@pytest.mark.parametrize(("start", "new"), [(4, "g"), (0, "y"), (5, "\n")])
def test_another_text_anywhere_ends_it_and_deleting_that_brings_it_back(start: int, new: str) -> None:
    typist = Typist("x = foo\n")
    typist.backspace(7, 3)
    typist.replace(start, start, new)
    assert typist.lost(start + len(new)) == []
    typist.replace(start, start + len(new), "")
    assert "foo" in typist.lost(4)


def test_a_replaced_text_is_lost_where_the_new_one_begins_like_it() -> None:
    typist = Typist("x = foo\n")
    typist.replace(4, 7, "fa")
    assert typist.lost(6) == []
    typist.backspace(6, 1)
    assert "oo" in typist.lost(5)


def test_deletions_at_two_places_are_two() -> None:
    typist = Typist("foo\nbar\n")
    typist.backspace(7, 3)
    typist.backspace(3, 3)
    assert typist.lost(0) == ["foo"]
    typist.replace(0, 0, "foo")
    assert typist.lost(4) == ["bar"]


def test_only_the_last_deletions_are_known() -> None:
    typist = Typist("x = \n")
    for number in range(10):
        typist.replace(4, 4, f"word{number}")
        typist.backspace(9, 5)
    assert typist.lost(4) == ["word6", "word7", "word8", "word9"]


@pytest.mark.parametrize(("new", "lost"), [("x = \ny\n", ["foo"]), ("x = foo + 1\ny\n", []), ("", ["x = foo\ny\n"])])
def test_a_whole_new_text_that_is_shorter_is_a_deletion(new: str, lost: list[str]) -> None:
    documents = Documents()
    documents.open(URI, "python", 0, "x = foo\ny\n")
    documents.change(URI, 1, [types.TextDocumentContentChangeWholeDocument(new)], UTF32)
    snapshot = documents.snapshot(URI)
    assert snapshot is not None
    assert [each.text for each in snapshot.deletions.lost_at(new, min(4, len(new)))] == lost
