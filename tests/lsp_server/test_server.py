"""The server process without an engine: its capabilities, settings and switches."""

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.lsp_editor import Editor, eventually

from lsp_server import protocol
from lsp_server.server import MidspanServer

OFF = {"midspan": {"enabled": False}}


@pytest_asyncio.fixture
async def editor(editor: Editor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))
    return editor


async def test_the_server_announces_its_capabilities(editor: Editor) -> None:
    capabilities = (await editor.start(OFF)).capabilities

    assert capabilities.inline_completion_provider
    assert capabilities.execute_command_provider is not None
    assert set(capabilities.execute_command_provider.commands) == {
        "midspan.installModel",
        "midspan.restartEngine",
        "midspan.status",
        "midspan.toggle",
        "midspan.snooze",
        "midspan.accepted",
        "midspan.dismissed",
        "midspan.runAction",
        "midspan.nextEditAccepted",
        "midspan.nextEditDismissed",
    }
    sync = capabilities.text_document_sync
    assert isinstance(sync, types.TextDocumentSyncOptions)
    assert sync.change == types.TextDocumentSyncKind.Incremental


@pytest.mark.parametrize("encoding", list(types.PositionEncodingKind))
async def test_the_server_counts_columns_in_the_editors_encoding(encoding: types.PositionEncodingKind) -> None:
    editor = Editor(encoding)

    assert (await editor.start(OFF)).capabilities.position_encoding == encoding
    await editor.stop()


async def test_the_server_needs_little_memory(editor: Editor) -> None:
    await editor.start(OFF)
    editor.open("def f():\n    return |\n", "file:///project/a.py", "python")
    await editor.suggest()

    assert psutil.Process(editor.pid).memory_info().rss < 90e6


def test_the_server_never_imports_torch() -> None:
    heavy = "torch", "transformers", "tokenizers", "safetensors", "numpy", "rich", "typer"
    code = f"import sys, lsp_server.__main__; print([name for name in {heavy!r} if name in sys.modules])"

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_server_prints_its_version() -> None:
    out = subprocess.check_output([sys.executable, "-m", "lsp_server", "--version"], text=True)

    assert out.startswith("midspan-lsp ")


async def test_a_wrong_setting_is_reported_once_and_the_others_are_used(editor: Editor) -> None:
    await editor.start({"midspan": {"enabled": False, "budgetMs": "fast"}}, pull={"gate": 2, "budgetMs": "fast"})
    await eventually(lambda: len(editor.warnings()) == 2)

    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    report = await editor.command("midspan.status")

    assert report["enabled"] is False
    assert any("midspan.budgetMs" in line and "from 20 to 5000" in line for line in editor.warnings())
    assert any("midspan.gate" in line and "from 0 to 1" in line for line in editor.warnings())
    assert len(editor.warnings()) == 2


@pytest.mark.slow
async def test_settings_that_come_late_are_used_then_and_until_then_those_that_came_before(editor: Editor) -> None:
    answers: asyncio.Queue[dict[str, object]] = asyncio.Queue()

    async def answer(_: object) -> list[dict[str, object]]:
        return [await answers.get()]

    async def model() -> str:
        return str((await editor.command("midspan.status"))["model"])

    editor.client.protocol.fm.features[types.WORKSPACE_CONFIGURATION] = answer
    await editor.start(pull={})
    await eventually(lambda: any("its settings are used once" in each.message for each in editor.client.log_messages))
    assert await model() == "default"

    async def told(name: str) -> None:
        answers.put_nowait({"enabled": False, "model": name})
        while await model() != name:
            pass

    await told("first")
    editor.client.log_messages.clear()
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await eventually(lambda: any("its settings are used once" in each.message for each in editor.client.log_messages))
    assert await model() == "first"
    await told("second")


async def test_an_unknown_setting_is_shown_with_the_one_that_is_like_it(editor: Editor) -> None:
    settings = {"enabled": False, "colour": "red", "budgetms": 900, "server": {"path": "its own, of VS Code"}}
    await editor.start({"midspan": settings})

    await eventually(editor.warnings)
    assert editor.warnings() == ["Midspan: no setting is called colour, budgetms; did you mean budgetMs?"]


async def test_an_editor_that_answers_no_requests_can_push_its_settings(editor: Editor) -> None:
    await editor.start(OFF)
    pushed = {"midspan": {"model": "elsewhere"}}

    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=pushed))

    assert (await editor.command("midspan.status"))["model"] == "elsewhere"


async def test_the_status_item_follows_the_switch(editor: Editor) -> None:
    await editor.start()
    await editor.until("idle")

    assert await editor.command("midspan.toggle") == {"enabled": False, "language": None}
    assert (await editor.command("midspan.status"))["message"] == "Suggestions are off."
    assert await editor.command("midspan.toggle") == {"enabled": True, "language": None}
    assert (await editor.command("midspan.status"))["enabled"] is True
    assert await editor.command("midspan.toggle", "go") == {"enabled": False, "language": "go"}


async def test_accepting_a_suggestion_is_counted(editor: Editor) -> None:
    await editor.start(OFF)
    await editor.command("midspan.accepted")
    await editor.command("midspan.accepted")

    assert (await editor.command("midspan.status"))["accepted"] == 2


