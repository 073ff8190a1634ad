"""Bytes that nobody should send: nearly right frames, JSON and headers, and some that are quite wrong."""

import json
import struct
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgpack

from engine.library.resolve import EMBEDDED_FOLDER
from engine.protocol.framing import pack
from engine.protocol.memory_messages import Forget, Learn, MemoryStatusRequest
from engine.protocol.messages import Cancel, Failed, Fill, Hello, Message, Snippet, StatusRequest

_DEEP = 100_000
_NUMBERS = st.sampled_from((0, -1, 1, 2**31, 2**32, 2**53, 2**60, 2**63, 2**64 - 1, -(2**63))) | st.integers()
_SCALARS = st.none() | st.booleans() | st.floats() | st.text(max_size=8) | _NUMBERS
VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_MESSAGES: tuple[Message, ...] = (
    Hello(2, "fuzz", "token"),
    Fill(7, "a = ", "\n", "a.py", "python", [Snippet("b.py", "b")], max_tokens=2),
    Cancel(7),
    Learn("/w", "a.py", "x", "python", 8),
    Forget("/w", ["a.py"], 9),
    MemoryStatusRequest("/w", 10),
    StatusRequest(),
    Failed("code", "message", 7),
)
_METHODS = (
    *("initialize", "shutdown_", "textDocument/didOpen", "textDocument/didChange", "textDocument/inlineCompletion"),
    *("textDocument/completion", "textDocument/codeAction", "midspan/fill", "midspan/whyThisSuggestion"),
    *("workspace/executeCommand", "workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles"),
    *(
        "notebookDocument/didOpen",
        "notebookDocument/didChange",
        "$/cancelRequest",
        "$/setTrace",
        "window/workDoneProgress",
    ),
    *("textDocument/didShowCompletion", "textDocument/didPartiallyAcceptCompletion", "codeAction/resolve", ""),
)
_PARAMS = {
    "textDocument": {"uri": "file:///a.py", "version": 2, "languageId": "python", "text": "x"},
    "position": {"line": 0, "character": 0},
    "context": {"triggerKind": 1},
    "contentChanges": [{"text": "y"}],
    "settings": {"midspan": {"gate": 0.5}},
    "command": "midspan.status",
    "arguments": [],
    "id": 1,
}


@st.composite
def spoiled(draw: st.DrawFn, good: bytes) -> bytes:
    """Return bytes with some changed, cut or repeated."""
    data = bytearray(good)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.integers(0, 3)):
            case 0 if data:
                data[at] = draw(st.integers(0, 255))
            case 1:
                del data[at : at + draw(st.integers(1, 9))]
            case 2:
                data[at:at] = data[at : at + draw(st.integers(1, 9))]
            case _:
                data[at:at] = draw(st.binary(max_size=5))
    return bytes(data)


def _framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@st.composite
def _field_spoiled(draw: st.DrawFn) -> bytes:
    fields = msgpack.unpackb(pack(draw(st.sampled_from(_MESSAGES)))[4:])
    fields[draw(st.sampled_from(sorted(fields)))] = draw(VALUES.filter(_fits_msgpack))
    return _framed(msgpack.packb(fields))


def _fits_msgpack(value: Any) -> bool:
    try:
        msgpack.packb(value)
    except (OverflowError, UnicodeEncodeError):
        return False
    return True


_WHOLE_FRAMES = st.sampled_from(_MESSAGES).map(pack)
_DEEP_FRAMES = st.integers(1, 2000).map(lambda depth: _framed(b"\x91" * depth + b"\xc0"))
FRAMES = st.lists(
    st.one_of(_field_spoiled(), _WHOLE_FRAMES.flatmap(spoiled), _DEEP_FRAMES, st.binary(max_size=40)), max_size=3
).map(b"".join)


@st.composite
def _lsp(draw: st.DrawFn) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": draw(st.sampled_from(_METHODS)), "params": dict(_PARAMS)}
    if draw(st.booleans()):
        message["id"] = draw(_SCALARS)
    for _ in range(draw(st.integers(0, 2))):
        message["params"][draw(st.sampled_from(sorted(_PARAMS)))] = draw(VALUES)
    if draw(st.integers(0, 4)) == 0:
        message[draw(st.sampled_from(("params", "method", "jsonrpc", "result", "error", "id")))] = draw(VALUES)
    return json.dumps(message).encode()


_DEEP_JSON = st.builds(
    lambda depth, opening: opening.encode() * depth, st.sampled_from((900, 5000, _DEEP)), st.sampled_from("[{")
)
MESSAGES = st.one_of(
    _lsp(),
    _lsp().flatmap(spoiled),
    _DEEP_JSON,
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=30),
)


