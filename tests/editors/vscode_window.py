"""A VS Code with the packaged extension, for the tests of one module; and what they all begin with."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from code_server import CodeServer, package_extension
from support.lsp_editor import engine_home
from workbench import Workbench

OUT = Path(__file__).parent / "out"
SETTINGS: dict[str, Any] = {
    "midspan.server.path": str(Path(sys.executable).parent / "midspan-lsp"),
    "midspan.model": "embedded",
    "midspan.idleMinutes": 10,
}
TALKATIVE: dict[str, Any] = {
    "midspan.gate": 0,
    "midspan.budgetMs": 5000,
    "midspan.maxTokens": 8,  # A ghost that fits on the screen.
}
"""Something is suggested everywhere, however slow the machine is."""


@contextmanager
def ready_window(
    folders: pytest.TempPathFactory, settings: dict[str, Any], environment: dict[str, str] | None = None
) -> Iterator[Workbench]:
    """Open a window; `settings` go over the usual ones of the machine. At the end its engine ends too."""
    base = {**SETTINGS, **settings}
    with engine_home(folders.mktemp("run"), base["midspan.model"]):
        server = CodeServer(folders.mktemp("vscode"), base, environment or {})
        with window_of(server, package_extension()) as workbench:
            yield workbench


@contextmanager
def window_of(server: CodeServer, vsix: Path) -> Iterator[Workbench]:
    """Start the server with the extension `vsix` and open a window on it. Both end at the end."""
    workbench = None
    try:
        server.start(vsix)
        workbench = Workbench(server)
        workbench.open_window("first.txt")
        yield workbench
    except AssertionError:
        if workbench is not None:
            workbench.keep(OUT / "window")
        raise
    finally:
        if workbench is not None:
            workbench.close()
        server.stop()


@contextmanager
def kept_on_failure(window: Workbench, request: pytest.FixtureRequest) -> Iterator[Workbench]:
    """Keep what the window shows at a failure in tests/editors/out. Then the settings are the first ones again."""
    failed = request.session.testsfailed
    try:
        yield window
    except AssertionError:
        window.keep(OUT / request.node.name)
        raise
    finally:
        if request.session.testsfailed > failed:
            window.keep(OUT / request.node.name)
        window.server.configure({})
