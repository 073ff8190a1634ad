"""A syntax tree follows its document in pieces of time, and is the one that a whole parse gives."""

import asyncio

from lsprotocol import types

from lsp_server.documents.parsing import BackgroundParse
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.languages.language import Parse
from lsp_server.languages.registry import language_for

URI = "file:///project/a.py"
UTF16 = types.PositionEncodingKind.Utf16
LONG = "".join(f"def f{number}(a, b):\n    return [a, {number}, 'é']\n\n" for number in range(3000))
AT_ONCE = 0.0


def whole_tree(text: str) -> str:
    tree = language_for("python", "").parse(text.encode(), None, 60)
    assert tree is not None
    return str(tree.root_node)


def shape(snapshot: Snapshot) -> str:
    return "no tree" if snapshot.tree is None else str(snapshot.tree.root_node)


def typed(documents: Documents, version: int, line: int, text: str) -> None:
    place = types.Position(line, 0)
    change = types.TextDocumentContentChangePartial(types.Range(place, place), text)
    documents.change(URI, version, [change], UTF16)


class LongDocument:
    """A document that takes too long to parse at once."""

    def __init__(self) -> None:
        self.unparsed: list[str] = []
        self.documents = Documents(AT_ONCE, self.unparsed.append)
        self.documents.open(URI, "python", 0, LONG)

    @property
    def snapshot(self) -> Snapshot:
        snapshot = self.documents.snapshot(URI)
        assert snapshot is not None
        return snapshot

    def parse_to_the_end(self) -> int:
        """Return how many pieces it took."""
        pieces = 1
        while self.documents.parse_on(URI, 0.001):
            pieces += 1
        return pieces


def test_two_parses_that_go_on_in_turn_give_the_trees_of_whole_ones() -> None:
    texts = [LONG, LONG.replace("def", "class").replace("[", "((")]
    parses = [language_for("python", "").begin_parse(text.encode(), None) for text in texts]
    trees = [""] * len(texts)
    while not all(trees):
        for number, parse in enumerate(parses):
            assert isinstance(parse, Parse)
            if not trees[number] and (tree := parse.run(0.001)) is not None:
                trees[number] = str(tree.root_node)
    assert trees == [whole_tree(text) for text in texts]


def test_a_long_document_has_no_tree_at_once_and_says_so() -> None:
    document = LongDocument()
    assert document.snapshot.tree is None
    assert document.snapshot.text == LONG
    assert document.unparsed == [URI]


def test_the_same_version_has_its_tree_after_some_pieces() -> None:
    document = LongDocument()
    before = document.snapshot
    assert document.parse_to_the_end() > 1
    assert shape(document.snapshot) == whole_tree(LONG)
    assert before.tree is None
    assert document.snapshot.version == before.version


def test_edits_while_a_parse_is_under_way_are_in_the_tree() -> None:
    document = LongDocument()
    assert shape(document.snapshot) == "no tree"
    text = LONG
    for version in range(1, 6):
        document.documents.parse_on(URI, 0.001)
        typed(document.documents, version, 300 * version * 3, "x = (1,\n")
        lines = text.splitlines(keepends=True)
        text = "".join([*lines[: 900 * version], "x = (1,\n", *lines[900 * version :]])
    document.parse_to_the_end()
    assert document.snapshot.text == text
    assert document.snapshot.tree is not None
    fresh = Documents()
    fresh.open(URI, "python", 0, text)
    snapshot = fresh.snapshot(URI)
    assert snapshot is not None
    assert snapshot.tree is not None
    assert document.snapshot.tree.root_node.end_byte == snapshot.tree.root_node.end_byte
    assert document.snapshot.tree.root_node.has_error


def test_a_replaced_text_has_a_tree_of_its_own() -> None:
    document = LongDocument()
    document.documents.parse_on(URI, 0.001)
    document.documents.change(URI, 1, [types.TextDocumentContentChangeWholeDocument("x = 1\n")], UTF16)
    document.parse_to_the_end()
    assert shape(document.snapshot) == whole_tree("x = 1\n")


def test_a_text_that_is_never_done_is_given_up() -> None:
    endless = "let a = 1;\n 1foofoo[items:\\ \t{[/*];\r\n\n' = ;, [fooend = (do}items:\")/*{]"
    documents = Documents(AT_ONCE)
    documents.open(URI, "typescriptreact", 0, endless)
    while documents.parse_on(URI, 0.2):
        pass
    snapshot = documents.snapshot(URI)
    assert snapshot is not None
    assert snapshot.tree is None


async def test_the_background_parses_while_the_loop_goes_on() -> None:
    parsing = BackgroundParse(lambda uri, seconds: documents.parse_on(uri, seconds))
    documents = Documents(AT_ONCE, parsing.begin)
    documents.open(URI, "python", 0, LONG)
    documents.snapshot(URI)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await parsing.wait(URI, 60)
    counting.cancel()
    snapshot = documents.snapshot(URI)
    assert snapshot is not None
    assert shape(snapshot) == whole_tree(LONG)
    assert turns > 1


async def test_nobody_waits_longer_for_a_parse_than_asked() -> None:
    parsing = BackgroundParse(lambda _, __: True)
    parsing.begin(URI)
    async with asyncio.timeout(10):
        await parsing.wait(URI, 0.001)
    parsing.close()
