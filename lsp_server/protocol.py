"""How messages come and go: bounded, typed, and without pygls' own copy of every document."""

import codecs
import logging
import math
import re
from collections.abc import Callable, Generator
from typing import Any, BinaryIO, TypeVar

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from engine.errors import describe
from engine.protocol import editor_messages, lsp_messages, messages
from engine.protocol.editor_messages import FILL, FillParams, wire_names
from lsp_server import wire

_logger = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024 * 1024
"""A message. Editors send whole files; those that are served have 2 MB."""
_TOO_LARGE = "a message of %d bytes was announced; at most %d are read"
_HEADER_BYTES = 1024
"""A line of a head. Python reads no number of more than 4,300 digits; pygls would end with its error."""
_PIECE = 1024 * 1024
_LOST_MESSAGE = b'{"jsonrpc": "2.0", "method": "%b", "params": {"uris": [%%b]}}' % wire.LOST.encode()
_URI = re.compile(rb'"uri"\s*:\s*("(?:[^"\\]|\\.){0,4096}")')
_MOST_NUMBER = 2**31 - 1
"""LSP's largest number."""
_CARRIES_TEXT = frozenset(
    {
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.NOTEBOOK_DOCUMENT_DID_OPEN,
        types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    }
)
_Message = TypeVar("_Message")
_PARAMS: dict[str, type[Any]] = {
    FILL: FillParams,
    wire.WHY: wire.WhyParams,
    wire.WHY_NOTHING: wire.WhyParams,
    wire.CURSOR_MOVED: wire.CursorParams,
    wire.SHOWN: wire.ShownParams,
    wire.PARTLY_ACCEPTED: wire.PartParams,
    wire.BULK_EDIT: wire.BulkEditParams,
    wire.APPLY_BULK_EDIT: wire.ApplyParams,
    wire.NEXT_EDIT: wire.NextEditParams,
    wire.LOST: wire.LostParams,
}
_ROOMS = frozenset(module.__name__ for module in (wire, editor_messages, lsp_messages, messages))
"""The modules whose classes are ours, and camelCase on the wire."""


def _handed_on(method: str) -> Any:
    """Return what hands a notification to the server's handler alone."""

    @lsp_method(method)
    def hand_on(self: LanguageServerProtocol, params: Any) -> Generator[Any, Any, None]:
        yield self.fm.features[method], (params,), None

    return hand_on


class _Open(dict[Any, Any]):
    """What is asked and not answered. pygls goes through it at a shutdown and cancels, which takes items out."""

    def items(self) -> Any:
        return list(super().items())


