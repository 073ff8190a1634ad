"""What a user decides in a real VS Code: to ask, to take a part, to see suggestions only when asked, to snooze."""

import pytest
from code_server import what_is_missing
from vscode_typing import choose, count, type_until_ghost
from workbench import STATUS, Workbench, eventually

MISSING = what_is_missing()
FOX = "The quick brown fox jumps over|\n"
SENTENCE = " the lazy dog and then some more of it"
ASK = "Alt+Backslash"
HELD_BACK = '.glyph-margin-widgets [class*="TextEditorDecorationType"]'

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


def test_suggest_now_works_from_the_palette_whatever_the_gate(vscode: Workbench) -> None:
    vscode.server.configure({"midspan.gate": 1})
    vscode.open("palette.txt", FOX)
    vscode.command("Midspan: Suggest Now")
    ghost = eventually(vscode.ghost, "the best guess")
    vscode.press("Tab")
    assert vscode.saved("palette.txt") == FOX.replace("|", ghost)


def test_suggest_now_has_a_key(vscode: Workbench) -> None:
    vscode.server.configure({"midspan.gate": 1})
    vscode.open("key.py", "values = [1, 2, 3]\nfirst = |\n")
    vscode.press(ASK)
    ghost = eventually(vscode.ghost, "the best guess")
    vscode.press("Tab")
    assert vscode.saved("key.py") == f"values = [1, 2, 3]\nfirst = {ghost}\n"


@pytest.mark.parametrize("asked", ["palette", "key"])
def test_a_silence_has_its_reason_in_a_message_and_in_the_tooltip(vscode: Workbench, asked: str) -> None:
    vscode.server.configure({"midspan.gate": 1})
    vscode.open(f"silent-{asked}.py", "total = |\n")
    vscode.type("a")

    reason = "unsure: "
    eventually(
        lambda: f"No suggestion: {reason}" in str(vscode.ask("attribute", selector=STATUS, name="aria-label")),
        "the tooltip",
    )
    assert not vscode.texts(HELD_BACK), "only who asks for it gets a mark"
    if asked == "palette":
        vscode.command("Midspan: Why No Suggestion?")
    else:
        vscode.press("Shift+Alt+Slash")
    eventually(
        lambda: [line for line in vscode.notifications() if line.startswith(f"Midspan: {reason}")], "the message"
    )
    vscode.command("Notifications: Clear All Notifications")


def test_a_mark_says_what_the_gate_held_back_until_the_user_asks_for_it(vscode: Workbench) -> None:
    vscode.server.configure({"midspan.gate": 1, "midspan.heldBack": True})
    vscode.open("held_back.py", "values = [1, 2, 3]\nfirst = |\n")
    vscode.type("val")
    eventually(lambda: vscode.texts(HELD_BACK), "the mark")
    assert vscode.ghost() == ""

    vscode.press("ArrowUp")
    eventually(lambda: not vscode.texts(HELD_BACK), "no mark on another line")

    vscode.press("ArrowDown")
    vscode.press("End")
    vscode.type("u")
    eventually(lambda: vscode.texts(HELD_BACK), "the mark")
    vscode.press("Delete")
    eventually(lambda: not vscode.texts(HELD_BACK), "no mark after a key")
    eventually(lambda: vscode.texts(HELD_BACK), "the mark again")
    vscode.press(ASK)
    eventually(lambda: vscode.ghost() and not vscode.texts(HELD_BACK), "what was held back, and no mark")


def test_after_tab_the_next_suggestion_comes_without_a_key(vscode: Workbench) -> None:
    odd = "destination_of_everything = unlikely_name(other_thing, 4711)\n"
    vscode.server.configure({"midspan.maxTokens": 4})  # So that one suggestion is not all of the line.
    vscode.open("next.py", f"{odd * 3}|\n")
    typed, first = type_until_ghost(vscode, "destination_of_everything = unlik")
    vscode.press("Tab")
    eventually(lambda: vscode.ghost() not in ("", first), "the next suggestion")
    second = vscode.ghost()
    vscode.press("Tab")
    assert vscode.saved("next.py").startswith(f"{odd * 3}{typed}{first}{second}")


def test_a_word_can_be_accepted_with_the_key_of_neovim(vscode: Workbench) -> None:
    vscode.open("word.txt", FOX)
    typed, ghost = type_until_ghost(vscode, SENTENCE, at_least=5)
    vscode.press("Alt+ArrowRight")
    text = vscode.saved("word.txt")
    taken = text.removeprefix(FOX.partition("|")[0] + typed).removesuffix("\n")
    assert taken
    assert ghost.startswith(taken)


def test_the_rest_of_the_line_can_be_accepted_with_a_key(vscode: Workbench) -> None:
    vscode.open("line.txt", FOX)
    typed, ghost = type_until_ghost(vscode, SENTENCE, at_least=5)
    vscode.press("Alt+End")
    assert vscode.saved("line.txt") == FOX.replace("|", typed + ghost.partition("\n")[0])


