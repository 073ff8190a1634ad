"""The packaged extension in a real VS Code: what a user types, and what is on the screen and on the disk then."""

import os
import signal

import pytest
from code_server import what_is_missing
from vscode_typing import count, engine_fills, engine_fills_at_rest, engine_passes, type_until_ghost
from workbench import CHOICE, POSITION, STATUS, Workbench, eventually

from engine.client.address import runtime_paths_of
from engine.client.lock import read_record

MISSING = what_is_missing()
PLACE = ".place:not(.following)"
SENTENCE = " the lazy dog and then some more of it"

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


def test_tab_accepts_what_typing_has_shown(vscode: Workbench) -> None:
    vscode.open("tab.txt", "The quick brown fox jumps over|\n")
    typed, ghost = type_until_ghost(vscode, SENTENCE)
    vscode.press("Tab")
    assert vscode.saved("tab.txt") == f"The quick brown fox jumps over{typed}{ghost}\n"


def test_a_word_can_be_accepted(vscode: Workbench) -> None:
    vscode.open("word.txt", "The quick brown fox jumps over|\n")
    typed, ghost = type_until_ghost(vscode, SENTENCE)
    vscode.press("Control+ArrowRight")
    taken = vscode.saved("word.txt").removeprefix(f"The quick brown fox jumps over{typed}").removesuffix("\n")
    assert taken
    assert ghost.startswith(taken)
    assert vscode.ghost() in ("", ghost.removeprefix(taken))


def test_a_document_is_read_before_the_first_key(vscode: Workbench) -> None:
    fills, passes = engine_fills_at_rest(), engine_passes()
    lines = (f"def number_{number}(first, second):\n    return first + {number} * second\n\n\n" for number in range(40))
    (vscode.server.folder / "read.py").write_text("".join(lines))
    vscode.open_in_explorer("read.py")
    eventually(lambda: engine_passes() >= passes + 3, "the text around the cursor read")
    assert engine_fills() == fills


def test_escape_dismisses_and_is_messages_to_the_server(vscode: Workbench) -> None:
    dismissed = count(vscode, "dismissed")
    vscode.open("escape.txt", "The quick brown fox jumps over|\n")
    typed, _ = type_until_ghost(vscode, SENTENCE)
    vscode.press("Escape")
    eventually(lambda: not vscode.ghost(), "the ghost to go")
    eventually(lambda: count(vscode, "dismissed") == dismissed + 1, "the server to count it")
    assert vscode.saved("escape.txt") == f"The quick brown fox jumps over{typed}\n"


def test_escape_while_the_server_is_asked_for_more_dismisses_what_is_shown(vscode: Workbench) -> None:
    known = "destination_of_everything = unlikely_name(other_thing, 4711, further_thing, last_thing)\n" * 3
    vscode.server.configure({"midspan.gate": "eager"})
    dismissed = count(vscode, "dismissed")
    vscode.open("asked.txt", f"{known}|")
    _, ghost = type_until_ghost(vscode, "destination_of_everything = unlikely", at_least=5)
    record = read_record(runtime_paths_of("embedded").lock)
    assert record is not None
    os.kill(record.pid, signal.SIGSTOP)
    try:
        vscode.type(ghost[0])
        eventually(lambda: vscode.texts(f"{STATUS} .codicon-circle-outline"), "the engine asked for more of the start")
        vscode.type(ghost[1])  # This ends the request of the key before.
        assert vscode.ghost() == ghost[2:]
        vscode.press("Escape")
        eventually(lambda: not vscode.ghost(), "the ghost to go")
    finally:
        os.kill(record.pid, signal.SIGCONT)
    vscode.wait_for_status("ready")
    assert count(vscode, "dismissed") == dismissed + 1


