"""Parsing again and again takes no more memory."""

import psutil
import tree_sitter

from lsp_server.languages.reads import Reads
from lsp_server.languages.registry import language_for

POINT = tree_sitter.Point(0, 0)


def test_texts_that_are_parsed_are_freed() -> None:
    python = language_for("python", "")
    source = b"x = [1, 2, 3]\n" * 2000
    tree = python.parse(source, None, 10)
    assert tree is not None
    tree.edit(14_000, 14_000, 14_001, (1000, 0), (1000, 0), (1000, 1))
    process = psutil.Process()
    for _ in range(50):
        python.parse(source, tree, 10)
    before = process.memory_info().rss
    for _ in range(300):
        python.parse(source, tree, 10)

    assert process.memory_info().rss - before < 300 * 5_000


def test_the_parts_are_those_of_the_text() -> None:
    text = ("é" * 20_000).encode()
    reads, parts, position = Reads(text), list[bytes](), 0
    while part := reads.read(position, POINT):
        parts.append(part)
        position += len(part)

    assert b"".join(parts) == text
