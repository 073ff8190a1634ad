"""What a model reads besides the hole's own file: which parts of which other open files."""

import time

from engine.protocol.messages import Snippet
from lsp_server.documents.store import Documents, OpenDocument
from lsp_server.hole.related_files import EditedLines, OtherFile, RelatedFiles, snippets

FULL_OF_LINES = "".join(f"line_{number} = {number}\n" for number in range(2000))


def test_edited_lines_move_with_the_lines_above_them() -> None:
    recent = EditedLines()
    recent.note("a", 100, 0, 0)
    recent.note("a", 104, 0, 1)
    assert recent.lines("a") == [105], "edits close together are one"
    recent.note("a", 10, 0, 5)
    assert recent.lines("a") == [15, 110]
    recent.note("a", 0, 8, 0)
    assert recent.lines("a") == [0, 102], "the deletion is an edit, and the one close to it is part of it"
    recent.see("b")
    recent.note("c", 1, 0, 0)
    recent.see("a")
    assert recent.newest_first() == ["a", "c", "b"]
    recent.forget("a")
    assert recent.lines("a") == []
    assert recent.newest_first() == ["c", "b"]


def test_only_the_latest_edited_lines_of_a_document_are_kept() -> None:
    recent = EditedLines()
    for line in range(0, 2000, 100):
        recent.note("a", line, 0, 0)

    assert recent.lines("a") == [1900, 1800, 1700, 1600, 1500, 1400]


def test_named_files_come_first_then_those_of_the_same_language_then_the_latest() -> None:
    latest = OtherFile("notes.md", "markdown", "# Notes\n", [])
    same_language = OtherFile("pkg/other.py", "python", "other = 1\n", [])
    earlier = OtherFile("pkg/more.py", "python", "more = 1\n", [])
    named = OtherFile("pkg/shapes/__init__.py", "python", "class Circle: ...\n", [])

    chosen = snippets("from pkg.shapes import Circle\n", "python", [latest, same_language, earlier, named], 1000)

    assert [each.path for each in chosen] == [named.path, same_language.path, earlier.path, latest.path]
    assert chosen[0] == Snippet(named.path, named.text)


def test_a_long_file_is_sent_as_its_head_and_its_edited_lines() -> None:
    (snippet,) = snippets("", "python", [OtherFile("long.py", "python", FULL_OF_LINES, [1000, 500])], 2000)

    assert len(snippet.text) <= 2000
    for line in ("line_1000 = 1000\n", "line_1015 = 1015\n\nline", "line_500 = 500\n", "line_0 = 0\nline_1 = 1\n"):
        assert line in snippet.text or line.removesuffix("\nline") in snippet.text
    assert "line_700 " not in snippet.text
    assert snippet.text.index("line_0 ") < snippet.text.index("line_500 ") < snippet.text.index("line_1000 ")


def test_edited_lines_are_the_editor_s_below_form_feeds_too() -> None:
    text = "\x0c\n" * 40 + FULL_OF_LINES

    (snippet,) = snippets("", "python", [OtherFile("long.py", "python", text, [1040])], 2000)

    assert "line_1000 = 1000\n" in snippet.text


def test_files_that_do_not_fit_are_left_out() -> None:
    others = [OtherFile("long.py", "python", FULL_OF_LINES, [1000]), OtherFile("short.py", "python", "short = 1\n", [])]

    assert [each.path for each in snippets("", "python", others, 100)] == ["short.py"]
    assert snippets("", "python", others, 0) == []


def test_snippets_stay_the_same_until_another_document_changes() -> None:
    documents = Documents()
    related = RelatedFiles(documents)
    for name in ("a", "b", "secret"):
        documents.open(f"file:///{name}.py", "python", 0, f"{name} = 1\n")
        related.recent.see(f"file:///{name}.py")

    def around() -> list[Snippet]:
        snapshot = documents.snapshot("file:///a.py")
        assert snapshot is not None
        return related.around(snapshot, 1000, path_unless_secret)

    first = around()
    assert first == [Snippet("/b.py", "b = 1\n")]
    documents.open("file:///a.py", "python", 1, "import secret, b\n")
    assert around() is first, "the engine would have to read everything again"
    documents.open("file:///b.py", "python", 1, "b = 2\n")
    assert around() == [Snippet("/b.py", "b = 2\n")]
    documents.close("file:///b.py")
    assert around() == []


def test_what_was_chosen_for_files_that_nobody_opened_is_not_kept_for_ever() -> None:
    documents, closed = Documents(), Documents()
    related = RelatedFiles(documents)
    for number in range(200):
        closed.open(f"file:///{number}.py", "python", 0, "x = 1\n")
        snapshot = closed.snapshot(f"file:///{number}.py")
        assert snapshot is not None
        related.around(snapshot, 1000, path_unless_secret)

    assert len(related._selections) < 100


def path_unless_secret(other: OpenDocument) -> str | None:
    return None if "secret" in other.path else other.path


def test_a_line_with_a_credential_stays_out_of_the_context() -> None:
    documents = Documents()
    documents.open("file:///a.py", "python", 1, "x = 1\n")
    documents.open("file:///b.py", "python", 1, 'above = 1\npassword = "c0rrect' + 'horse"\nbelow = 2\n')
    related = RelatedFiles(documents)
    related.recent.see("file:///b.py")
    snapshot = documents.snapshot("file:///a.py")
    assert snapshot is not None
    assert related.around(snapshot, 1000, lambda other: other.path) == [Snippet("/b.py", "above = 1\n\nbelow = 2\n")]


def test_of_many_long_files_only_those_that_changed_are_read_again() -> None:
    documents = Documents()
    for number in range(9):
        documents.open(f"file:///{number}.py", "python", 0, FULL_OF_LINES * 5)
    documents.open("file:///small.py", "python", 0, "small = 1\n")
    related = RelatedFiles(documents)

    def seconds() -> float:
        snapshot = documents.snapshot("file:///0.py")
        assert snapshot is not None
        begun = time.thread_time()
        related.around(snapshot, 48_000, path_unless_secret)
        return time.thread_time() - begun

    first = seconds()
    documents.open("file:///small.py", "python", 1, "small = 2\n")
    assert seconds() < first / 2
