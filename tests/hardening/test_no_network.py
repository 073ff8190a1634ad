"""A session with the language server and the engine: neither asks for an address; they connect to each other only."""

import json
from pathlib import Path

import pytest
from support.lsp_editor import engine_home

from hardening.editing import SETTINGS
from hardening.language_server import LanguageServer

pytestmark = pytest.mark.slow
_HOOK = """
import json, os, sys

EVENTS = "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"

def write(*told):
    with open({log!r}, "a") as file:
        file.write(json.dumps([os.getpid(), *told]) + "\\n")

def note(event, arguments):
    if event in EVENTS:
        write(event, str(arguments[1] if event == "socket.connect" else arguments[0]))

write("begins", "")
sys.addaudithook(note)
"""
_URI = "file:///project/a.py"


def test_the_server_and_the_engine_ask_for_no_address_and_connect_to_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, hooks, runtime = tmp_path / "log", tmp_path / "hooks", tmp_path / "runtime"
    hooks.mkdir()
    runtime.mkdir(mode=0o700)
    # Python imports this module when it starts, in both processes.
    (hooks / "usercustomize.py").write_text(_HOOK.format(log=str(log)))
    (hooks / "sitecustomize.py").write_text(_HOOK.format(log=str(log)))
    monkeypatch.setenv("PYTHONPATH", str(hooks), prepend=":")
    with engine_home(runtime, "embedded"):
        server = LanguageServer(runtime, SETTINGS)
        document = {"uri": _URI, "languageId": "python", "version": 0, "text": "import os\nos."}
        server.notify("textDocument/didOpen", {"textDocument": document})
        position = {"textDocument": {"uri": _URI}, "position": {"line": 1, "character": 3}}
        assert server.ask("midspan/fill", position).error is None
        server.close()

    noted = [json.loads(line) for line in log.read_text().splitlines()]
    assert len({pid for pid, event, _ in noted if event == "begins"}) >= 2, "both processes have the hook"
    connected = [told for _, event, told in noted if event != "begins"]
    assert connected, "the server connects to the engine's socket"
    assert [told for told in connected if not told.startswith(str(runtime))] == []
