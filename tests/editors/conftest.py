"""What the tests of the editors share."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.lsp_editor import engine_home
from vscode_window import TALKATIVE, kept_on_failure, ready_window
from workbench import Workbench

from engine.library.resolve import EMBEDDED_FOLDER

if TYPE_CHECKING:
    from neovim import Neovim  # Skips what imports it where pynvim is missing, and VS Code's tests need no pynvim.


@pytest.fixture(scope="session")
def ready_line() -> str:
    """Return what the status says of the engine once it is ready."""
    name = json.loads((EMBEDDED_FOLDER / "config.json").read_text())["name"]
    return f"Ready: {name} on cpu."


@pytest.fixture(scope="module")
def neovim_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Return the server's settings, and end their engine after the module's last test."""
    with engine_home(tmp_path_factory.mktemp("runtime"), Path("embedded")):
        yield {
            "model": "embedded",
            "threads": 1,
            "gate": 0,
            "budgetMs": 2000,
            "maxTokens": 8,
            "idleMinutes": 5,
        }


@pytest.fixture
def in_neovim(neovim_settings: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., "Neovim"]]:
    """Return a function that opens a file in a new Neovim; `setup` goes over the usual options of setup()."""
    from neovim import KEYMAPS, NOTES, PROGRAM, Neovim, Setup

    if not PROGRAM.exists():
        pytest.skip("Neovim is not here: make editors")
    opened: list[Neovim] = []

    def open_file(
        text: str = NOTES, name: str = "notes.txt", setup: dict[str, Any] | None = None, **how: str
    ) -> Neovim:
        file = tmp_path / name
        file.write_text(text)
        options = {"settings": neovim_settings, "keymaps": KEYMAPS, **(setup or {})}
        opened.append(Neovim(tmp_path / f"home{len(opened)}", file, Setup(options, **how)))
        return opened[-1]

    yield open_file
    for neovim in opened:
        neovim.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with an edit to repeat, see neovim_project."""
    from neovim_project import write_project

    return write_project(tmp_path / "project")


@pytest.fixture
def open_app(in_neovim: Callable[..., "Neovim"], project: Path) -> Callable[..., "Neovim"]:
    """Return a function that opens the project's app.py in a new Neovim and makes the edit."""
    from neovim_project import open_edited

    return partial(open_edited, in_neovim, project)


@pytest.fixture
def neovim(in_neovim: Callable[..., "Neovim"]) -> "Neovim":
    """Return a Neovim that is ready, in insert mode after the list's dash."""
    neovim = in_neovim()
    neovim.until_ready()
    neovim.keys("GA")
    return neovim


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Return the module's own window of VS Code, whose server shows all that the embedded model writes."""
    with ready_window(tmp_path_factory, TALKATIVE) as workbench:
        yield workbench


@pytest.fixture
def vscode(window: Workbench, request: pytest.FixtureRequest) -> Iterator[Workbench]:
    """Return the module's own window, which is kept as it looks if the test fails."""
    with kept_on_failure(window, request):
        yield window