def test_typing_along_keeps_the_ghost_and_asks_no_engine(vscode: Workbench) -> None:
    # Code as plain text: there is more to say about it than about foxes, and no bracket closes itself.
    before = "first = self.values[index]\nsecond ="
    vscode.open("along.txt", f"{before}|\n")
    typed, ghost = type_until_ghost(vscode, " self.values[index + 1] if self.values else None", at_least=3)
    asked = count(vscode, "asked")  # Not the engine's count: it has fills ahead in it.
    vscode.type(ghost[0])
    eventually(lambda: vscode.ghost() == ghost[1:], "the rest of the ghost")
    assert count(vscode, "asked") == asked
    vscode.type(ghost[1])  # The command's box has hidden the ghost.
    eventually(lambda: vscode.ghost() == ghost[2:], "the rest of the rest")
    vscode.press("Tab")
    assert vscode.saved("along.txt") == f"{before}{typed}{ghost}\n"


def test_in_the_middle_of_a_line_what_follows_is_not_repeated(vscode: Workbench) -> None:
    after = " jumps over the lazy dog."
    vscode.open("middle.txt", f"The quick|{after}\n")
    typed, ghost = type_until_ghost(vscode, " brown and rather shabby fox")
    assert not ghost.endswith(after)
    vscode.press("Tab")
    assert vscode.saved("middle.txt") == f"The quick{typed}{ghost}{after}\n"


def test_brackets_that_the_editor_closes_are_not_doubled(vscode: Workbench) -> None:
    vscode.open("brackets.jl", "total = |\n")
    vscode.type("combine(")
    typed, ghost = type_until_ghost(vscode, "first item and the second item of it")
    vscode.press("Tab")
    text = vscode.saved("brackets.jl")
    assert text == f"total = combine({typed}{ghost})\n"
    assert text.count("(") == text.count(")")


def test_the_completion_menu_keeps_its_tab(vscode: Workbench) -> None:
    vscode.server.configure({"editor.wordBasedSuggestions": "currentDocument"})
    vscode.open("menu.txt", "alphabetical order\n|\n")
    eventually(lambda: vscode.menu_for("alphab"), "the completion menu")
    vscode.press("Tab")
    eventually(lambda: not vscode.menu(), "the menu to close")
    assert vscode.saved("menu.txt") == "alphabetical order\nalphabetical\n"


def test_the_switch_turns_everything_off_and_on(vscode: Workbench) -> None:
    vscode.open("switch.txt", "The quick brown fox jumps over|\n")
    vscode.command("Midspan: Turn Suggestions On or Off")
    vscode.wait_for_status("off")
    fills = engine_fills_at_rest()
    vscode.type(" the lazy")
    assert vscode.wait_for_ghost(1.0) == ""
    assert engine_fills() == fills
    vscode.command("Midspan: Turn Suggestions On or Off")
    vscode.wait_for_status("ready")
    type_until_ghost(vscode, SENTENCE)


def test_one_language_can_be_switched_off(vscode: Workbench) -> None:
    vscode.open("language.jl", "total = |\n")
    vscode.command("Midspan: Turn Suggestions On or Off for This Language")
    vscode.wait_for_status("off")
    fills = engine_fills_at_rest()
    vscode.type("some of the items")
    assert vscode.wait_for_ghost(1.0) == ""
    assert engine_fills() == fills
    vscode.open("other.txt", "The quick brown fox jumps over|\n")
    vscode.wait_for_status("ready")
    type_until_ghost(vscode, SENTENCE)
    vscode.open("again.jl", "total = |\n")
    vscode.command("Midspan: Turn Suggestions On or Off for This Language")
    vscode.wait_for_status("ready")
    type_until_ghost(vscode, "some of the items and more")


def test_a_killed_engine_is_shown_and_comes_back(vscode: Workbench) -> None:
    vscode.open("killed.txt", "The quick brown fox jumps over|\n")
    type_until_ghost(vscode, SENTENCE)
    record = read_record(runtime_paths_of("embedded").lock)
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    eventually(lambda: vscode.shows("error"), "the status item to tell")
    vscode.open("recovers.txt", "The quick brown fox jumps over|\n")
    vscode.type(" ")
    vscode.wait_for_status("ready")
    type_until_ghost(vscode, SENTENCE)