class MidspanProtocol(LanguageServerProtocol):
    """Document notifications go to the server's handlers only.

    pygls would keep each text in its own workspace too, and split it into lines again at every keystroke.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request_futures = _Open()

    lsp_text_document__did_open = _handed_on(types.TEXT_DOCUMENT_DID_OPEN)
    lsp_text_document__did_change = _handed_on(types.TEXT_DOCUMENT_DID_CHANGE)
    lsp_text_document__did_close = _handed_on(types.TEXT_DOCUMENT_DID_CLOSE)
    lsp_notebook_document__did_open = _handed_on(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    lsp_notebook_document__did_change = _handed_on(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    lsp_notebook_document__did_close = _handed_on(types.NOTEBOOK_DOCUMENT_DID_CLOSE)

    def _execute_handler(self, msg_id: Any, handler: Any, callback: Any, args: Any = None, kwargs: Any = None) -> None:
        """Run a handler. pygls would keep the future of each notification for ever, 4 kB for each key press."""
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(lambda _: self._request_futures.pop(msg_id, None))

    def _handle_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        """Take an answer of the editor. pygls would fail on that to a request which was given up meanwhile."""
        future = self._request_futures.get(msg_id)
        if future is not None and future.cancelled():
            del self._request_futures[msg_id]
        else:
            super()._handle_response(msg_id, result, error)

    def as_json(self, message: object) -> Any:
        """Return a message as JSON values, for the places where LSP takes any."""
        return self._converter.unstructure(message)

    def from_json(self, data: object, message: type[_Message]) -> _Message:
        """Return the message in JSON values. Raises JsonRpcInvalidParams if it is none."""
        try:
            return self._converter.structure(data, message)
        except Exception:
            raise JsonRpcInvalidParams(f"the data are no {message.__name__}; ask for the actions again") from None

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the typed message. A request that cannot be read is refused; pygls would never answer it.

        A notification that carries text and cannot be read becomes one that its documents are lost, and an answer
        becomes an error. pygls also calls this for every object inside a message; those are returned as they are.
        """
        if "jsonrpc" not in data:
            return data
        try:
            method = data.get("method", "")
            if method == types.TEXT_DOCUMENT_CODE_ACTION:
                # Those of other extensions may have any value, and no action looks at them.
                data["params"]["context"]["diagnostics"] = []
            if method not in _PARAMS:
                return super().structure_message(data)
            params = self._converter.structure(data["params"], _PARAMS[method])
            if "id" in data:
                return JsonRPCRequestMessage(data["id"], method, data["jsonrpc"], params)
            return JsonRPCNotification(method, data["jsonrpc"], params)
        except Exception:
            if isinstance(data.get("id"), int | str) and isinstance(data.get("method"), str):
                refusal = JsonRpcInvalidParams(f"the params of {data['method']} are not what the protocol says")
                self._send_response(data["id"], error=refusal.to_response_error())
            if "id" in data and "method" not in data:  # else who asked would wait for ever
                unread = JsonRpcInvalidParams("the answer is not what the protocol says")
                return types.ResponseErrorMessage(data["id"], unread.to_response_error())
            if data.get("method") in _CARRIES_TEXT:
                _logger.error("%s could not be read", data["method"])
                return JsonRPCNotification(wire.LOST, "2.0", wire.LostParams(_uris_in(data.get("params"))))
            raise


def _uris_in(params: object) -> list[str]:
    """Return the URIs of the documents in a message that cannot be read."""
    uris: dict[str, None] = {}
    left = [params]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if isinstance(uri := value.get("uri"), str):
                uris[uri] = None
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
    return list(uris)


class BoundedInput:
    """Standard input. A message that is too large is dropped in pieces, instead of asking for all its memory.

    `on_end` is called at its end, in the thread that reads.
    """

    def __init__(self, stream: BinaryIO, on_end: Callable[[], None] = lambda: None) -> None:
        self._stream, self._on_end = stream, on_end

    def readline(self) -> bytes:
        """Return a line of a message's head, or the beginning of a very long one."""
        line = self._stream.readline(_HEADER_BYTES)
        if not line:
            self._on_end()
        return line

    def read(self, size: int) -> bytes:
        """Return a message of `size` bytes, that its document is lost for a large one, and b"" at the end."""
        if size <= MOST_BYTES:
            message = self._stream.read(size)
            if not message:
                self._on_end()
            return _in_utf8(message)
        _logger.error(_TOO_LARGE, size, MOST_BYTES)
        uri: re.Match[bytes] | None = None
        while size > 0 and (piece := self._stream.read(min(size, _PIECE))):
            uri = uri or _URI.search(piece)
            size -= len(piece)
        return _LOST_MESSAGE % (uri[1] if uri is not None else b"") if size <= 0 else b""


def _in_utf8(message: bytes) -> bytes:
    """Return a message with "?" for each byte that is not UTF-8. Editors send such bytes of files as they are.

    One character for a byte, of one unit in every encoding, so no column after it differs from the editor's.
    """
    if message.isascii():
        return message
    try:
        message.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return message.decode("utf-8", "midspan.byte").encode("utf-8", "surrogatepass")
    return message


def _byte_by_byte(error: UnicodeError) -> tuple[str, int]:
    """Replace bytes that are no character of UTF-8. Half a surrogate pair is none, but JSON's reader knows it."""
    assert isinstance(error, UnicodeDecodeError)
    three = error.object[error.start : error.start + 3]
    try:
        return three.decode("utf-8", "surrogatepass"), error.start + 3
    except UnicodeDecodeError:
        return "?" * (error.end - error.start), error.end


codecs.register_error("midspan.byte", _byte_by_byte)


