"""Ghost text in a real VS Code, frame by frame, where the editor closes a bracket by itself."""

import pytest
from code_server import what_is_missing
from workbench import GHOST_INLINE, GHOST_LINES, Workbench, eventually

MISSING = what_is_missing()
KNOWN = "destination = unlikely_name(other_thing, {4711: 'something'}, further_thing, last_thing_of_all)\n" * 3

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


def test_ghost_text_stays_where_the_editor_closes_a_bracket(vscode: Workbench) -> None:
    vscode.open("stays.py", f"{KNOWN}|")

    def suggested() -> str | None:
        # The file is learned a moment after it was opened, so the line is typed again until then.
        for key in ("End", "Shift+Home", "Delete"):
            vscode.press(key)
        vscode.type("destination = unlikely_name")
        ghost = vscode.wait_for_ghost(2.0)
        return ghost if ghost.startswith("(other_") else None  # Its length depends on the key that it came at.

    ghost = str(eventually(suggested, "the known line"))
    assert ")" not in ghost, "this is the start of a line, which ends inside the bracket"
    vscode.ask("watch", inline=GHOST_INLINE, lines=GHOST_LINES, menu=".no-menu", entry=".no-menu")
    vscode.ask("pressAll", keys=["("])
    eventually(lambda: vscode.ghost().startswith("other_"), "the rest of the ghost")
    ghosts = [screen["ghost"].strip() for screen in vscode.ask("screens")]
    assert "" not in ghosts, f"it flickers: {ghosts}"
    vscode.press("Tab")
    line = vscode.saved("stays.py").removeprefix(KNOWN)
    assert line == f"destination = unlikely_name{ghost})"
