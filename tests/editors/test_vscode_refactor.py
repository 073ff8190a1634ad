"""An edit made by hand in a real VS Code: repeated through the preview, and place by place with Tab."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from code_server import what_is_missing
from model_written import MODEL_WRITTEN, ModelWritten
from support.coder import coder_or_skip
from support.lsp_editor import engine_home
from support.remote_server import serving
from support.scripted_model import writes
from vscode_window import kept_on_failure, ready_window
from workbench import STATUS, Workbench, eventually

MISSING = what_is_missing()
QUIET = {"editor.inlineSuggest.enabled": False}
APP = """\
from http_client import get


def first(url):
    return get(url|)


def second(other):
    return get(other)


def third(last):
    return get(last)
"""
MORE = """\
from http_client import get


def page(number):
	return get(str(number))  # ➀ <b>&amp;


def local(get, url):
    return get(url)
"""
BROKEN = """\
from http_client import get

value = get(name)


def unfinished(:
"""
MANY = "from http_client import get\n" + "".join(f"value{number} = get(name{number})\n" for number in range(500))
CART = """\
def price(items, tax|):
    return sum(items)


def pay(cart):
    return price(cart.items, cart.tax)
"""
PAY = """
def pay(cart, currency):
    total = 0
    return price(cart.items, cart.tax)
"""
TYPED = ", timeout=10"
EDITED = APP.replace("|", TYPED)
PLACE = ".place:not(.following)"
MESSAGE = '.statusbar-item[id="status.extensionMessage"]'
TICKED = f"{PLACE}:has(.box:checked) .line-number"

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with ready_window(tmp_path_factory, {"midspan.memory": "off"}) as workbench:
        yield workbench


@pytest.fixture
def vscode(window: Workbench, request: pytest.FixtureRequest) -> Iterator[Workbench]:
    """The window with two files; the user has just added an argument to the first call of the first."""
    with kept_on_failure(window, request):
        window.server.configure(QUIET)
        (window.server.folder / "more.py").write_text(MORE, "utf-8")
        window.open("app.py", APP)
        window.type(TYPED)
        yield window
    window.close_all()


def previewed(vscode: Workbench) -> list[str]:
    """Repeat the edit in the workspace; return the places of the preview."""
    vscode.choose_action("Repeat this edit in the workspace")
    return eventually(lambda: vscode.texts_in_webview(PLACE), "the preview")


def saved(vscode: Workbench) -> dict[str, str]:
    """Save all; return what is on the disk."""
    vscode.save_all()
    return {file.name: file.read_bytes().decode() for file in vscode.server.folder.glob("*.py")}


def is_offered(vscode: Workbench, line: int) -> bool:
    return f"⇥ next edit, line {line}" in vscode.decorations()


def test_the_edit_is_repeated_where_the_user_wants_and_undone(vscode: Workbench) -> None:
    (vscode.server.folder / "broken.py").write_text(BROKEN)
    places = previewed(vscode)
    assert [place.partition("as in")[0] for place in places] == ["line 9", "line 13", "line 3", "line 5"]
    assert places[3].endswith(
        "-\treturn get(str(number))  # ➀ <b>&amp;+\treturn get(str(number), timeout=10)  # ➀ <b>&amp;"
    )
    assert vscode.texts_in_webview(".left-out summary") == ["1 place left out"]
    assert vscode.texts_in_webview(".apply") == ["Apply 3 places"]
    assert vscode.texts_in_webview(TICKED) == ["line 9", "line 13", "line 5"]
    vscode.press("Space")
    eventually(lambda: vscode.texts_in_webview(TICKED) == ["line 13", "line 5"], "the place unticked")
    assert vscode.texts_in_webview(".file-head") == ["app.py1 of 2", "broken.py0 of 1", "more.py1 of 1"]
    vscode.press("Control+Enter")
    eventually(lambda: not vscode.texts_in_webview(PLACE), "the preview to close")
    applied = {
        "app.py": EDITED.replace("get(last)", "get(last, timeout=10)"),
        "broken.py": BROKEN,
        "more.py": MORE.replace("get(str(number))", "get(str(number), timeout=10)"),
    }
    # VS Code saves a refactoring of several files itself.
    eventually(lambda: not vscode.texts(".tab.dirty"), "VS Code to save both files")
    assert "2 places in 2 files changed and saved" in "".join(vscode.texts(MESSAGE))
    eventually(lambda: saved(vscode) == applied, "both files changed")
    vscode.press("Control+Z")
    before = {"app.py": EDITED, "broken.py": BROKEN, "more.py": MORE}
    eventually(lambda: saved(vscode) == before, "all to be as before")
    (vscode.server.folder / "broken.py").unlink()


def test_wide_places_are_a_group_that_one_key_takes(vscode: Workbench) -> None:
    (vscode.server.folder / "more.py").unlink()
    vscode.close_all()
    app = "import http\n\nhttp.get(one|)\nhttp.get(two)\nhttp.post(three)\n"
    vscode.open("app.py", app)
    vscode.type(TYPED)
    previewed(vscode)
    assert vscode.texts_in_webview(".file-head") == ["app.py1 of 1", "Wide: only what the edit changes is there0 of 1"]
    assert vscode.texts_in_webview(".apply") == ["Apply 1 place"]
    vscode.press("w")
    eventually(lambda: vscode.texts_in_webview(TICKED) == ["line 4", "app.py, line 5"], "the wide group to be ticked")
    vscode.press("Control+Enter")
    eventually(lambda: not vscode.texts_in_webview(PLACE), "the preview to close")
    all_of_them = app.replace("|", "").replace(")", ", timeout=10)")
    eventually(lambda: saved(vscode) == {"app.py": all_of_them}, "the wide place changed too")


def test_what_is_changed_in_the_editor_only_is_said_and_saved_on_request(vscode: Workbench) -> None:
    vscode.saved("app.py")
    vscode.choose_action("Repeat this edit in this file (2 places)")
    eventually(lambda: vscode.texts_in_webview(PLACE), "the preview")
    vscode.press("Control+Enter")
    told = "Midspan: 2 places in 1 file changed; 1 file is not saved. One Undo takes all of it back."
    eventually(lambda: told in vscode.notifications(), "the message")
    file = vscode.server.folder / "app.py"
    assert file.read_text() == EDITED
    vscode.press_button("Save All")
    applied = EDITED.replace("get(other)", "get(other, timeout=10)").replace("get(last)", "get(last, timeout=10)")
    eventually(lambda: file.read_text() == applied, "the file saved")
    vscode.command("View: Focus Active Editor Group")  # The click was on the message.
    vscode.press("Control+Z")
    eventually(lambda: saved(vscode)["app.py"] == EDITED, "all to be as before")


def test_a_search_can_be_cancelled(vscode: Workbench) -> None:
    many = vscode.server.folder / "many"
    many.mkdir()
    for number in range(300):
        (many / f"file{number}.py").write_text(MANY)
    vscode.command("Midspan: Repeat My Last Edit in the Workspace")
    eventually(lambda: any(" of 302 files" in line for line in vscode.notifications()), "the progress")
    vscode.press_button("Cancel")
    eventually(lambda: not vscode.notifications(), "the search to end")
    shutil.rmtree(many)
    assert not vscode.texts_in_webview(PLACE)
    assert saved(vscode) == {"app.py": EDITED, "more.py": MORE}


def test_a_file_that_changed_meanwhile_is_told_and_computed_again(vscode: Workbench) -> None:
    previewed(vscode)
    vscode.press("Enter")
    eventually(lambda: vscode.cursor_is_at(9), "the place in the editor")
    vscode.type("#")
    eventually(lambda: vscode.texts_in_webview(".warning") == ["app.py has changed since.Compute Again"], "the warning")
    vscode.ask("webviewClick", selector=".apply")
    refused = "app.py has changed since its places were found; run the action again"
    eventually(lambda: vscode.texts_in_webview(".warning") == [f"{refused}Compute Again"], "what the server says")
    assert saved(vscode)["more.py"] == MORE
    vscode.focus_editor()
    vscode.press("Backspace")
    eventually(lambda: vscode.texts(".tab.dirty"), "the change taken back")
    vscode.ask("webviewClick", selector=".again")
    eventually(lambda: vscode.texts_in_webview(".warning") == [""], "the new preview")
    vscode.press("Escape")
    eventually(lambda: not vscode.texts_in_webview(PLACE), "the preview to close")


def test_tab_goes_through_all_places(vscode: Workbench) -> None:
    for line in (9, 13):
        eventually(partial(is_offered, vscode, line), f"the hint to line {line}")
        assert TYPED in vscode.decorations()
        vscode.press("Tab")
        eventually(partial(vscode.cursor_is_at, line), f"line {line}")
        eventually(lambda: any(text.startswith("⇥ take this edit") for text in vscode.decorations()), "the other hint")
        vscode.press("Tab")
    eventually(lambda: "⇥ next edit, more.py:5" in vscode.decorations(), "the place in the other file")
    # The second Tab comes before the file is open.
    vscode.press("Tab")
    vscode.press("Tab")
    eventually(lambda: vscode.texts('.tab.active.dirty[data-resource-name="more.py"]'), "the other file edited")
    everything = {
        "app.py": EDITED.replace("get(other)", f"get(other{TYPED})").replace("get(last)", f"get(last{TYPED})"),
        "more.py": MORE.replace("str(number))", f"str(number){TYPED})"),
    }
    eventually(lambda: saved(vscode) == everything, "all places edited")
    assert not vscode.decorations()


def test_tab_indents_where_the_user_begins_a_line(vscode: Workbench) -> None:
    eventually(partial(is_offered, vscode, 9), "the hint")
    for key in ("Control+Home", "ArrowDown", "Tab"):
        vscode.press(key)
    assert vscode.saved("app.py") == EDITED.replace("\n\n", "\n    \n", 1)


def test_escape_ends_it_for_good(vscode: Workbench) -> None:
    eventually(partial(is_offered, vscode, 9), "the hint")
    vscode.press("Escape")
    eventually(lambda: not vscode.decorations(), "the hint to go")
    for key in ("Control+Home", "ArrowDown", "Tab"):
        vscode.press(key)
    assert vscode.saved("app.py") == EDITED.replace("\n\n", "\n    \n", 1)
    assert not vscode.decorations()


def test_one_of_several_answers_is_chosen_for_the_selection(vscode: Workbench) -> None:
    before = "def area(radius: float) -> float:\n    return 3.14 * radius\n\n\ndef double(value: float) -> float:\n"
    # The embedded model is seldom sure of another answer.
    vscode.server.configure({"midspan.gate": 0})
    vscode.open("answers.py", f"{before}    return |value + value\n")
    vscode.press("Shift+End")
    vscode.choose_action("Refill the selection")
    places = eventually(lambda: vscode.texts_in_webview(PLACE), "the answers")
    assert vscode.texts_in_webview(f"{PLACE}:has(:checked)") == places[:1]
    for _ in places[1:]:
        vscode.press("ArrowDown")
    vscode.press("Space")
    eventually(lambda: vscode.texts_in_webview(f"{PLACE}:has(:checked)") == places[-1:], "the last answer chosen")
    vscode.press("Control+Enter")
    eventually(lambda: not vscode.texts_in_webview(PLACE), "the preview to close")
    answer = places[-1].rpartition("+    ")[2]
    eventually(lambda: saved(vscode)["answers.py"] == f"{before}    {answer}\n", "the answer in its place")
    vscode.press("Control+Z")
    eventually(lambda: saved(vscode)["answers.py"] == f"{before}    return value + value\n", "the selection as before")
    vscode.server.configure({})
    (vscode.server.folder / "answers.py").unlink()


def test_missing_annotations_are_added_from_the_menu(vscode: Workbench) -> None:
    text = "def first(a: int) -> int:\n    return a\n\n\ndef second(b=True):\n    print(b)\n"
    vscode.open("typed.py", text.replace("second", "sec|ond"))
    vscode.choose_action("Add 2 annotations")
    eventually(lambda: vscode.texts_in_webview(PLACE), "the preview")
    vscode.press("Control+Enter")
    filled = text.replace("second(b=True):", "second(b: bool = True) -> None:")
    eventually(lambda: saved(vscode)["typed.py"] == filled, "the annotations")
    vscode.press("Control+Z")
    eventually(lambda: saved(vscode)["typed.py"] == text, "the file as before")
    (vscode.server.folder / "typed.py").unlink()


def test_pasted_code_is_adapted_from_the_menu(vscode: Workbench) -> None:
    vscode.open("source.py", "    again = self.client.get(uri)\n    again.close()\n")
    for key in ("Control+A", "Control+C"):
        vscode.press(key)
    vscode.open("load.py", "def load(session, url):\n    first = session.get(url)\n    other = 1\n|    return first\n")
    vscode.press("Control+V")
    pasted = eventually(lambda: "again" in saved(vscode)["load.py"] and saved(vscode)["load.py"], "the paste")
    vscode.press("ArrowUp")
    vscode.choose_action("Adapt the pasted code to this file")
    eventually(lambda: vscode.texts_in_webview(PLACE), "the preview")
    vscode.press("Control+Enter")
    adapted = str(pasted).replace("self.client.get(uri)", "session.get(url)")
    eventually(lambda: saved(vscode)["load.py"] == adapted, "the names of the file")
    for name in ("source.py", "load.py"):
        (vscode.server.folder / name).unlink()


@pytest.mark.parametrize("case", MODEL_WRITTEN, ids=lambda case: case.command)
def test_what_a_larger_model_writes_is_previewed_applied_and_undone(case: ModelWritten, vscode: Workbench) -> None:
    home = Path(os.environ["MIDSPAN_RUNTIME_DIR"])
    with serving() as model, engine_home(home, model.model("openai")):
        model.behaviour = writes([(case.written, 0.99)])
        vscode.server.configure({**QUIET, "midspan.model": model.model("openai")})
        eventually(lambda: any("qwen" in shown for shown in vscode.texts(STATUS)), "the other model")
        vscode.open("empty.py", case.marked)
        vscode.choose_action(case.action)
        eventually(lambda: vscode.texts_in_webview(PLACE), "the preview")
        vscode.press("Control+Enter")
        eventually(lambda: saved(vscode)["empty.py"] == case.filled, "what the model wrote")
        vscode.press("Control+Z")
        eventually(lambda: saved(vscode)["empty.py"] == case.text, "the file as before")
    (vscode.server.folder / "empty.py").unlink()


def test_a_model_for_edits_offers_what_no_rule_knows(window: Workbench, request: pytest.FixtureRequest) -> None:
    coder = coder_or_skip()
    with kept_on_failure(window, request), engine_home(Path(os.environ["MIDSPAN_RUNTIME_DIR"]), coder):
        window.server.configure({**QUIET, "midspan.editsModel": str(coder)})
        window.open("cart.py", CART)
        window.type(", currency")
        eventually(partial(is_offered, window, 6), "the hint to the call")
        window.press("Tab")
        eventually(partial(window.cursor_is_at, 6), "the call")
        window.press("Tab")
        eventually(lambda: "price(cart.items, cart.tax, " in window.saved("cart.py"), "the call changed")
    window.close_all()


def test_calls_follow_a_changed_signature_in_its_file_and_in_another(
    window: Workbench, request: pytest.FixtureRequest
) -> None:
    own = "def price(items, tax|):\n    return sum(items) + tax\n\n"
    with kept_on_failure(window, request):
        window.server.configure(QUIET)
        (window.server.folder / "pay.py").write_text(f"from cart import price\n\n{PAY}", "utf-8")
        window.open("cart.py", own + PAY)
        window.type(", currency")
        eventually(partial(is_offered, window, 7), "the hint to the call")
        assert ", currency" in window.decorations()
        window.press("Tab")
        eventually(partial(window.cursor_is_at, 7), "the call")
        window.press("Tab")
        eventually(lambda: "⇥ next edit, pay.py:6" in window.decorations(), "the call in the other file")
        window.press("Tab")
        eventually(lambda: window.texts('.tab.active[data-resource-name="pay.py"]'), "the other file")
        eventually(lambda: ", currency" in window.decorations(), "the argument there")
        window.press("Tab")
        followed = PAY.replace("cart.tax)", "cart.tax, currency)")
        expected = {
            "cart.py": own.replace("|", ", currency") + followed,
            "pay.py": f"from cart import price\n\n{followed}",
        }
        eventually(lambda: expected.items() <= saved(window).items(), "both calls changed")
        assert not window.decorations()
    window.close_all()
    (window.server.folder / "pay.py").unlink()