def converter() -> cattrs.Converter:
    """Return pygls' converter, extended by our messages."""
    ours: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]
    ours.register_structure_hook(str | int, lambda value, _: value)
    ours.register_structure_hook(str | int | None, lambda value, _: value)
    # By identity: a hook for int would also get the enumerations of numbers.
    ours.register_structure_hook_func(lambda cls: cls is int, lambda value, _: _number(value))
    ours.register_structure_hook(types.Position, lambda value, _: _position(value))
    ours.register_structure_hook(
        types.TextDocumentContentChangePartial | types.TextDocumentContentChangeWholeDocument,
        lambda value, _: _change(value, ours),
    )
    # Factories build each hook when its first message comes, not while the editor waits for the server to start.
    ours.register_structure_hook_factory(_is_ours, lambda cls: make_dict_structure_fn(cls, ours, **wire_names(cls)))
    ours.register_unstructure_hook_factory(_is_ours, lambda cls: make_dict_unstructure_fn(cls, ours, **wire_names(cls)))
    return ours


def _number(value: Any) -> int:
    """Return a number as one of LSP. For "to the end" some extensions send 2^32-1, or 1.8e308, which is infinite."""
    if isinstance(value, float) and not math.isfinite(value):
        return _MOST_NUMBER if value > 0 else 0
    return max(-_MOST_NUMBER, min(int(value), _MOST_NUMBER))


def _position(value: Any) -> types.Position:
    return types.Position(max(_number(value["line"]), 0), max(_number(value["character"]), 0))


def _change(value: Any, ours: cattrs.Converter) -> types.TextDocumentContentChangeEvent:
    """Return a change of a text. What it says of the length of its range is not read: some editors count otherwise."""
    if value.get("range") is None:
        return types.TextDocumentContentChangeWholeDocument(value["text"])
    return types.TextDocumentContentChangePartial(ours.structure(value["range"], types.Range), value["text"])


def _is_ours(cls: type[Any]) -> bool:
    return attrs.has(cls) and cls.__module__ in _ROOMS


def refusal(message: str) -> JsonRpcException:
    """Return the error of a request that cannot be done: the editor gets `message`, one line for the user."""
    return JsonRpcException(message, code=types.LSPErrorCodes.RequestFailed.value)


_OURS = ("lsp_server", "engine")
_PLACEHOLDER = re.compile(r"%[a-z]")
_TO_LSP = {
    logging.DEBUG: types.MessageType.Debug,
    logging.INFO: types.MessageType.Info,
    logging.WARNING: types.MessageType.Warning,
    logging.ERROR: types.MessageType.Error,
}


class ClientLog(logging.Handler):
    """Sends our own log lines as window/logMessage."""

    def __init__(self, send: Callable[[types.LogMessageParams], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        kind = _TO_LSP.get(record.levelno, types.MessageType.Error)
        self._send(types.LogMessageParams(kind, record.getMessage()))


def fit_for_stderr(record: logging.LogRecord) -> bool:
    """Remove the arguments and the traceback from another library's record. This is a logging filter.

    pygls logs the messages on which it fails, and those contain the text of the user's files. It also logs each error
    with which we answer a request; those records are dropped.
    """
    if record.name.split(".")[0] in _OURS:
        return True
    if record.exc_info and isinstance(record.exc_info[1], JsonRpcException):
        return False
    record.msg = _PLACEHOLDER.sub("...", str(record.msg)).splitlines()[0]
    record.args = ()
    if record.exc_info and record.exc_info[1] is not None:
        record.msg += f" ({describe(record.exc_info[1])})"
    record.exc_info = record.exc_text = None
    return True


def log_to_stderr() -> None:
    """Set up logging for the process, before an editor is connected."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(fit_for_stderr)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def log_to_client(send: Callable[[types.LogMessageParams], None]) -> None:
    """Send our own lines to the editor from now on, and nowhere else."""
    ours = logging.getLogger("lsp_server")
    ours.handlers = [ClientLog(send)]
    ours.propagate = False


def set_level(level: str) -> None:
    """Log our own lines of `level` ("debug", "info", "warning" or "error") and above."""
    logging.getLogger("lsp_server").setLevel(level.upper())
