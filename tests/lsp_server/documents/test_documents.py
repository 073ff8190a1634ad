"""Documents follow the editor's changes exactly, also by halves of a character, and parse only what changed."""

import pytest
import tree_sitter
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.documents.source import Lines
from lsp_server.documents.store import (
    Documents,
    Snapshot,
    counts_newlines_only,
    offset_in,
    path_of,
    position_in,
    with_halves_joined,
)

URI = "file:///project/a.py"
UTF8, UTF16, UTF32 = types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16, types.PositionEncodingKind.Utf32
ENCODINGS = [UTF8, UTF16, UTF32]

PIECES = [
    "x",
    "é",
    "🙂",
    "\n",
    "\r\n",
    "\r",
    "    ",
    "def f(a):",
    "return ",
    '"',
    "(",
    ")",
    "# note",
    "foo(1)\n",
    "\ufeff",
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def opened(text: str, uri: str = URI, language_id: str = "python", editor: str = "") -> Documents:
    documents = Documents()
    documents.newline_only = counts_newlines_only(editor)
    documents.open(uri, language_id, 0, text)
    return documents


def current(documents: Documents, uri: str = URI) -> Snapshot:
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def partial(start: types.Position, end: types.Position, text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(start, end), text)


def outline(node: tree_sitter.Node) -> list[tuple[str, int, int, tuple[int, ...], tuple[int, ...]]]:
    rows = [(node.type, node.start_byte, node.end_byte, tuple(node.start_point), tuple(node.end_point))]
    for child in node.children:
        rows += outline(child)
    return rows


@pytest.mark.parametrize("editor", ["Visual Studio Code", "Neovim"])
@given(
    texts, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), texts), max_size=5), st.sampled_from(ENCODINGS)
)
@settings(max_examples=100)
def test_random_edits_give_the_same_text_as_naive_replacing(
    editor: str, text: str, edits: list[tuple[int, int, str]], encoding: types.PositionEncodingKind
) -> None:
    documents = opened(text, editor=editor)
    for version, (first, second, new) in enumerate(edits, 1):
        before = current(documents)
        start, end = sorted((min(first, len(text)), min(second, len(text))))
        # A position of LSP cannot point between "\r" and "\n", so neither may the naive edit.
        if editor != "Neovim":
            start, end = (index - (text[index - 1 : index + 1] == "\r\n") for index in (start, end))
        positions = position_in(before.source, start, encoding), position_in(before.source, end, encoding)
        documents.change(URI, version, [partial(*positions, new)], encoding)
        text = text[:start] + new + text[end:]
        after = current(documents)
        assert after.text == text
        assert after.version == version
        fresh = Lines.of(text, documents.newline_only)
        kept = after.source.lines
        assert [kept.start(line) for line in range(len(kept))] == [fresh.start(line) for line in range(len(fresh))]
        assert [kept.byte_start(line) for line in range(len(kept))] == [
            len(text[: fresh.start(line)].encode()) for line in range(len(fresh))
        ]
        for offset, char in enumerate(text):
            byte = len(text[:offset].encode())
            assert after.source.byte_at(offset) == byte
            inside = {after.source.offset_of_byte(byte + more) for more in range(len(char.encode()))}
            assert inside == {offset}


WORDS = ["x = 1\n", "def f(a):\n    return a\n", "é = '🙂'\n", "if x:\n    pass\n", "# note\n", "y = [1, 2]\n", "\n"]
programs = st.lists(st.sampled_from(WORDS), max_size=12)


@given(programs, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), programs), max_size=4))
@settings(max_examples=60)
def test_an_incremental_tree_equals_a_fresh_one(lines: list[str], edits: list[tuple[int, int, list[str]]]) -> None:
    documents = opened("".join(lines))
    for version, (line, removed, new) in enumerate(edits, 1):
        before = current(documents)
        start = len("".join(lines[:line]))
        end = start + len("".join(lines[line : line + removed]))
        lines = lines[:line] + new + lines[line + removed :]
        positions = position_in(before.source, start, UTF16), position_in(before.source, end, UTF16)
        documents.change(URI, version, [partial(*positions, "".join(new))], UTF16)
        incremental, fresh = current(documents).tree, current(opened("".join(lines))).tree
        assert incremental is not None
        assert fresh is not None
        assert outline(incremental.root_node) == outline(fresh.root_node)


