"""A larger model, chosen and downloaded in a real VS Code, from a hub on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from code_server import what_is_missing
from support.models_command import ModelsCommand, models_command
from vscode_typing import choose
from vscode_window import ready_window
from workbench import CHOICE, STATUS, Workbench, eventually

from engine.library.catalog import catalog

MISSING = what_is_missing()
SMALL = "open-dcoder-0.5b"
"""It fits every machine."""

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def models(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelsCommand]:
    with models_command(tiny_model, tmp_path_factory.mktemp("models")) as models:
        models.hub.repositories[catalog()[SMALL].hub] = models.repository
        yield models


@pytest.fixture(scope="module")
def window(models: ModelsCommand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    names = ("MIDSPAN_MODELS_DIR", "MIDSPAN_CONFIG_DIR", "HF_ENDPOINT")
    # A model that is loaded in the process of the tests sets the last one; this window has to pull.
    environment = {name: models.environment[name] for name in names} | {"HF_HUB_OFFLINE": ""}
    with ready_window(tmp_path_factory, {}, environment) as workbench:
        yield workbench


def test_a_model_is_downloaded_only_after_the_user_said_so(vscode: Workbench, models: ModelsCommand) -> None:
    vscode.ask("click", selector=STATUS)
    choose(vscode, "Choose a Model")
    # The rows of the menu before may still be there.
    eventually(lambda: "".join(vscode.texts(CHOICE)[:1]).startswith("embedded116 M, in use"), "the models")
    choose(vscode, SMALL)
    eventually(lambda: "Licence" in "".join(vscode.texts(".monaco-dialog-box")), "the question")
    assert not models.hub.requests
    vscode.ask("click", selector='.monaco-dialog-box .monaco-button:has-text("Download")')
    told = f"{SMALL} is the model from now on"
    eventually(lambda: [text for text in vscode.texts(".statusbar-item") if told in text], "the model")
    assert (Path(models.environment["MIDSPAN_MODELS_DIR"]) / SMALL / "config.json").is_file()
    assert models.hub.requests
