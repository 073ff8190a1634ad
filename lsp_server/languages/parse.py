"""A parse that can be interrupted and goes on later."""

import time

import tree_sitter

from lsp_server.languages.chunks import reader

_TOKEN_SECONDS = 0.01
"""A token may take so much longer than the deadline. tree-sitter looks at the clock between tokens only."""


class Parse:
    """One parse of UTF-8 `source`, incremental if there is an earlier tree with its edits noted.

    On some broken texts, such as an unclosed comment in TSX, a grammar's error recovery never ends. So each run has a
    deadline. A single token can take minutes: thousands of unclosed literals are each read to the end of the text. The
    only code of ours that runs meanwhile hands out the text, so it ends the text there, and `ended` is True.
    A parse has a parser of its own, which no other thread may use at the same time.
    """

    def __init__(self, grammar: tree_sitter.Language, source: bytes, edited: tree_sitter.Tree | None) -> None:
        self._parser = tree_sitter.Parser(grammar)
        self._source, self._edited = source, edited
        self.seconds = 0.0
        """How much of the processor's time it took: on a busy machine, others have most of the clock's."""
        self.ended = False
        """Whether it was cut off inside a token, and cannot go on."""

    def run(self, seconds: float) -> tree_sitter.Tree | None:
        """Parse on for at most `seconds`, or some milliseconds more. Return the tree if that is the end."""
        if self.ended:
            return None
        began, deadline, read = time.thread_time(), time.perf_counter() + seconds, reader(self._source)
        latest = began + seconds + _TOKEN_SECONDS

        def read_in_time(byte: int, point: tree_sitter.Point) -> bytes | bytearray:
            if self.ended or time.thread_time() > latest:
                self.ended = True
                return b""
            return read(byte, point)

        def give_up(_: int, __: bool) -> bool:
            return self.ended or time.perf_counter() > deadline

        try:
            if self._edited is None:
                tree = self._parser.parse(read_in_time, progress_callback=give_up)
            else:
                tree = self._parser.parse(read_in_time, self._edited, progress_callback=give_up)
            return None if self.ended else tree
        except ValueError:  # tree-sitter keeps what is parsed, and goes on there when it is called again
            return None
        finally:
            self.seconds += time.thread_time() - began
