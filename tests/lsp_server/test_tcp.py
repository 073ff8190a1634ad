"""The server on a TCP port: one editor, no web page, and answers in the order of what came."""

import asyncio
import contextlib
import json
import sys

from lsp_editor import Editor
from lsprotocol import types


async def test_the_server_serves_an_editor_over_tcp(unused_tcp_port: int) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"
    server = await asyncio.create_subprocess_exec(sys.executable, "-m", "lsp_server", "--tcp", address)
    editor = Editor()
    for _ in range(1000):
        try:
            await editor.client.start_tcp("127.0.0.1", unused_tcp_port)
            break
        except OSError:
            await asyncio.sleep(0.02)
    result = await editor.client.initialize_session(types.InitializeParams(types.ClientCapabilities()))

    assert result.server_info is not None
    assert result.server_info.name == "midspan-lsp"
    await editor.client.shutdown_async(None)
    editor.client.exit(None)
    assert await asyncio.wait_for(server.wait(), 20) == 0


async def test_a_web_page_gets_no_answer_on_the_tcp_port_and_an_editor_still_does(unused_tcp_port: int) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"
    server = await asyncio.create_subprocess_exec(sys.executable, "-m", "lsp_server", "--tcp", address)
    body = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'
    head = f"POST / HTTP/1.1\r\nHost: {address}\r\nOrigin: https://evil.example\r\nContent-Length: {len(body)}\r\n\r\n"
    reader, writer = await _connection(unused_tcp_port)
    writer.write((head + body).encode())

    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    editor = Editor()
    await editor.client.start_tcp("127.0.0.1", unused_tcp_port)
    result = await editor.client.initialize_session(types.InitializeParams(types.ClientCapabilities()))
    assert result.server_info is not None
    await editor.client.shutdown_async(None)
    editor.client.exit(None)
    assert await asyncio.wait_for(server.wait(), 20) == 0


async def test_what_comes_right_after_a_request_over_tcp_does_not_change_its_answer(unused_tcp_port: int) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lsp_server", "--tcp", f"127.0.0.1:{unused_tcp_port}"
    )
    document = {"uri": "file:///project/a.py", "languageId": "python", "version": 1, "text": "x = 1"}
    hole = {"textDocument": document, "position": {"line": 0, "character": 0}}
    options = {"capabilities": {}, "initializationOptions": {"enabled": False, "model": "/no/such/model"}}
    messages = (
        {"id": 1, "method": "initialize", "params": options},
        {"id": 2, "method": "midspan/fill", "params": hole},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
    )
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    reader, writer = await _connection(unused_tcp_port)
    try:
        writer.write(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies))
        answer = await asyncio.wait_for(reader.readuntil(b"didOpen first"), 20)
        assert b"file:///project/a.py is not open" in answer
    finally:
        server.kill()
        await server.wait()
        writer.close()


async def _connection(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for _ in range(1000):
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
    raise AssertionError("the server does not listen")
