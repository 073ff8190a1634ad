"""The keys of the VS Code extension, as its package.json binds them."""

import json
from pathlib import Path

from attrs import frozen

PACKAGE = Path(__file__).parent.parent / "editors" / "vscode" / "package.json"
EDITORS_OWN = {"!inSnippetMode", "!editorHasSelection", "!editorHasMultipleSelections", "!editorTabMovesFocus"}


@frozen
class Binding:
    command: str
    key: str
    when: frozenset[str]


def bindings() -> list[Binding]:
    keys = json.loads(PACKAGE.read_text("utf-8"))["contributes"]["keybindings"]
    return [Binding(each["command"], each["key"], frozenset(each["when"].split(" && "))) for each in keys]


def test_tab_stays_the_editors_with_a_selection_in_a_snippet_and_with_several_cursors() -> None:
    tabs = [each for each in bindings() if each.key == "tab"]
    assert tabs
    assert all(each.when >= EDITORS_OWN for each in tabs)


def test_one_key_always_goes_to_the_next_edit() -> None:
    always = {"midspan.nextEdit", "editorTextFocus", "!editorReadonly"}
    assert [each.key for each in bindings() if each.command == "midspan.followNextEdit" and each.when == always] == [
        "shift+alt+\\"
    ]
