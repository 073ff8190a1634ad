"""A connection to a language server's process, without pygls and lsprotocol, whose import takes most of a second."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from engine.errors import MidspanError
from engine.protocol.editor_messages import (
    wire_names,
)

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
