"""A real language server with `midspan+URL` as its model: what goes to the team's server, and what stays."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hardening.language_server import LanguageServer
from http_service import HttpService, http_service
from support.engine_process import end

from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions

_TOKEN = "ann-" + "a" * 32
_BEARER = {"authorization": f"Bearer {_TOKEN}"}
_LINES = "".join(f"def part{number}(value):\n    return value * {number} + first_of_all\n\n\n" for number in range(12))
_Start = Callable[..., LanguageServer]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def team(running: EngineOptions) -> Iterator[HttpService]:
    with http_service(Path(running.model), "--rate", "0", "--log", MIDSPAN_SERVE_TOKEN=_TOKEN) as service:
        yield service


@pytest.fixture
def editor(
    team: HttpService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., LanguageServer]]:
    """Start a language server in a workspace of four files, with the team's server as its model."""
    monkeypatch.setenv("MIDSPAN_API_KEY", _TOKEN)
    workspace, home = tmp_path / "project", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    for number in range(4):
        (workspace / f"file{number}.py").write_text(f"{_LINES}# {number}\n")
    started: list[LanguageServer] = []
    model = f"midspan+{team.url}"

    def start(**settings: str) -> LanguageServer:
        server = LanguageServer(home, {"model": model, "budgetMs": 20_000, **settings})
        started.append(server)
        folder = {"uri": workspace.as_uri(), "name": "project"}
        server.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
        document = {"uri": f"{workspace.as_uri()}/typed.py", "languageId": "python", "version": 0, "text": "total = "}
        server.notify("textDocument/didOpen", {"textDocument": document})
        return server

    yield start
    for server in started:
        server.kill()
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(home))
    end(runtime_paths_of(model))


def _fill(server: LanguageServer, team: HttpService, project: Path) -> str:
    document = {"uri": f"{project.as_uri()}/typed.py"}
    answer = server.ask("midspan/fill", {"textDocument": document, "position": {"line": 0, "character": 8}})
    assert answer.error is None, answer.error
    model: str = answer.result["model"]
    return model


def test_fills_go_to_the_team_and_the_workspace_stays_at_the_default(
    editor: _Start, team: HttpService, tmp_path: Path
) -> None:
    before = team.metric("engine_fills_total", **_BEARER)
    known = team.metric("engine_memory_files", **_BEARER)
    server = editor()
    assert _fill(server, team, tmp_path / "project") == team.url.removeprefix("http://")
    assert team.metric("engine_fills_total", **_BEARER) > before
    time.sleep(1.0)  # nothing can be waited for: nothing comes
    assert team.metric("engine_memory_files", **_BEARER) == known


def test_the_workspace_goes_along_where_the_user_wants_it(
    editor: _Start,
    team: HttpService,
    tmp_path: Path,
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    known = team.metric("engine_memory_files", **_BEARER)
    server = editor(relatedFiles="always")
    _fill(server, team, tmp_path / "project")
    eventually(lambda: team.metric("engine_memory_files", **_BEARER) == known + 4)
    assert str(tmp_path) not in "".join(team.lines)
