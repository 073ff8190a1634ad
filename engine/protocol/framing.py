"""Frames: how messages travel between a client and the engine, and the limits of their fields.

A frame is a length (a big-endian u32) and a body of that many bytes. The body is a msgpack map: "type" names the
message, the other keys are its fields. A reader ignores keys that it does not know; all the same, a new
field is a new PROTOCOL_VERSION. A client opens a connection with Hello and the engine answers with Welcome. After that
any number of requests can run at once; their `id` tells them apart. Without limits one client could block the engine
for all others.
"""

import asyncio
import struct
from typing import Any

import cattrs
import msgpack

from engine.errors import ProtocolError
from engine.protocol.memory_messages import (
    Forget,
    Learn,
    MemoryRequest,
    MemoryStatus,
    MemoryStatusRequest,
    MemoryUpdated,
)
from engine.protocol.messages import (
    Cancel,
    Failed,
    Fill,
    Filled,
    Hello,
    HoleRequest,
    Message,
    Progress,
    Read,
    Score,
    Shutdown,
    Status,
    StatusRequest,
    Welcome,
)


def strict_converter() -> cattrs.Converter:
    """Return a converter that raises TypeError for a scalar of another type. It accepts an int for a float."""
    converter = cattrs.Converter(detailed_validation=False)
    for scalar in (int, float, str, bool):
        converter.register_structure_hook(scalar, _exact)
    for scalar, optional in ((int, int | None), (float, float | None), (str, str | None)):
        converter.register_structure_hook(optional, lambda value, _, scalar=scalar: _exact_or_none(value, scalar))
    return converter


def _exact_or_none(value: Any, scalar: type[Any]) -> Any:
    return None if value is None else _exact(value, scalar)


def _exact(value: Any, scalar: type[Any]) -> Any:
    if scalar is float and type(value) is int:
        return float(value)
    if type(value) is not scalar:
        raise TypeError(f"expected {scalar.__name__}, got {type(value).__name__}")
    return value


MAX_FRAME_BYTES = 4 * 1024 * 1024
REST_S = 30.0
"""Seconds in which the rest of a frame comes once it has begun."""
_LENGTH = struct.Struct(">I")
_CLASSES: dict[str, type[Any]] = {
    "hello": Hello,
    "welcome": Welcome,
    "fill": Fill,
    "read": Read,
    "score": Score,
    "progress": Progress,
    "filled": Filled,
    "cancel": Cancel,
    "learn": Learn,
    "forget": Forget,
    "memory-updated": MemoryUpdated,
    "memory-status-request": MemoryStatusRequest,
    "memory-status": MemoryStatus,
    "status-request": StatusRequest,
    "status": Status,
    "shutdown": Shutdown,
    "failed": Failed,
}
_NAMES = {cls: name for name, cls in _CLASSES.items()}
_converter = strict_converter()


def pack(message: Message) -> bytes:
    """Return the frame of `message`. Raises ProtocolError("too-large") when its body exceeds MAX_FRAME_BYTES."""
    fields = _converter.unstructure(message)
    fields["type"] = _NAMES[type(message)]
    body = msgpack.packb(fields, use_bin_type=True)
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolError("too-large", f"the frame has {len(body)} bytes; at most {MAX_FRAME_BYTES} are allowed")
    return _LENGTH.pack(len(body)) + bytes(body)