@given(texts, st.integers(0, 100), st.sampled_from(ENCODINGS))
@settings(max_examples=100)
def test_every_offset_becomes_a_position_and_back(text: str, offset: int, encoding: types.PositionEncodingKind) -> None:
    snapshot = current(opened(text))
    offset = min(offset, len(text))
    offset -= text[offset - 1 : offset + 1] == "\r\n"
    assert offset_in(snapshot.source, position_in(snapshot.source, offset, encoding), encoding) == offset


@given(texts, st.integers(0, 100))
@settings(max_examples=100)
def test_every_offset_becomes_a_byte_and_back(text: str, offset: int) -> None:
    source = current(opened(text)).source
    offset = min(offset, len(text))
    assert source.byte_at(offset) == len(text[:offset].encode())
    assert source.offset_of_byte(source.byte_at(offset)) == offset


def units(text: str, encoding: types.PositionEncodingKind) -> int:
    return (
        len(text.encode({UTF8: "utf-8", UTF16: "utf-16-le", UTF32: "utf-32-le"}[encoding]))
        // {
            UTF8: 1,
            UTF16: 2,
            UTF32: 4,
        }[encoding]
    )


@given(st.text("aé🙂", max_size=12), st.integers(0, 40), st.sampled_from(ENCODINGS))
@settings(max_examples=200)
def test_a_column_means_the_character_that_contains_it(
    line: str, column: int, encoding: types.PositionEncodingKind
) -> None:
    snapshot = current(opened(f"x\n{line}\ny"))
    containing = [index for index in range(len(line) + 1) if units(line[:index], encoding) <= column][-1]
    assert offset_in(snapshot.source, types.Position(1, column), encoding) == 2 + containing


@pytest.mark.parametrize(("encoding", "column"), [(UTF8, 8), (UTF16, 6), (UTF32, 5)])
def test_columns_after_an_emoji_count_the_units_of_the_encoding(
    encoding: types.PositionEncodingKind, column: int
) -> None:
    snapshot = current(opened("a\r\ns='🙂'x"))
    assert position_in(snapshot.source, len(snapshot.text) - 1, encoding) == types.Position(1, column)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_positions_past_the_end_are_clamped(encoding: types.PositionEncodingKind) -> None:
    snapshot = current(opened("ab\r\ncd"))
    assert offset_in(snapshot.source, types.Position(0, 99), encoding) == 2
    assert offset_in(snapshot.source, types.Position(99, 0), encoding) == 6


@pytest.mark.parametrize("editor", ["Neovim", "vim-lsp", "coc.nvim", "Eglot", "emacs", "helix"])
def test_a_carriage_return_is_a_column_in_editors_whose_lines_end_with_newlines_only(editor: str) -> None:
    source = current(opened("a\rb\r\nc", editor=editor)).source
    columns = [position_in(source, offset, UTF16) for offset in range(7)]
    assert columns == [types.Position(0, column) for column in range(5)] + [
        types.Position(1, column) for column in (0, 1)
    ]
    assert [offset_in(source, column, UTF16) for column in columns] == list(range(7))
    assert offset_in(source, types.Position(0, 99), UTF16) == 4


@pytest.mark.parametrize(
    ("text", "newline"),
    [("a\nb\r\nc\r\n", "\r\n"), ("a\r\nb\nc\n", "\n"), ("a\r\nb\n", "\n"), ("a\r\n", "\r\n"), ("a", "\n")],
)
def test_a_new_line_ends_as_most_lines_do(text: str, newline: str) -> None:
    assert current(opened(text)).source.newline == newline


def test_a_position_inside_a_surrogate_pair_means_the_start_of_its_character() -> None:
    assert offset_in(current(opened("🙂x")).source, types.Position(0, 1), UTF16) == 0


