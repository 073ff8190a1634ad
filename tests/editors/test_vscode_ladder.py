"""A larger model in a real VS Code: offered once in a message, installed by its button while the old one answers."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from code_server import what_is_missing
from support.ladder_hub import PATIENT, RUNGS, ladder_hub
from vscode_window import ready_window
from workbench import Workbench, eventually

from engine.library.store import chosen_model
from lsp_server.requests.ladder import FIRST_LOOK_FILLS

MISSING = what_is_missing()

_PAUSE_S = 0.5
"""The next key cancels a fill that is not answered yet, and such a one does not count."""

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    settings = {f"midspan.{name}": value for name, value in PATIENT.items()}
    with (
        ladder_hub(tmp_path_factory.mktemp("ladder")),
        ready_window(tmp_path_factory, {**settings, "midspan.model": "default"}) as workbench,
    ):
        yield workbench
        subprocess.run([sys.executable, "-m", "engine.cli", "engine", "stop"], capture_output=True, check=False)


def test_a_larger_model_is_offered_and_installed(vscode: Workbench) -> None:
    vscode.open("add.py", "def add(a, b):\n    return |\n")

    def is_offered() -> bool:
        return any("(measured here)" in text for text in vscode.notifications())

    for _ in range(10 * FIRST_LOOK_FILLS):
        if is_offered():
            break
        vscode.type("a")
        time.sleep(_PAUSE_S)
    eventually(is_offered, "the offer")
    vscode.press_button("Install")
    eventually(lambda: any("answers from now on" in text for text in vscode.notifications()), "the change over")
    assert chosen_model().model in RUNGS
