"""An engine that is stopped, and not let go on: the user who asks is answered, and a restart helps."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lsp_editor import engine_home

from hardening.editing import SETTINGS
from hardening.language_server import LanguageServer
from hardening.running_engine import Engine

pytestmark = pytest.mark.slow
_URI = "file:///project/a.py"
_ASKED = {"textDocument": {"uri": _URI}, "position": {"line": 0, "character": 4}}
_INVOKED = {**_ASKED, "context": {"triggerKind": 1}}
_SOON_S = 10.0


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[LanguageServer]:
    """A server with an open document whose engine was stopped."""
    with engine_home(tmp_path, "embedded"):
        engine, server = Engine(tmp_path), LanguageServer(tmp_path, SETTINGS)
        document = {"uri": _URI, "languageId": "python", "version": 0, "text": "x = \n"}
        server.notify("textDocument/didOpen", {"textDocument": document})
        server.ask("midspan/fill", _ASKED)
        engine.stop()
        yield server
        server.kill()
        engine.resume()


def test_who_asks_is_answered_although_the_engine_is_stopped(stopped: LanguageServer) -> None:
    assert stopped.answer(stopped.request("textDocument/inlineCompletion", _INVOKED), _SOON_S).error is None


def test_midspan_fill_says_so_soon_now_and_at_the_next_connection(stopped: LanguageServer) -> None:
    asked = stopped.request("midspan/fill", _ASKED)
    assert stopped.answer(asked, 3 * _SOON_S).error is not None

    error = stopped.answer(stopped.request("midspan/fill", _ASKED), 3 * _SOON_S).error
    assert error is not None
    assert "does not answer" in error["message"]


def test_a_restart_replaces_an_engine_that_is_stopped(stopped: LanguageServer) -> None:
    restart = stopped.request("workspace/executeCommand", {"command": "midspan.restartEngine"})
    assert stopped.answer(restart, 2 * _SOON_S).error is None
    assert stopped.ask("midspan/fill", _ASKED).error is None