def test_tab_takes_a_suggestion_by_line_if_the_setting_says_so(vscode: Workbench) -> None:
    body = "    first = unlikely_name(values, 4711)\n    second = unlikely_name(first, 4711)\n    return second\n"
    functions = "".join(f"def odd_{name}(values):\n{body}\n\n" for name in ("one", "two", "three"))
    text = f"{functions}def odd_four(values):|\n"
    vscode.server.configure({"midspan.tab": "by line", "midspan.maxTokens": 64})
    vscode.open("by_line.py", text)
    vscode.press("Enter")
    vscode.press(ASK)
    # The further lines may be drawn before the first one.
    ghost = eventually(lambda: vscode.ghost() if vscode.ghost().startswith("first") else "", "several lines")
    lines = ghost.splitlines()
    assert len(lines) > 1
    vscode.press("Tab")
    eventually(lambda: vscode.ghost() not in ("", ghost), "the rest of them")
    assert vscode.ghost().strip().splitlines()[0] == lines[1].strip()
    vscode.press("Tab")
    written = vscode.saved("by_line.py").removeprefix(text.partition("|")[0]).split()
    assert written == " ".join(lines[:2]).split()


def test_in_the_subtle_mode_ghost_text_comes_only_on_a_key(vscode: Workbench) -> None:
    vscode.server.configure({"midspan.automatic": False})
    vscode.open("subtle.txt", FOX)
    vscode.wait_for_status("subtle")
    asked = count(vscode, "asked")
    vscode.type(" the lazy")
    assert vscode.wait_for_ghost(1.0) == ""
    assert count(vscode, "asked") == asked
    vscode.press("Escape")
    vscode.press(ASK)
    assert eventually(vscode.ghost, "what was asked for")


def test_a_snooze_begins_and_ends_in_the_menu_of_the_status_item(vscode: Workbench) -> None:
    vscode.open("snooze.txt", FOX)
    vscode.ask("click", selector=STATUS)
    choose(vscode, "Snooze for 5 Minutes")
    vscode.wait_for_status("snoozed")
    vscode.type(" the")
    assert vscode.wait_for_ghost(1.0) == ""
    vscode.press(ASK)
    assert eventually(vscode.ghost, "what was asked for")
    vscode.press("Escape")
    vscode.ask("click", selector=STATUS)
    choose(vscode, "End the Snooze")
    vscode.wait_for_status("ready")
    type_until_ghost(vscode, " lazy dog and then some more of it")


def test_the_menu_of_the_status_item_switches_to_the_subtle_mode_and_back(vscode: Workbench) -> None:
    vscode.open("menu.txt", FOX)
    vscode.ask("click", selector=STATUS)
    choose(vscode, "Suggest Only When Asked")
    vscode.wait_for_status("subtle")
    vscode.ask("click", selector=STATUS)
    choose(vscode, "Suggest While Typing")
    vscode.wait_for_status("ready")
    type_until_ghost(vscode, SENTENCE)


def test_the_menu_of_the_status_item_opens_statistics_and_settings(vscode: Workbench) -> None:
    vscode.open("other.txt", FOX)
    vscode.ask("click", selector=STATUS)
    choose(vscode, "Statistics")
    assert eventually(lambda: [line for line in vscode.notifications() if " accepted, " in line], "the counts")
    vscode.ask("click", selector=STATUS)
    choose(vscode, "Settings")
    names = eventually(lambda: vscode.texts(".settings-editor .setting-item-label"), "the settings")
    assert names[:3] == ["Enabled", "Gate", "Automatic"]

    def closed() -> bool:
        vscode.press("Escape")
        return not vscode.texts(".settings-editor")

    eventually(closed, "the settings to close")


def test_a_suggestion_is_shown_beside_the_menu_if_the_user_wants_that(vscode: Workbench) -> None:
    vscode.server.configure(
        {"editor.wordBasedSuggestions": "currentDocument", "editor.quickSuggestions": {"other": "on"}}
    )
    vscode.command("Midspan: Show Suggestions Beside the Completion Menu")
    settings = vscode.server.root / "data" / "User" / "settings.json"
    # The file may be half written when it is read.
    eventually(lambda: '"editor.suggest.selectionMode": "never"' in settings.read_text("utf-8"), "the setting")
    vscode.open("beside.txt", "the lazily lazier lazybones\n|\n")
    vscode.type("The quick brown fox jumps over the l")
    eventually(lambda: vscode.menu() and vscode.ghost(), "the menu and ghost text")
    ghost = vscode.ghost()
    vscode.press("Tab")
    text = f"the lazily lazier lazybones\nThe quick brown fox jumps over the l{ghost}\n"
    assert vscode.saved("beside.txt") == text
