"""An editor with several documents, a server and its engine, and what must hold whatever editor and engine do."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from hardening.answers import Asked, check_error, check_item, check_range, items_of
from hardening.comparison import check_quote, quote_request, seed_of
from hardening.edited_text import EditedText, Position
from hardening.language_server import Answer, Broken, LanguageServer
from hardening.running_engine import Engine

SETTINGS: dict[str, Any] = {
    "model": "embedded",
    "threads": 1,
    "budgetMs": 1000,
    "maxTokens": 4,
    "gate": 0,
    "memory": "file",
    "completionItems": True,
    "idleMinutes": 5,
}
_ASKED, _AUTOMATIC = 1, 2
_TRIES = (_AUTOMATIC, *[_ASKED] * 40)
_MOST_PENDING = 12
_CELL = "x = 1\n"


@attrs.define
class Document:
    """A cell's changes are those of its `notebook`.

    `was_binary`: when it was opened; then the server leaves it alone until it is opened again.
    `is_compared`: the server had this text, and nothing that may change it was sent since.
    """

    uri: str
    language: str
    version: int
    content: EditedText
    was_binary: bool = False
    notebook: str = ""
    is_compared: bool = False

    @property
    def is_binary(self) -> bool:
        """Whether the server leaves it alone. Undo may bring a NUL byte back."""
        return self.was_binary or "\0" in self.content.text


@attrs.define
class Counts:
    """What was done, over all examples."""

    operations: int = 0
    echoes: int = 0
    silent: int = 0
    answers: int = 0
    items: int = 0


@attrs.define
class Editing:
    """One editor. Each method sends something, and checks what came back until then. They raise Broken."""

    server: LanguageServer
    counts: Counts
    engine: Engine
    documents: dict[str, Document] = attrs.field(factory=dict)
    _pending: list[Asked] = attrs.field(factory=list)
    _restarts: list[int] = attrs.field(factory=list)

    def open(self, uri: str, language: str, text: str) -> None:
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.documents[uri] = Document(uri, language, 1, EditedText.of(text), "\0" in text)
        self.server.notify("textDocument/didOpen", {"textDocument": item})

    def close(self, uri: str) -> None:
        del self.documents[uri]
        for asked in self._pending:
            asked.closed = asked.closed or asked.uri == uri
        self.server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def open_notebook(self, uri: str, cells: list[str]) -> None:
        """Open a notebook whose cells are Python, each with a line of code."""
        documents = [self._cell(uri, cell) for cell in cells]
        notebook = {"uri": uri, "notebookType": "jupyter-notebook", "version": 1, "cells": _cells(cells)}
        self.server.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})

    def replace_cells(self, uri: str, start: int, removed: list[str], added: list[str]) -> None:
        """Replace cells from the one with the number `start`."""
        array = {"start": start, "deleteCount": len(removed), "cells": _cells(added)}
        for cell in removed:
            del self.documents[cell]
        opened = [self._cell(uri, cell) for cell in added]
        structure = {"array": array, "didOpen": opened, "didClose": [{"uri": cell} for cell in removed]}
        self.change_notebook(uri, {"structure": structure})

    def close_notebook(self, uri: str) -> None:
        cells = [cell for cell, document in self.documents.items() if document.notebook == uri]
        for cell in cells:
            del self.documents[cell]
        identifiers = [{"uri": cell} for cell in cells]
        params = {"notebookDocument": {"uri": uri}, "cellTextDocuments": identifiers}
        self.server.notify("notebookDocument/didClose", params)

    def change_notebook(self, uri: str, cells: Mapping[str, object]) -> None:
        params = {"notebookDocument": {"uri": uri, "version": 2}, "change": {"cells": cells}}
        self.server.notify("notebookDocument/didChange", params)

    def edit(self, uri: str, first: Position, last: Position, new: str, step: int = 1) -> None:
        """Replace a range; the version grows by `step`, which may be negative."""
        document = self.documents[uri]
        document.content = document.content.replaced(first, last, new)
        document.version += step
        change = {"range": {"start": first.json, "end": last.json}, "text": new}
        self._change(document, change)

    def replace_all(self, uri: str, text: str) -> None:
        document = self.documents[uri]
        document.content = EditedText.of(text)
        document.version += 1
        self._change(document, {"text": text})

    def ask(self, method: str, uri: str, position: Position, **params: object) -> Asked:
        """Send a request at a position, without waiting for its answer."""
        document = self.documents[uri]
        fields = {"textDocument": {"uri": uri}, "position": position.json, **params}
        asked = Asked(self.server.request(method, fields), method, uri, document.content, position)
        self._pending.append(asked)
        if len(self._pending) > _MOST_PENDING and not self.engine.is_stopped:
            self.settle(self._pending[0])
        return asked

    def follow_with_edit(self, asked: Asked) -> None:
        """Note an edit after a request: what comes after the edit was handled must be empty."""
        command = {"command": "midspan.accepted", "arguments": []}
        asked.edited = self.server.request("workspace/executeCommand", command)

    def cancel(self) -> bool:
        """Cancel the latest request that waits, if there is one."""
        if self._pending:
            self.server.cancel(self._pending[-1].number)
        return bool(self._pending)

    def settle(self, *asked: Asked) -> None:
        """Wait for answers, by default all, and check them."""
        for each in asked or list(self._pending):
            answer = self.server.answer(each.number)
            self._pending.remove(each)
            self._check(each, answer)
        if not asked:
            while self._restarts:
                self.server.answer(self._restarts.pop())
            if not self.server.alive:
                raise Broken("the server ended")
        if long := [line for line in self.server.warnings if "\n" in line]:
            raise Broken(f"a message of several lines: {long[0]}")
        self.server.warnings.clear()

    def doubt(self) -> None:
        """Have each text compared again: what was sent may have changed any."""
        for document in self.documents.values():
            document.is_compared = False

    def compare(self, *uris: str) -> None:
        """Compare the server's texts with ours, by default all. While the engine starts nothing can be compared."""
        if not self.engine.is_stopped:
            documents = [self.documents[uri] for uri in uris or self.documents]
            self._without_quote([each for each in documents if not each.is_compared], 0, _AUTOMATIC)

    def compare_all(self) -> None:
        """Compare each text, also those that did not change since; wait for the engine.

        A text after whose seeds the model would write nothing is counted as silent.
        """
        left = list(self.documents.values())
        for number, trigger in enumerate(_TRIES):
            left = self._without_quote(left, number, trigger)
        if left:
            self.counts.silent += len(left)
            report = self.server.ask("workspace/executeCommand", {"command": "midspan.status", "arguments": []})
            if report.result["state"] not in ("ready", "busy"):
                raise Broken(f"no text of {left[0].uri} within {len(_TRIES)} requests: {report.result['message']}")
            for each in left:
                self._tell_silence(each, report.result["message"])

    def _tell_silence(self, document: Document, state: str) -> None:
        """Print what a fill at the start of a text without a suggestion says."""
        params = {"textDocument": {"uri": document.uri}, "position": Position(0, 0).json}
        fill = self.server.ask("midspan/fill", params)
        kept = ("finish", "steps", "tokens", "confidence", "ms")
        told = fill.error if fill.result is None else {name: fill.result.get(name) for name in kept}
        print(f"nothing suggested in {document.uri}, {document.language}: {state}; a fill: {told}", flush=True)

    def restart_engine(self) -> None:
        """Restart the engine by the user's command, which `settle` waits for."""
        self.engine.resume()
        self.engine.disasters += 1
        command = {"command": "midspan.restartEngine"}
        self._restarts.append(self.server.request("workspace/executeCommand", command))

    def finish(self) -> None:
        """Check all that is left, and close what is open."""
        self.engine.resume()
        self.settle()
        self.compare_all()
        for notebook in {document.notebook for document in self.documents.values()}:
            if notebook:
                self.close_notebook(notebook)
        for uri in list(self.documents):
            self.close(uri)

    def leave(self) -> bool:
        """Close what is open after a failure. Return whether the server is fit for the next example."""
        self.engine.resume()
        try:
            for uri in list(self.documents):
                self.close(uri)
            return self.server.alive and all(self.server.answer(each.number, 5.0) for each in self._pending)
        except Broken:
            return False

    def _cell(self, notebook: str, uri: str) -> dict[str, object]:
        self.documents[uri] = Document(uri, "python", 1, EditedText.of(_CELL), notebook=notebook)
        return {"uri": uri, "languageId": "python", "version": 1, "text": _CELL}

    def _change(self, document: Document, change: Mapping[str, object]) -> None:
        document.is_compared = False
        identifier = {"uri": document.uri, "version": document.version}
        if document.notebook:
            content = [{"document": identifier, "changes": [change]}]
            self.change_notebook(document.notebook, {"textContent": content})
        else:
            self.server.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})

    def _without_quote(self, documents: Sequence[Document], number: int, trigger: int) -> list[Document]:
        """Ask for quotes of documents at once, after their seeds `number`, and return those of which none came."""
        numbers = list[int]()
        asked = [each for each in documents if not each.is_binary]
        for each in asked:
            params = quote_request(each.uri, seed_of(each.language, number), trigger)
            numbers.append(self.server.request("textDocument/inlineCompletion", params))
        for each, request in zip(asked, numbers, strict=True):
            answer = self.server.answer(request)
            each.is_compared = check_quote(answer, each.content, seed_of(each.language, number))
            self.counts.echoes += each.is_compared
        return [each for each in asked if not each.is_compared]

    def _check(self, asked: Asked, answer: Answer) -> None:
        self.counts.answers += 1
        if answer.error is not None:
            check_error(asked, answer.error)
        elif asked.method == "textDocument/inlineCompletion":
            items = items_of(answer)
            self.counts.items += len(items)
            for item in items:
                check_item(asked, item)
            if asked.edited and items and self.server.answer(asked.edited).order < answer.order:
                raise Broken("an answer for a text that had changed was not empty")
        elif asked.method == "midspan/fill":
            check_range(asked, answer.result["range"])


def _cells(uris: list[str]) -> list[dict[str, object]]:
    return [{"kind": 2, "document": uri} for uri in uris]
