"""The server's process ends with its editor, also if a task or a thread of it does not want to."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60.0
PIPE = asyncio.subprocess.PIPE
STUBBORN = """
import asyncio, time
import lsp_server.__main__ as command

async def swallow(*_):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def wait(*_):
    await asyncio.to_thread(time.sleep, 3600)

class Stubborn(command.MidspanServer):
    def __init__(self):
        super().__init__()
        self.feature("test/task")(swallow)
        self.feature("test/thread")(wait)

command.MidspanServer = Stubborn
command.main()
"""


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))


class Server:
    """A server whose standard input stays open until the test closes it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *command: str, editor: int | None = None, **capabilities: object) -> "Server":
        """Start the server for the editor with this process id, and wait until it has answered initialize."""
        arguments = command or ("-m", "lsp_server")
        server = cls(await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, stdout=PIPE))
        await server.ask("initialize", {"processId": editor, "rootUri": None, "capabilities": capabilities})
        return server

    def send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def ask(self, method: str, params: object = None) -> dict[str, Any]:
        """Send a request and return its answer."""
        self.send({"id": method, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            head = await asyncio.wait_for(self._process.stdout.readuntil(b"\r\n\r\n"), PATIENCE_S)
            body = await self._process.stdout.readexactly(int(head.split(b":")[1].split()[0]))
            answer: dict[str, Any] = json.loads(body)
            if answer.get("id") == method:
                return answer

    def close_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def ended(self) -> int:
        """Return the exit code, as soon as there is one."""
        return await asyncio.wait_for(self._process.wait(), PATIENCE_S)


async def test_the_server_ends_with_its_editors_process_though_its_input_stays_open() -> None:
    editor = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=PIPE)
    server = await Server.start(editor=editor.pid)

    editor.kill()
    assert await server.ended() == 0
    await editor.wait()


async def test_an_editor_in_another_container_has_a_process_id_that_means_nothing_here() -> None:
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    server = await Server.start(editor=gone.pid)

    await server.ask("shutdown")
    server.send({"method": "exit"})
    server.close_input()
    assert await server.ended() == 0


async def test_what_does_not_end_by_itself_ends_with_the_connection() -> None:
    servers = [await Server.start("-c", STUBBORN, editor=os.getpid()) for _ in range(2)]
    for server, method in zip(servers, ("test/task", "test/thread"), strict=True):
        server.send({"method": method, "params": {}})
        await server.ask("midspan/unknown")
        server.close_input()
    assert [await server.ended() for server in servers] == [1, 1]


async def test_exit_ends_the_process_though_its_input_stays_open() -> None:
    server = await Server.start()
    await server.ask("shutdown")

    server.send({"method": "exit", "params": None})
    await server.ended()


async def test_a_server_that_is_still_starting_shuts_down_without_an_error() -> None:
    server = await Server.start(workspace={"configuration": True})
    server.send({"method": "initialized", "params": {}})  # the server asks for its settings, and gets no answer
    assert (await server.ask("shutdown")).get("error") is None
    server.send({"method": "exit"})
    assert await server.ended() == 0