def unpack(body: bytes) -> Message:
    """Return the message in the body of a frame.

    Raises ProtocolError with the code "malformed" or "unknown-type" and one line that says what is wrong.
    """
    try:
        fields = msgpack.unpackb(body, raw=False, strict_map_key=True)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise ProtocolError("malformed", f"the frame is not valid msgpack: {type(error).__name__}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        raise ProtocolError("malformed", 'the frame is not a map with a "type"')
    cls = _CLASSES.get(fields["type"])
    if cls is None:
        raise ProtocolError("unknown-type", f"unknown message type {fields['type'][:40]!r}")
    try:
        message: Message = _converter.structure(fields, cls)
    except Exception as error:  # cattrs passes on what a hook raises: KeyError, TypeError, ValueError and its own
        raise ProtocolError("malformed", f"bad {fields['type']} message: {_reason(error)}") from None
    return message


def unpack_all(frames: bytes, most: int = 64) -> list[Message]:
    """Return the messages of at most `most` frames that follow each other, as in a body. Raises ProtocolError."""
    messages: list[Message] = []
    at = 0
    while at < len(frames):
        begin = at + _LENGTH.size
        length = _LENGTH.unpack_from(frames, at)[0] if len(frames) >= begin else MAX_FRAME_BYTES
        at = begin + length
        if len(frames) < at:
            raise ProtocolError("malformed", "the last frame is not whole")
        if len(messages) == most:
            raise ProtocolError("malformed", f"there are more than {most} frames; send them in parts")
        messages.append(unpack(frames[begin:at]))
    return messages


async def read_frame(reader: asyncio.StreamReader) -> Message | None:
    """Read one message; return None when the connection ended between two frames.

    Raises ProtocolError. After the codes "too-large" and "incomplete" the next frame cannot be found.
    """
    try:
        begun = await reader.readexactly(1)
    except asyncio.IncompleteReadError:
        return None
    try:
        async with asyncio.timeout(REST_S):
            return unpack(await _rest(reader, begun))
    except TimeoutError:
        raise ProtocolError("incomplete", f"the rest of a frame did not come within {REST_S:.0f} s") from None


async def _rest(reader: asyncio.StreamReader, begun: bytes) -> bytes:
    """Return the body of a frame whose first byte is read. Raises ProtocolError."""
    try:
        head = begun + await reader.readexactly(_LENGTH.size - 1)
    except asyncio.IncompleteReadError:
        raise ProtocolError("malformed", "the connection ended inside a frame's length") from None
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME_BYTES:
        raise ProtocolError(
            "too-large", f"a frame of {length} bytes was announced; at most {MAX_FRAME_BYTES} are allowed"
        )
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        raise ProtocolError("malformed", "the connection ended inside a frame") from None


def _reason(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {text[:120]}"


_MAX_ID = 2**63 - 1
_RANGES: dict[str, tuple[float, float]] = {
    "id": (0, _MAX_ID),
    "budget_ms": (1, 600_000),
    "max_tokens": (1, 2048),
    "steps": (0, 2048),
    "candidates": (1, 8),
    "choose_from": (0, 8),
    "temperature": (0, 2),
    "top_p": (0.01, 1),
    "seed": (0, 2**63 - 1),
    "line": (0, 2**31 - 1),
}
_MAX_PATH = 4096
_MAX_LANGUAGE = 64
_MAX_CHARACTERS = {
    "prefix": 1_000_000,
    "suffix": 1_000_000,
    "path": _MAX_PATH,
    "language": _MAX_LANGUAGE,
    "workspace": _MAX_PATH,
    "scope": _MAX_PATH,
    "text": 1000,
}
MAX_SNIPPETS = 64
MAX_SNIPPET_CHARACTERS = 200_000
"""All snippets of a request together. The language server sends at most 48,000."""
MAX_REWRITE_CHARACTERS = 100_000
"""A region, the edits before it and the reports about it together."""
MAX_LEARNED_CHARACTERS = 200_000
MAX_FORGOTTEN_PATHS = 10_000
_MAX_KEPT_PATHS = 20_000


def limit_error(request: HoleRequest) -> str | None:
    """Return one line that names the first field outside its limits and what is allowed; None for a valid request."""
    for name, (low, high) in _RANGES.items():
        value = getattr(request, name, low)
        if not low <= value <= high:  # also rejects NaN
            return f"{name} is {value}; it can be {low} to {high}"
    for name, maximum in _MAX_CHARACTERS.items():
        length = len(getattr(request, name, ""))
        if length > maximum:
            return f"{name} has {length} characters; at most {maximum} are allowed"
    if len(request.snippets) > MAX_SNIPPETS:
        return f"there are {len(request.snippets)} snippets; at most {MAX_SNIPPETS} are allowed"
    if any(len(snippet.path) > _MAX_PATH for snippet in request.snippets):
        return f"the path of a snippet has more than {_MAX_PATH} characters"
    if (rewrite := request.rewrite) is not None:
        texts = [rewrite.region, *(text for edit in rewrite.edits for text in (edit.path, edit.before, edit.after))]
        texts += [text for report in rewrite.reports for text in (report.code, report.message)]
        if (length := sum(map(len, texts))) > MAX_REWRITE_CHARACTERS:
            return f"the rewrite has {length} characters; at most {MAX_REWRITE_CHARACTERS} are allowed"
        if not (-1 <= rewrite.cursor <= len(rewrite.region) and 0 <= rewrite.kept <= len(rewrite.region)):
            return f"cursor or kept is outside of the region, which has {len(rewrite.region)} characters"
    length = sum(len(snippet.text) for snippet in request.snippets)
    if length > MAX_SNIPPET_CHARACTERS:
        return f"the snippets have {length} characters; at most {MAX_SNIPPET_CHARACTERS} are allowed"
    return None


def memory_limit_error(request: MemoryRequest) -> str | None:
    """Return one line that names the first field outside its limits and what is allowed; None for a valid request."""
    if not 0 <= request.id <= _MAX_ID:
        return f"id is {request.id}; it can be 0 to {_MAX_ID}"
    if not request.workspace and not isinstance(request, MemoryStatusRequest):
        return "workspace is empty; name the workspace's folder"
    bounded = [("workspace", request.workspace, _MAX_PATH)]
    if isinstance(request, Learn):
        if not request.path:
            return "path is empty; name the file"
        bounded += [
            ("path", request.path, _MAX_PATH),
            ("text", request.text, MAX_LEARNED_CHARACTERS),
            ("language", request.language, _MAX_LANGUAGE),
        ]
    elif isinstance(request, Forget):
        if len(request.paths) > MAX_FORGOTTEN_PATHS:
            return f"there are {len(request.paths)} paths; at most {MAX_FORGOTTEN_PATHS} are allowed"
        if len(request.keep) > _MAX_KEPT_PATHS:
            return f"{len(request.keep)} paths are to be kept; at most {_MAX_KEPT_PATHS} are allowed"
        bounded += [("a path", path, _MAX_PATH) for path in (*request.paths, *request.keep)]
    for name, text, most in bounded:
        if len(text) > most:
            return f"{name} has {len(text)} characters; at most {most} are allowed"
    return None
