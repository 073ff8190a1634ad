"""The editor's answers about its settings: the newest question's counts, whichever comes last."""

import asyncio
from typing import cast

import pytest
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from support.lsp_editor import eventually

from lsp_server.requests import registration
from lsp_server.requests.registration import SettingsQuestion


class SlowEditor:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.questions: list[asyncio.Future[list[object]]] = []

    async def workspace_configuration_async(self, _: types.ConfigurationParams) -> list[object]:
        self.questions.append(asyncio.get_running_loop().create_future())
        return await self.questions[-1]


async def test_an_answer_that_comes_after_that_of_a_newer_question_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "_CONFIGURATION_TIMEOUT_S", 0.05)
    editor, used, late = SlowEditor(), list[object](), asyncio.Event()

    async def use(settings: object) -> None:
        used.append(settings)
        if len(used) == 3:
            late.set()

    question = SettingsQuestion(cast(LanguageServer, editor), use)
    first, second = asyncio.create_task(question.ask()), asyncio.create_task(question.ask())
    await eventually(lambda: len(editor.questions) == 2)
    editor.questions[1].set_result(["new"])
    await second
    await first
    editor.questions[0].set_result(["old"])
    await asyncio.wait_for(late.wait(), 5)
    assert used == ["new", "new", "new"]