@st.composite
def _header(draw: st.DrawFn) -> bytes:
    tensor = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    tensor[draw(st.sampled_from(sorted(tensor)))] = draw(VALUES)
    tensors: Any = {"a": tensor, "__metadata__": draw(VALUES)}
    body = json.dumps(draw(st.sampled_from([tensors, {"a": draw(VALUES)}, draw(VALUES)]))).encode()
    length = draw(st.sampled_from((len(body), len(body) + 1, 0, 2**40, 2**63, 2**64 - 1)))
    return struct.pack("<Q", length) + body + bytes(draw(st.sampled_from((16, 0, 15, 17))))


HEADERS = st.one_of(_header(), _header().flatmap(spoiled), st.binary(max_size=40))


@st.composite
def _config(draw: st.DrawFn) -> bytes:
    config = json.loads((EMBEDDED_FOLDER / "config.json").read_text("utf-8"))
    part = draw(st.sampled_from((config, config["shape"], config["marks"])))
    part[draw(st.sampled_from(sorted(part)))] = draw(VALUES)
    return json.dumps(config).encode()


CONFIGS = st.one_of(_config(), _config().flatmap(spoiled), VALUES.map(lambda value: json.dumps(value).encode()))
RECORDS = st.one_of(
    st.just(b'{"pid": 1, "model": "m", "version": "0", "socket": "/s", "port": 0, "stage": ""}').flatmap(spoiled),
    st.just(b'{"model": "embedded"}').flatmap(spoiled),
    VALUES.map(lambda value: json.dumps(value).encode()),
    _DEEP_JSON,
)
CORPUS = Path(__file__).parent / "corpus"

_BODIES: dict[str, dict[str, Any]] = {
    "/infill": {
        "input_prefix": "a = ",
        "input_suffix": "\n",
        "input_extra": [{"text": "b"}],
        "n_predict": 1,
        "stop": [],
    },
    "/v1/completions": {"prompt": "a = ", "suffix": "\n", "max_tokens": 1, "n": 1, "stream": False, "logprobs": 1},
    "/v1/fim/completions": {"model": "codestral", "prompt": "a = ", "suffix": "\n", "max_tokens": 1},
    "/api/generate": {"model": "midspan", "prompt": "a = ", "stream": True, "options": {"num_predict": 1}},
    "/v1/events": {"type": "view"},
}
_TABBY = {"segments": {"prefix": "a = ", "suffix": "\n", "filepath": "a.py"}, "temperature": 0.1}
_ZETA = (
    "<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    "<filename>a.py\n<<<<<<< CURRENT\nb<|user_cursor|>\n=======\n<[fim-middle]>"
)
_HEADS = (
    "Host: evil.example",
    "Origin: null",
    "Content-Length: 5",
    "Transfer-Encoding: chunked",
    "Expect: 100-continue",
)


@st.composite
def _http_body(draw: st.DrawFn, path: str) -> bytes:
    if path.startswith("/midspan"):
        return draw(FRAMES)
    good = draw(st.sampled_from((_BODIES.get(path, {}), _TABBY, {"prompt": _ZETA, "max_tokens": 1})))
    body = dict(good)
    for _ in range(draw(st.integers(0, 2)) if body else 0):
        body[draw(st.sampled_from(sorted(body)))] = draw(VALUES)
    encoded = json.dumps(body).encode()
    return draw(st.just(encoded) | spoiled(encoded) | st.binary(max_size=30) | _DEEP_JSON)


@st.composite
def _http_request(draw: st.DrawFn) -> bytes:
    path = draw(
        st.sampled_from((*_BODIES, "/midspan/fill", "/midspan/memory", "/metrics", "/props", "/%00", "//", "*"))
    )
    body = draw(_http_body(path))
    heads = [
        f"{draw(st.sampled_from(('POST', 'POST', 'POST', 'GET', 'OPTIONS')))} {path} HTTP/1.1",
        "Host: localhost",
        "Connection: close",
    ]
    if draw(st.integers(0, 4)):
        heads.append(f"Content-Length: {len(body)}")
    heads += draw(st.lists(st.sampled_from(_HEADS), max_size=1)) if draw(st.integers(0, 4)) == 0 else []
    return "\r\n".join((*heads, "", "")).encode() + body


HTTP = st.one_of(_http_request(), _http_request().flatmap(spoiled), st.binary(max_size=60))
