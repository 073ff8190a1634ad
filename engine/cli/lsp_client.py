"""An LSP client of `midspan-lsp`. So the command line and the benchmarks use the same path as an editor.

This does not use pygls: importing pygls and lsprotocol takes most of a second, which would slow down every
`midspan fill` and distort the latency benchmark.
"""

import asyncio
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from engine.cli.cursor import Cursor
from engine.client.address import trust_for_now
from engine.errors import MidspanError
from engine.library.store import NO_MODEL
from engine.protocol import lsp_messages as lsp
from engine.protocol.editor_messages import (
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
    wire_names,
)
from engine.protocol.lsp_messages import Document, Position, Range

_T = TypeVar("_T")
_EXIT_SECONDS = 5.0
_STDERR_SECONDS = 1.0


class LanguageServerError(MidspanError):
    """The language server cannot be started, has ended, or answered a request with an error."""

    code = "language-server"


def _lsp_converter() -> cattrs.Converter:
    """Return a converter with camelCase keys that omits fields with their default value."""
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook(str | int, lambda value, _: value)
    converter.register_unstructure_hook_factory(
        attrs.has, lambda cls: make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True, **wire_names(cls))
    )
    converter.register_structure_hook_factory(
        attrs.has, lambda cls: make_dict_structure_fn(cls, converter, **wire_names(cls))
    )
    return converter


_converter = _lsp_converter()


@attrs.define
class _PendingRequest:
    answer_class: type[Any]
    future: asyncio.Future[Any]


class JsonRpc:
    """A connection to a server process. Requests and notifications carry attrs objects, with camelCase keys as JSON."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._pending: dict[int, _PendingRequest] = {}
        self._listeners: dict[str, tuple[type[Any], Callable[[Any], None]]] = {}
        self._last_id = 0
        self._ended = False
        self._stderr: deque[str] = deque(maxlen=20)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]

    @classmethod
    async def spawn(cls, command: list[str]) -> "JsonRpc":
        """Start `command` and connect to it. Raises LanguageServerError when it cannot be started."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise LanguageServerError(f"cannot start the language server {command[0]}: {error.strerror}") from None
        return cls(process)

    @property
    def has_ended(self) -> bool:
        """Whether the server is gone, so that each request fails."""
        return self._ended

    def listen(self, method: str, params: type[_T], callback: Callable[[_T], None]) -> None:
        """Call `callback` with the params of each notification of `method`, in order."""
        self._listeners[method] = (params, callback)

    async def request(self, method: str, params: object, answer_class: type[_T]) -> _T:
        """Send a request and wait for its result. Raises LanguageServerError for an error answer and a lost server."""
        self._last_id += 1
        request_id = self._last_id
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = _PendingRequest(answer_class, future)
        try:
            await self._send({"id": request_id, "method": method, "params": _converter.unstructure(params)})
            return await future
        finally:
            self._pending.pop(request_id, None)
            if future.done() and not future.cancelled():
                # Retrieve the error even if sending failed first: asyncio prints errors that nobody retrieved.
                future.exception()

    async def notify(self, method: str, params: object) -> None:
        """Send a notification. Raises LanguageServerError when the server is gone."""
        await self._send({"method": method, "params": _converter.unstructure(params)})

    async def close(self) -> None:
        """Close the server's input and wait for its end. After 5 seconds, kill it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), _EXIT_SECONDS)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, fields: dict[str, Any]) -> None:
        if self._ended:
            raise self._gone()
        try:
            await self._write(fields)
        except (ConnectionError, RuntimeError):
            # Wait for the server's last line on stderr: the error quotes it.
            await asyncio.wait(self._tasks, timeout=_STDERR_SECONDS)
            raise self._gone() from None

    async def _write(self, fields: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **fields}, ensure_ascii=False).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await self.process.stdin.drain()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while (length := await self._read_length(self.process.stdout)) is not None:
                await self._handle(json.loads(await self.process.stdout.readexactly(length)))
        except (asyncio.IncompleteReadError, ValueError, ConnectionError, LanguageServerError):
            pass  # the rest of the stream cannot be split into messages, so this counts as its end
        finally:
            self._ended = True
            if self._pending:
                await asyncio.wait([self._tasks[1]], timeout=_STDERR_SECONDS)
            for pending in self._pending.values():
                if not pending.future.done():
                    pending.future.set_exception(self._gone())

    @staticmethod
    async def _read_length(stream: asyncio.StreamReader) -> int | None:
        length: int | None = None
        while line := (await stream.readline()).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return length

    async def _handle(self, fields: dict[str, Any]) -> None:
        method, message_id = fields.get("method"), fields.get("id")
        if method is not None and message_id is not None:
            # The server's requests (create a progress, register a capability) need only a positive answer.
            await self._write({"id": message_id, "result": None})
        elif method is not None:
            if method in self._listeners:
                params, callback = self._listeners[method]
                callback(_converter.structure(fields.get("params"), params))
        elif (pending := self._pending.get(message_id or 0)) is not None and not pending.future.done():
            try:
                pending.future.set_result(_result(fields, pending.answer_class))
            except LanguageServerError as error:
                pending.future.set_exception(error)

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            if text := line.decode(errors="replace").strip():
                self._stderr.append(text)

    def _gone(self) -> LanguageServerError:
        last_line = f"; its last line was: {self._stderr[-1][:200]}" if self._stderr else ""
        return LanguageServerError(f"the language server ended unexpectedly{last_line}")


def _result(fields: dict[str, Any], answer_class: type[_T]) -> _T:
    """Return the result of a response. Raises LanguageServerError when it is an error or has another shape."""
    if error := fields.get("error"):
        raise LanguageServerError(str(error.get("message", "the language server gave no reason")).splitlines()[0])
    try:
        return _converter.structure(fields.get("result"), answer_class)
    except Exception as error:  # cattrs passes on what a hook raises: KeyError, TypeError, ValueError
        reason = f"{type(error).__name__}: {error}"[:120]
        raise LanguageServerError(f"the language server's answer is not a {answer_class.__name__}: {reason}") from None


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
        params = lsp.Initialize(os.getpid(), capabilities, self._workspace.as_uri(), self._options)
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
