"""An LSP client of `midspan-lsp`. So the command line and the benchmarks use the same path as an editor.

This does not use pygls: importing pygls and lsprotocol takes most of a second, which would slow down every
`midspan fill` and distort the latency benchmark.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType

from engine.cli.cursor import Cursor
from engine.cli.json_rpc import JsonRpc, LanguageServerError
from engine.client.address import trust_for_now
from engine.library.store import NO_MODEL
from engine.protocol import lsp_messages as lsp
from engine.protocol.editor_messages import (
    COMMAND_LINE,
    FILL,
    FILL_PROGRESS,
    SHOW_STATUS,
    STATUS,
    FillOptions,
    FillParams,
    FillProgress,
    FillResult,
    Stage,
    StatusReport,
)
from engine.protocol.lsp_messages import Document, Position, Range

_PROGRESS_TOKEN = "midspan-cli"
OnCanvas = Callable[[FillProgress], None]


class LspSession:
    """A running language server. Use it as an async context manager; its exit ends the server.

    Positions count code points (utf-32), like Python and like the LINE:COL that a person types; with another
    `encoding`, which editors have, they are right where no character has two units. `workspace` is the folder that the
    server may learn, and to which paths are relative; by default the current one.
    """

    def __init__(
        self,
        model: str | None = None,
        precision: str | None = None,
        workspace: Path | None = None,
        encoding: str = "utf-32",
        # -P: Python must not import modules from the user's folder, such as a types.py or json.py.
        command: Sequence[str] = (sys.executable, "-P", "-m", "lsp_server", "--stdio"),
    ) -> None:
        self._workspace, self._encoding, self._command = workspace or Path.cwd(), encoding, command
        # A program waits for each answer, and does not pause. `midspan serve` asks a model for edits itself.
        self._options = lsp.InitializationOptions(model, precision, pause_ms=0, edits_model=NO_MODEL)
        if model is not None:
            trust_for_now(model)
        self._rpc: JsonRpc | None = None
        self._versions: dict[str, int] = {}
        self.initialize_ms = 0.0

    async def __aenter__(self) -> "LspSession":
        """Start the server. Raises LanguageServerError when it does not start or does not answer."""
        begin = time.perf_counter()
        self._rpc = await JsonRpc.spawn(list(self._command))
        capabilities = lsp.ClientCapabilities(lsp.GeneralCapabilities([self._encoding]))
        ours = lsp.ClientInfo(COMMAND_LINE)
        params = lsp.Initialize(os.getpid(), ours, capabilities, self._workspace.as_uri(), self._options)
        try:
            result = await self._rpc.request("initialize", params, lsp.InitializeResult)
            self.initialize_ms = (time.perf_counter() - begin) * 1000
            if result.capabilities.position_encoding != self._encoding:
                raise LanguageServerError(f"the language server does not count in {self._encoding}; is it midspan-lsp?")
            await self._rpc.notify("initialized", lsp.Initialized())
        except LanguageServerError:
            await self._rpc.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        rpc = self.rpc
        try:
            await rpc.request("shutdown", None, NoneType)
            await rpc.notify("exit", None)
        except LanguageServerError:
            pass  # it has ended already, and the request that waited for it raised the reason
        finally:
            await rpc.close()

    @property
    def rpc(self) -> JsonRpc:
        """The connection. Raises LanguageServerError outside of the context manager."""
        if self._rpc is None:
            raise LanguageServerError("the language server is not started; use `async with LspSession()`")
        return self._rpc

    @property
    def pid(self) -> int:
        return self.rpc.process.pid

    async def open(self, path: Path, text: str) -> None:
        """Open a document. The server recognises the language by the path."""
        uri = _uri(path)
        self._versions[uri] = 1
        await self.rpc.notify("textDocument/didOpen", lsp.DidOpen(lsp.DocumentItem(uri, "", 1, text)))

    async def close(self, path: Path) -> None:
        """Close a document."""
        uri = _uri(path)
        del self._versions[uri]
        await self.rpc.notify("textDocument/didClose", lsp.DidClose(Document(uri)))

    async def type_text(self, cursor: Cursor, text: str) -> None:
        """Insert `text` at the cursor. `cursor.text` is the document before that."""
        uri = _uri(cursor.path)
        self._versions[uri] += 1
        position = _position(cursor)
        change = lsp.ContentChange(text, Range(position, position))
        document = lsp.VersionedDocument(uri, self._versions[uri])
        await self.rpc.notify("textDocument/didChange", lsp.DidChange(document, [change]))

    async def rest(self, cursor: Cursor) -> None:
        """Say that the cursor rests there, as editors do where nobody types."""
        await self.rpc.notify("midspan/cursorMoved", lsp.CursorAt(Document(_uri(cursor.path)), _position(cursor)))

    async def suggest(self, cursor: Cursor) -> list[lsp.InlineItem]:
        """Request an inline completion as an editor does while its user types. Return [] for no suggestion."""
        params = lsp.InlineCompletion(Document(_uri(cursor.path)), _position(cursor), lsp.InlineContext(2))
        return (await self.rpc.request("textDocument/inlineCompletion", params, lsp.InlineList)).items

    async def fill(self, cursor: Cursor, options: FillOptions, on_canvas: OnCanvas | None = None) -> FillResult:
        """Fill the hole at the cursor. If the engine is not running, wait for its start.

        Raises LanguageServerError with the server's error line.
        """
        if on_canvas is not None:
            self.rpc.listen(FILL_PROGRESS, FillProgress, on_canvas)
        params = FillParams(
            Document(_uri(cursor.path)),
            _position(cursor),
            rule=options.rule,
            steps=options.steps,
            budget_ms=options.budget_ms,
            progress_token=None if on_canvas is None else _PROGRESS_TOKEN,
            explain=options.explain,
        )
        return await self.rpc.request(FILL, params, FillResult)

    def on_stage(self, report: Callable[[Stage], None]) -> None:
        """Call `report` whenever the server's status changes."""
        self.rpc.listen(STATUS, Stage, report)

    async def status(self) -> StatusReport:
        """Return the server's counts of this session and the engine's status."""
        return await self.rpc.request("workspace/executeCommand", lsp.Command(SHOW_STATUS), StatusReport)


def _position(cursor: Cursor) -> Position:
    return Position(cursor.line, cursor.character)


def _uri(path: Path) -> str:
    return path.resolve().as_uri()