def test_a_wrong_setting_is_messages_once_and_clearly(vscode: Workbench) -> None:
    vscode.server.configure({"midspan.budgetMs": "fast"})
    messages = eventually(lambda: [line for line in vscode.notifications() if "budgetMs" in line], "the message")
    assert messages == [
        'Midspan: the setting midspan.budgetMs is "fast"; allowed is a whole number from 20 to 5000; 500 is used'
    ]


def test_the_selection_is_filled_after_a_look_at_old_and_new(vscode: Workbench) -> None:
    vscode.open("selection.txt", "The quick brown|\nThe end.\n")
    vscode.press("Control+Shift+ArrowLeft")
    vscode.command("Midspan: Fill the Selection")
    old = eventually(lambda: vscode.texts_in_webview(f"{PLACE}:has(:checked) .removed code"), "what was there")
    (new,) = vscode.texts_in_webview(f"{PLACE}:has(:checked) .added code")
    assert old == ["The quick brown"]
    assert vscode.line() == "The quick brown"
    vscode.press("Control+Enter")
    eventually(lambda: not vscode.texts_in_webview(PLACE), "the preview to close")
    assert vscode.saved("selection.txt") == f"{new}\nThe end.\n"
    vscode.press("Control+Z")
    assert vscode.saved("selection.txt") == "The quick brown\nThe end.\n"


def test_a_selection_that_the_model_is_not_sure_of_is_left_alone(vscode: Workbench) -> None:
    vscode.server.configure({"midspan.gate": "normal"})
    vscode.open("unsure.txt", "The quick xylophone|\nThe end.\n")
    vscode.press("Control+Shift+ArrowLeft")
    vscode.command("Midspan: Fill the Selection")
    eventually(lambda: [line for line in vscode.notifications() if "sure enough" in line], "the reason")
    assert not vscode.texts_in_webview(PLACE)
    assert vscode.saved("unsure.txt") == "The quick xylophone\nThe end.\n"


def test_why_lists_the_places_of_the_suggestion_and_opens_the_chosen_one(vscode: Workbench) -> None:
    odd = "destination_of_everything = unlikely_name(other_thing, 4711)\n"
    vscode.server.configure({"midspan.maxTokens": 32})
    vscode.open("known.py", f"|first = 1\n{odd * 3}")
    vscode.open("why.py", "|\n")
    rest = odd.strip().removeprefix("destination_of_everything = unlik")

    def suggested() -> bool:
        # The file is learned a moment after it was opened, so the line is typed again until then.
        vscode.press("Control+A")
        vscode.type("destination_of_everything = unlik")
        return vscode.wait_for_ghost(2.0) == rest

    eventually(suggested, "the known line")
    vscode.press("Tab")
    vscode.command("Midspan: Why This Suggestion?")
    rows = eventually(lambda: [row for row in vscode.texts(CHOICE) if "as in" in row], "the places")
    assert len(rows) == 1
    assert f'{rest}" as in known.py:4, 3 of 3 times' in rows[0]
    assert "the model alone: " in rows[0]
    vscode.press("Enter")
    eventually(lambda: "Ln 4, Col 1" in vscode.texts(POSITION), "the place")
    assert vscode.texts('.tab.active[data-resource-name="known.py"]')


def test_a_wrong_server_path_is_messages_and_can_be_mended(vscode: Workbench) -> None:
    vscode.server.configure({"midspan.server.path": "/no/such/midspan-lsp"})
    vscode.wait_for_status("error")
    told = eventually(lambda: [line for line in vscode.notifications() if "path" in line], "the message")
    assert told == [
        'Midspan: the setting midspan.server.path is "/no/such/midspan-lsp", and no such program can be run; '
        "give the path of midspan-lsp, or empty the setting"
    ]
    vscode.server.configure({})
    vscode.wait_for_status("ready")
