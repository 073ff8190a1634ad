"""A parse that can be interrupted and goes on later."""

import time

import tree_sitter

from lsp_server.languages.chunks import reader


class Parse:
    """One parse of UTF-8 `source`, incremental if there is an earlier tree with its edits noted.

    On some broken texts, such as an unclosed comment in TSX, a grammar's error recovery never ends. So each run has a
    deadline. A parse has a parser of its own, which no other thread may use at the same time.
    """

    def __init__(self, grammar: tree_sitter.Language, source: bytes, edited: tree_sitter.Tree | None) -> None:
        self._parser = tree_sitter.Parser(grammar)
        self._source, self._edited = source, edited
        self.seconds = 0.0
        """How much of the processor's time it took: on a busy machine, others have most of the clock's."""

    def run(self, seconds: float) -> tree_sitter.Tree | None:
        """Parse on for at most `seconds`, or some milliseconds more. Return the tree if that is the end."""
        began, deadline, read = time.thread_time(), time.perf_counter() + seconds, reader(self._source)

        def give_up(_: int, __: bool) -> bool:
            return time.perf_counter() > deadline

        try:
            if self._edited is None:
                return self._parser.parse(read, progress_callback=give_up)
            return self._parser.parse(read, self._edited, progress_callback=give_up)
        except ValueError:  # tree-sitter keeps what is parsed, and goes on there when it is called again
            return None
        finally:
            self.seconds += time.thread_time() - began
