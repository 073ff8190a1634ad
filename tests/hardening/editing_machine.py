"""The hypothesis machine that edits: which operation comes next, and with what. A failure is shrunk to few of them."""

import sys
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hardening import edits
from hardening.bench import Bench
from hardening.comparison import LANGUAGES
from hardening.edited_text import Position
from hardening.editing import SETTINGS, Document, Editing
from hardening.language_server import Broken

_MOST_UNITS = 5_000
_HUGE = 20_000
_NOTEBOOK = "file:///project/book.ipynb"
_DISASTERS = (*[0] * 8, 1, 2)
"""In an example, each as likely. An engine starts in half a second; without disasters an example takes as long."""


class EditingMachine(RuleBasedStateMachine):
    """Edits, asks, cancels and disturbs. `bench` is set by long_editing.run."""

    bench: Bench

    def __init__(self) -> None:
        super().__init__()
        self.editing = Editing(self.bench.server(), self.bench.counts, self.bench.engine)
        self.disasters_left = 0
        self.is_stopped = False
        self.undo: dict[str, str] = {}
        self.cells = 0
        self.cells_in_order: list[str] = []

    def _document(self, uri: str) -> Document:
        """Return a document, opened if it is not; every operation counts here."""
        self.bench.counts.operations += 1
        if uri not in self.editing.documents:
            self.editing.open(uri, "python", "def f():\n    return 1\n")
        return self.editing.documents[uri]

    @initialize(disasters=st.sampled_from(_DISASTERS))
    def begin(self, disasters: int) -> None:
        self.disasters_left = disasters
        self._document(edits.URIS[0])

    @rule(uri=edits.DOCUMENTS, language=st.sampled_from(LANGUAGES), text=edits.TEXTS, binary=edits.RARELY)
    def reopen(self, uri: str, language: str, text: str, binary: bool) -> None:
        self._document(uri)
        self.editing.close(uri)
        self.editing.open(uri, language, text + "\0" * binary)

    @rule(uri=edits.DOCUMENTS, at=edits.POSITIONS, text=edits.TEXTS)
    def insert(self, uri: str, at: Position, text: str) -> None:
        self._remember(uri)
        self.editing.edit(uri, at, at, text)

    @rule(uri=edits.DOCUMENTS, first=edits.POSITIONS, last=edits.POSITIONS, text=edits.TEXTS)
    def replace(self, uri: str, first: Position, last: Position, text: str) -> None:
        self._remember(uri)
        self.editing.edit(uri, first, last, text)

    @rule(uri=edits.DOCUMENTS, line=edits.LINES, text=st.just("") | edits.TEXTS)
    def replace_line(self, uri: str, line: int, text: str) -> None:
        """Replace what is between two line ends, which may become one."""
        self._remember(uri)
        self.editing.edit(uri, Position(line, 0), Position(line, edits.FAR), text)

    @rule(uri=edits.DOCUMENTS, line=st.integers(0, 12), column=st.integers(0, 20), key=st.sampled_from('aex_(:=" \n'))
    def type_and_ask(self, uri: str, line: int, column: int, key: str) -> None:
        """A key, and the request that an editor sends after it."""
        document = self._remember(uri)
        at = document.content.position(document.content.offset(Position(line, column)))
        self.editing.edit(uri, at, at, key)
        after = document.content.position(document.content.offset(at) + 1)
        self.editing.ask("textDocument/inlineCompletion", uri, after, context={"triggerKind": 2})

    @rule(
        uri=edits.DOCUMENTS,
        at=edits.POSITIONS,
        text=edits.TEXTS,
        times=st.sampled_from(edits.PASTES),
        huge=edits.RARELY,
    )
    def paste(self, uri: str, at: Position, text: str, times: int, huge: bool) -> None:
        document = self._remember(uri)
        if len(document.content.units) < _MOST_UNITS:
            self.editing.edit(uri, at, at, text * (_HUGE if huge else times))
        else:
            self.editing.replace_all(uri, text)

    @rule(uri=edits.DOCUMENTS)
    def take_back(self, uri: str) -> None:
        """Undo, as an editor that sends the whole text."""
        document = self._document(uri)
        before, self.undo[uri] = self.undo.get(uri, ""), document.content.text
        self.editing.replace_all(uri, before)

    @rule(uri=edits.DOCUMENTS, at=edits.POSITIONS, text=edits.TEXTS, step=st.sampled_from((0, -1, -5, 1000)))
    def edit_with_a_strange_version(self, uri: str, at: Position, text: str, step: int) -> None:
        self._remember(uri)
        self.editing.edit(uri, at, at, text, step)

    @rule(uri=edits.DOCUMENTS, at=edits.POSITIONS, trigger=st.sampled_from((1, 2)))
    def suggest(self, uri: str, at: Position, trigger: int) -> None:
        self._document(uri)
        self.editing.ask("textDocument/inlineCompletion", uri, at, context={"triggerKind": trigger})

    @rule(uri=edits.DOCUMENTS, at=edits.POSITIONS, text=edits.TEXTS, trigger=st.sampled_from((1, 2)))
    def suggest_and_edit(self, uri: str, at: Position, text: str, trigger: int) -> None:
        self._remember(uri)
        asked = self.editing.ask("textDocument/inlineCompletion", uri, at, context={"triggerKind": trigger})
        self.editing.edit(uri, at, at, text)
        self.editing.follow_with_edit(asked)

    @rule(uri=edits.DOCUMENTS, at=edits.POSITIONS)
    def fill(self, uri: str, at: Position) -> None:
        self._document(uri)
        self.editing.ask("midspan/fill", uri, at)

    @rule(uri=edits.DOCUMENTS, at=edits.POSITIONS)
    def complete(self, uri: str, at: Position) -> None:
        self._document(uri)
        self.editing.ask("textDocument/completion", uri, at)

    @rule()
    def cancel(self) -> None:
        self.bench.counts.operations += self.editing.cancel()

    @rule()
    def wait(self) -> None:
        self.bench.counts.operations += 1
        if not self.is_stopped:
            self.editing.settle()
            self.editing.compare()

    @rule(uri=edits.DOCUMENTS)
    def compare(self, uri: str) -> None:
        self._document(uri)
        self.editing.compare(uri)

    @rule(name=st.sampled_from(edits.SETTINGS_TO_SPOIL), value=edits.GARBAGE)
    def spoil_settings(self, name: str, value: Any) -> None:
        self.bench.counts.operations += 1
        for values in ({**SETTINGS, name: value}, SETTINGS):
            self.editing.server.notify("workspace/didChangeConfiguration", {"settings": {"midspan": values}})

    @rule(method=st.sampled_from(edits.METHODS), params=edits.GARBAGE)
    def send_garbage(self, method: str, params: Any) -> None:
        """Notifications and requests whose params are wrong. The requests are answered, with whatever."""
        self.bench.counts.operations += 1
        server = self.editing.server
        if method.startswith("notify "):
            self.editing.doubt()
            server.notify(method.removeprefix("notify "), params)
        elif not self.is_stopped:
            server.ask(method, params)

    @rule(added=st.integers(0, 2), start=st.integers(0, 4), removed=st.integers(0, 2))
    def rearrange_notebook(self, added: int, start: int, removed: int) -> None:
        """Open a notebook, then add and remove cells; one without cells is closed."""
        self.bench.counts.operations += 1
        new = [f"{_NOTEBOOK}#{number}" for number in range(self.cells, self.cells + added)]
        self.cells += added
        if not self.cells_in_order:
            self.editing.open_notebook(_NOTEBOOK, new)
            self.cells_in_order = new
            return
        start = min(start, len(self.cells_in_order))
        gone = self.cells_in_order[start : start + removed]
        self.editing.replace_cells(_NOTEBOOK, start, gone, new)
        self.cells_in_order[start : start + removed] = new
        if not self.cells_in_order:
            self.editing.close_notebook(_NOTEBOOK)

    @precondition(lambda self: self.cells_in_order)
    @rule(cell=st.integers(0, 4), at=edits.POSITIONS, text=edits.TEXTS)
    def edit_cell(self, cell: int, at: Position, text: str) -> None:
        self.bench.counts.operations += 1
        uri = self.cells_in_order[cell % len(self.cells_in_order)]
        self.editing.edit(uri, at, at, text)
        self.editing.ask("textDocument/inlineCompletion", uri, at, context={"triggerKind": 2})

    @precondition(lambda self: self.disasters_left)
    @rule(kind=st.sampled_from(("killed", "stopped", "restarted")), wait=st.integers(0, 4))
    def disaster(self, kind: str, wait: int) -> None:
        if wait:
            return
        self.bench.counts.operations += 1
        self.disasters_left -= 1
        self.is_stopped = False
        if kind == "killed":
            self.bench.engine.kill()
        elif kind == "stopped":
            self.bench.engine.stop()
            self.is_stopped = True
        else:
            self.editing.restart_engine()

    @precondition(lambda self: self.is_stopped)
    @rule()
    def resume(self) -> None:
        self.bench.counts.operations += 1
        self.is_stopped = False
        self.bench.engine.resume()

    def teardown(self) -> None:
        error = sys.exc_info()[1]
        if error is None:
            try:
                self.editing.finish()
                return
            except Broken as broken:
                error = broken
        self.bench.note(error)
        if not self.editing.leave():
            self.bench.renew()
        if sys.exc_info()[1] is None:
            raise error

    def _remember(self, uri: str) -> Document:
        document = self._document(uri)
        self.undo[uri] = document.content.text
        return document