def test_half_a_surrogate_pair_from_the_editor_is_kept() -> None:
    documents = opened("s = ''\n")
    documents.change(URI, 1, [partial(types.Position(0, 5), types.Position(0, 5), "\ud83d")], UTF16)
    assert current(documents).text == "s = '\ud83d'\n"


def test_a_snapshot_does_not_change_with_its_document() -> None:
    documents = opened("x = 1\n")
    before = current(documents)
    shape = str(before.tree.root_node) if before.tree else ""
    documents.change(URI, 1, [partial(types.Position(0, 0), types.Position(0, 0), "def f(")], UTF16)
    current(documents)
    assert before.text == "x = 1\n"
    assert before.version == 0
    assert before.tree is not None
    assert str(before.tree.root_node) == shape
    assert before.tree.root_node.end_byte == 6


def test_several_changes_in_one_notification_apply_in_order() -> None:
    documents = opened("ab\n")
    pos = types.Position
    documents.change(URI, 7, [partial(pos(0, 0), pos(0, 1), "x\r\ny"), partial(pos(1, 1), pos(1, 2), "z")], UTF16)
    assert current(documents).text == "x\r\nyz\n"
    assert current(documents).version == 7


def test_a_full_change_replaces_everything() -> None:
    documents = opened("ab\n")
    current(documents)
    documents.change(URI, 1, [types.TextDocumentContentChangeWholeDocument("cd")], UTF16)
    assert current(documents).text == "cd"


def test_a_closed_or_unknown_document_has_no_snapshot() -> None:
    documents = opened("ab\n")
    documents.close(URI)
    documents.change(URI, 1, [types.TextDocumentContentChangeWholeDocument("cd")], UTF16)
    assert documents.snapshot(URI) is None


def test_a_byte_order_mark_is_a_character_of_the_first_line() -> None:
    snapshot = current(opened("\ufeffx = 1\n"))
    assert offset_in(snapshot.source, types.Position(0, 1), UTF16) == 1
    assert snapshot.tree is not None
    assert not snapshot.tree.root_node.has_error


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c.py", "/a/b c.py"),
        ("file:///c%3A/x.py", "c:/x.py"),
        ("file://localhost/a/b.py", "/a/b.py"),
        ("file://LOCALHOST/a/b.py", "/a/b.py"),
        ("file://server/share/b.py", "//server/share/b.py"),
        ("untitled:Untitled-1", "Untitled-1"),
    ],
)
def test_a_uri_names_a_path(uri: str, path: str) -> None:
    assert path_of(uri) == path


def test_a_text_that_the_parser_never_finishes_is_kept_without_a_tree() -> None:
    endless = " 1foofoo[items:\\ \t{[/*];\r\n\n' = ;, [fooend = (do}items:\")/*{]"
    documents = opened("let a = 1;\n", language_id="typescriptreact")
    assert current(documents).tree is not None
    end = types.Position(1, 0)
    documents.change(URI, 1, [partial(end, end, endless)], UTF16)
    snapshot = current(documents)
    assert snapshot.tree is None
    assert snapshot.text.endswith(endless)


HIGH, LOW, WHOLE = "\ud83d", "\ude00", "\U0001f600"


@pytest.mark.parametrize(
    ("old", "start", "end", "text", "new"),
    [
        (f"a{HIGH}", 2, 2, f"{LOW}b", f"a{WHOLE}b"),
        (f"{LOW}b", 0, 0, f"a{HIGH}", f"a{WHOLE}b"),
        (f"{HIGH}x{LOW}", 1, 2, "", WHOLE),
        (f"{HIGH}x{LOW}", 1, 2, f"{LOW}{HIGH}", WHOLE * 2),
        ("ab", 1, 1, HIGH, f"a{HIGH}b"),
        ("ab", 1, 1, f"{LOW}{HIGH}", f"a{LOW}{HIGH}b"),
        ("", 0, 0, "", ""),
    ],
)
def test_two_halves_that_meet_are_one_character(old: str, start: int, end: int, text: str, new: str) -> None:
    first, last, joined = with_halves_joined(old, start, end, text)
    assert old[:first] + joined + old[last:] == new