async def test_a_server_that_is_switched_off_answers_with_an_empty_list(editor: Editor) -> None:
    await editor.start(OFF)
    editor.open("def f():\n    return |\n", "file:///project/a.py", "python")

    assert await editor.suggest() == []
    assert (await editor.command("midspan.status"))["asked"] == 0


async def test_a_document_that_is_not_open_gets_an_empty_list(editor: Editor) -> None:
    await editor.start(OFF)
    editor.uri = "file:///project/never-opened.py"

    assert await editor.suggest() == []


async def test_the_status_says_that_a_file_is_left_alone(editor: Editor) -> None:
    await editor.start()
    editor.open("KEY = |\n", "file:///project/secrets.py", "python")
    await editor.suggest()
    await eventually(lambda: "secrets.py is left alone" in editor.statuses[-1].message)
    assert 'matches "secrets.*" of the setting midspan.exclude' in editor.statuses[-1].message

    await editor.command("midspan.toggle")
    assert "secrets.py" not in editor.statuses[-1].message


async def test_an_impossible_fill_is_refused_in_one_line(editor: Editor) -> None:
    await editor.start(OFF)

    async def refusal(**options: object) -> str:
        with pytest.raises(JsonRpcException) as refused:
            await editor.fill(**options)
        assert "\n" not in refused.value.message
        return refused.value.message

    editor.open("PASSWORD=|", "file:///project/.env")
    assert "midspan.exclude" in await refusal()
    editor.open("\0|")
    assert "binary" in await refusal()
    editor.open("|" + "x" * (2 * 1024 * 1024 + 1))
    assert "2 MB" in await refusal()
    editor.uri = "file:///project/never-opened.py"
    assert "didOpen" in await refusal()
    editor.open("a |")
    assert "no rule is called 'hope'; there are default, threshold" in await refusal(rule="hope")


async def test_a_malformed_request_is_answered(editor: Editor) -> None:
    await editor.start(OFF)

    for method in "midspan/fill", "textDocument/inlineCompletion":
        with pytest.raises(JsonRpcException, match=f"the params of {method} are not what the protocol says"):
            await editor.raw_request(method, {"position": "here"})
    assert await editor.command("midspan.status")


async def test_no_line_of_the_users_code_is_logged(editor: Editor, capfd: pytest.CaptureFixture[str]) -> None:
    await editor.start({"midspan": {"enabled": False, "logLevel": "debug"}})
    editor.open("launch_code = 4711 |")
    editor.type("# also 4711")
    broken = {"textDocument": {"uri": editor.uri}, "contentChanges": [{"text": 4711, "range": "launch_code"}]}
    editor.raw_notification("textDocument/didChange", broken)
    await editor.suggest()
    await editor.command("midspan.status")

    logged = capfd.readouterr().err + "".join(line.message for line in editor.client.log_messages)
    assert "4711" not in logged
    assert "launch_code" not in logged


@pytest.mark.parametrize("size", [2**60, 2**40])
async def test_a_message_of_an_absurd_size_does_not_end_the_server(size: int) -> None:
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lsp_server", stdin=pipe, stdout=pipe, stderr=pipe
    )
    _, errors = await server.communicate(b"Content-Length: %d\r\n\r\n{}" % size)

    assert server.returncode == 0
    assert b"Error" not in errors


def test_what_comes_after_a_message_that_is_too_large_is_answered() -> None:
    large = b" " * (protocol.MOST_BYTES + 1)
    asked = b'{"jsonrpc": "2.0", "id": 1, "method": "midspan/none"}'
    sent = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in (large, asked))
    stream = protocol.BoundedInput(io.BytesIO(sent))
    bodies = []
    while line := stream.readline():
        if line.startswith(b"Content-Length"):
            size = int(line.split(b":")[1])
            stream.readline()
            bodies.append(stream.read(size))
    assert len(bodies) == 2
    assert len(bodies[0]) < 1000
    assert bodies[1] == asked


async def test_the_server_exits_when_the_editor_is_gone() -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lsp_server", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdin is not None
    server.stdin.close()

    assert await asyncio.wait_for(server.wait(), 20) == 0


async def test_typing_for_long_takes_no_more_memory(editor: Editor) -> None:
    await editor.start(OFF)
    editor.open("x = 1\n|", "file:///project/notes.txt")
    await _type(editor, 300)

    # What is loaded when there is time comes late on a busy machine; what typing leaves comes each time.
    grown = [await _grown(editor, 1500) for _ in range(2)]

    assert min(grown) < 2.5e6


async def _grown(editor: Editor, keys: int) -> int:
    """Return by how many bytes the server grows while somebody types."""
    before = psutil.Process(editor.pid).memory_info().rss
    await _type(editor, keys)
    return int(psutil.Process(editor.pid).memory_info().rss - before)


async def _type(editor: Editor, keys: int) -> None:
    """Type and delete, and wait until the server has seen it."""
    for _ in range(keys // 2):
        editor.type("y")
        editor.delete(1)
    await editor.command("midspan.status")


def test_nothing_is_kept_of_a_notification_that_is_handled() -> None:
    server = MidspanServer()
    protocol = server.protocol
    document = {"uri": "file:///project/a.txt", "languageId": "plaintext", "version": 1, "text": "one\n"}
    opened = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}
    protocol.handle_message(protocol.structure_message(opened))

    assert [each.text for each in server.session.documents.all()] == ["one\n"]
    assert not protocol._request_futures
