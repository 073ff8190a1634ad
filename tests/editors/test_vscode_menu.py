"""Ghost text in a real VS Code where its completion menu is open."""

import time
from collections.abc import Iterator

import pytest
from code_server import what_is_missing
from vscode_window import ready_window
from workbench import Workbench, eventually

MISSING = what_is_missing()
MENU = {
    "editor.quickSuggestions": {"other": "on", "comments": "off", "strings": "off"},
    "editor.wordBasedSuggestions": "currentDocument",
}

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with ready_window(tmp_path_factory, {"midspan.budgetMs": 5000}) as workbench:
        yield workbench


def type_until(vscode: Workbench, line: str, ghost: str, menu: str) -> None:
    """Type `line` until there is this ghost text, and the menu with this entry.

    The file is learned a moment after it was opened, so the line is typed again until then.
    """

    def drawn() -> bool:
        for key in ("End", "Shift+Home", "Delete"):
            vscode.press(key)
        vscode.type(line)
        deadline = time.monotonic() + 3.0
        while time.monotonic() < deadline:
            if vscode.ghost() == ghost and vscode.menu()[:1] == [menu]:
                return True
            time.sleep(0.03)
        return False

    eventually(drawn, f"{ghost!r} after {line!r}")


def test_the_selected_entry_of_the_menu_is_not_drawn_once_more(vscode: Workbench) -> None:
    vscode.server.configure(MENU)
    known = "destination = unlikely_name\n" * 4
    vscode.open("entry.py", f"{known}|")
    type_until(vscode, "destination = unlik", "", menu="unlikely_name")
    vscode.press("Tab")
    eventually(lambda: not vscode.menu(), "the menu to close")
    assert vscode.saved("entry.py") == f"{known}destination = unlikely_name"


def test_what_goes_beyond_the_selected_entry_of_the_menu_is_drawn_too(vscode: Workbench) -> None:
    vscode.server.configure({**MENU, "midspan.gate": 0})  # the last bracket is worth one key, and so often left out
    vscode.open("beyond.py", "{}|".format("origin = another_name(other_thing)\n" * 4))
    type_until(vscode, "origin = anoth", "er_name(other_thing)", menu="another_name")
