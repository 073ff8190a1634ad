"""What is held back comes at a pause, in a real VS Code with the default gate. A real HTTP server writes the texts."""

from collections.abc import Iterator

import pytest
from code_server import what_is_missing
from support.remote_server import ModelServer
from support.scripted_model import writes
from vscode_window import TALKATIVE, ready_window
from workbench import Workbench, eventually

MISSING = what_is_missing()

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def window(module_server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    model = {"midspan.model": module_server.model("openai"), "midspan.memory": "off"}
    with ready_window(tmp_path_factory, {**TALKATIVE, "midspan.gate": "normal", **model}) as workbench:
        yield workbench


def test_a_single_character_comes_once_typing_stops_and_tab_takes_it(
    vscode: Workbench, module_server: ModelServer
) -> None:
    module_server.behaviour = writes([("b", 0.68)])
    vscode.open("sub.py", "def sub(a, b):\n    return a -|\n")
    vscode.press("Space")
    eventually(lambda: vscode.ghost() == "b", "what was held back")
    vscode.press("Tab")
    assert vscode.saved("sub.py") == "def sub(a, b):\n    return a - b\n"
