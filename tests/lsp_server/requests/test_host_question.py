"""A server on another machine gets code only after the user said so, in every editor, whoever named it as the model."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.lsp_editor import INVOKED, Editor, engine_home, eventually
from support.remote_server import TEXT, ModelServer

from engine.client.address import trust

MODEL = "openai+http://models.example/v1#qwen"


@pytest.fixture
def home(server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A configuration folder. The name of another machine leads to our server, through a proxy."""
    monkeypatch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    for name in ("no_proxy", "NO_PROXY", "MIDSPAN_TRUSTED_HOSTS"):
        monkeypatch.delenv(name, raising=False)
    with engine_home(tmp_path / "runtime", MODEL):
        yield tmp_path / "config"


class AskedEditor(Editor):
    """Answers the question about the host with `answer`, the title of a button; None closes it."""

    def __init__(self, answer: str | None) -> None:
        super().__init__()
        self.questions: list[str] = []

        def choose(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
            self.questions.append(params.message)
            return types.MessageActionItem(answer) if answer is not None else None

        self.client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(choose)


@pytest_asyncio.fixture
async def mute(home: Path) -> AsyncIterator[Editor]:
    """An editor that does not know the request."""
    editor = Editor()
    await editor.start({"model": MODEL})
    yield editor
    await editor.stop()


def opened(editor: Editor) -> Editor:
    editor.open("def area(width, height):\n    return |\n", "file:///project/a.py", "python")
    return editor


async def test_who_allows_it_is_asked_once_and_by_the_hosts_name(home: Path, server: ModelServer) -> None:
    editor = AskedEditor("Allow")
    await editor.start({"model": MODEL, "budgetMs": 5000})
    await opened(editor).until("ready")
    assert TEXT in [item.insert_text for item in await editor.suggest(INVOKED)]
    (question,) = editor.questions
    assert "models.example" in question
    assert editor.statuses[-1].isServer
    await editor.stop()
    assert json.loads((home / "trusted-hosts.json").read_text()) == ["models.example"]

    again = AskedEditor(None)
    await again.start({"model": MODEL})
    await opened(again).until("ready")
    assert again.questions == []
    await again.stop()


@pytest.mark.parametrize("answer", ["Do not use it", None])
async def test_who_does_not_allow_it_sends_nothing_and_is_told_what_to_do(
    home: Path, server: ModelServer, answer: str | None
) -> None:
    editor = AskedEditor(answer)
    await editor.start({"model": MODEL})
    await eventually(lambda: any("midspan models trust models.example" in line for line in editor.warnings()))
    assert await opened(editor).suggest(INVOKED) == []
    assert server.received == []
    assert not (home / "trusted-hosts.json").exists()
    await editor.stop()


async def test_an_editor_that_cannot_ask_sends_nothing(mute: Editor, server: ModelServer) -> None:
    await eventually(lambda: any("midspan models trust models.example" in line for line in mute.warnings()))
    assert await opened(mute).suggest(INVOKED) == []
    with pytest.raises(JsonRpcException, match="nobody confirmed it"):
        await mute.fill()
    assert server.received == []


async def test_an_answer_that_comes_when_another_model_was_chosen_meanwhile_changes_nothing(
    home: Path, editor: Editor
) -> None:
    asked, answers = asyncio.Event(), asyncio.Event()

    async def choose(_: types.ShowMessageRequestParams) -> types.MessageActionItem:
        asked.set()
        await answers.wait()
        return types.MessageActionItem("Allow")

    editor.client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(choose)
    await editor.start({"model": MODEL})
    await asked.wait()
    pushed = types.DidChangeConfigurationParams({"midspan": {"model": "embedded"}})
    editor.client.workspace_did_change_configuration(pushed)
    assert (await editor.command("midspan.status"))["model"] == "embedded"
    answers.set()
    await eventually(lambda: not editor.client.protocol._request_futures)  # the answer is sent
    await editor.command("midspan.status")

    assert not (home / "trusted-hosts.json").exists()
    assert [line.message for line in editor.client.log_messages if line.type == types.MessageType.Error] == []


async def test_a_host_that_was_confirmed_on_the_command_line_is_used_after_a_restart(
    mute: Editor, home: Path, server: ModelServer
) -> None:
    await eventually(lambda: any("midspan models trust models.example" in line for line in mute.warnings()))
    trust("models.example")
    await mute.command("midspan.restartEngine")
    await opened(mute).until("ready")
