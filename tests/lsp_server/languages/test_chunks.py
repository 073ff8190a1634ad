"""tree-sitter reads a text in pieces, and keeps none of them."""

import tracemalloc

import pytest
import tree_sitter

from lsp_server.languages.language import Language
from lsp_server.languages.parsing import reader
from lsp_server.languages.registry import language_for

LONG = "total = 'ä€🙂' + first.second(third)  # a comment\n" * 2000
SECONDS = 10.0


@pytest.fixture
def python() -> Language:
    return language_for("python", "")


def parsed(language: Language, text: str) -> str:
    tree = language.parse(text.encode(), None, SECONDS)
    assert tree is not None
    assert tree.root_node.end_byte == len(text.encode())
    return str(tree.root_node)


def test_the_pieces_of_a_text_are_the_text_whatever_its_length() -> None:
    for length in (0, 1, 3, 63, 64, 65, 127, 128, 16_383, 16_384, 16_385, 60_000):
        source = LONG.encode()[:length]
        read, pieces = reader(source), bytearray()
        while piece := read(len(pieces), tree_sitter.Point(0, 0)):
            pieces += piece
        assert bytes(pieces) == source


def test_a_character_that_a_piece_cuts_in_two_is_read_whole(python: Language) -> None:
    for cut in range(70):
        broken = "x = '" + "é" * cut + "🙂€" * 9000 + "'\n"
        assert "ERROR" not in parsed(python, broken)


def test_parsing_after_each_key_takes_no_more_memory(python: Language) -> None:
    source = LONG.encode()
    tree, held = python.parse(source, None, SECONDS), []
    tracemalloc.start()
    try:
        for _ in range(2):
            for _ in range(30):
                assert tree is not None
                tree.edit(5000, 5000, 5000, (100, 0), (100, 0), (100, 0))
                tree = python.parse(source, tree, SECONDS)
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[1] - held[0] < 50_000
