"""Several guesses at one place in a real VS Code: Alt+] and Alt+[ go through them.

The engine asks a real HTTP server on loopback: how many guesses our own model has is up to the machine.
"""

from collections.abc import Iterator

import pytest
from code_server import what_is_missing
from support.remote_server import ModelServer
from support.scripted_model import guesses
from vscode_window import TALKATIVE, ready_window
from workbench import Workbench, eventually

MISSING = what_is_missing()
NEXT, PREVIOUS = "Alt+BracketRight", "Alt+BracketLeft"

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def window(module_server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    settings = {**TALKATIVE, "midspan.model": module_server.model("openai"), "midspan.memory": "off"}
    with ready_window(tmp_path_factory, settings) as workbench:
        yield workbench


def go(vscode: Workbench, key: str, ghost: str) -> None:
    """Press a key, and wait until this is the ghost text."""
    vscode.press(key)
    eventually(lambda: vscode.ghost() == ghost, f"{ghost} after {key}")


def test_who_asked_goes_through_the_guesses_and_takes_one(vscode: Workbench, module_server: ModelServer) -> None:
    module_server.behaviour = guesses("open()", "close()", "dial()")
    vscode.open("asked.py", "link = |\n")
    go(vscode, "Alt+Backslash", "open()")
    go(vscode, NEXT, "close()")
    go(vscode, NEXT, "dial()")
    go(vscode, NEXT, "open()")
    go(vscode, PREVIOUS, "dial()")
    vscode.press("Tab")
    assert vscode.saved("asked.py") == "link = dial()\n"


def test_what_typing_has_shown_is_not_lost_among_the_guesses(vscode: Workbench, module_server: ModelServer) -> None:
    module_server.behaviour = guesses("open()", "close()", "dial()")
    vscode.open("typed.py", "link = |\n")
    go(vscode, "x", "open()")
    module_server.behaviour = guesses("close()", "dial()", "call()")
    go(vscode, NEXT, "close()")
    go(vscode, PREVIOUS, "open()")
    go(vscode, PREVIOUS, "dial()")
    go(vscode, NEXT, "open()")
    vscode.press("Tab")
    assert vscode.saved("typed.py") == "link = xopen()\n"
