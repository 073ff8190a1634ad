"""The page of `midspan play` in a real Chromium, over a real engine."""

import gzip
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from play_browser import ROOT, Browser
from support.browser_driver import eventually

PAGE = ROOT / "engine" / "play" / "page"
NOBODY = 65534


def asked(address: str, question: str, fields: object = ()) -> httpx2.Response:
    """Return what `midspan play` answers to a question of a page."""
    url, _, token = address.partition("/play#")
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.post(f"{url}/play/api/{question}", json=fields or {}, headers=headers, trust_env=False, timeout=30)


def test_the_committed_page_is_what_its_sources_build_and_is_small(tmp_path: Path) -> None:
    if not (ROOT / "editors" / "play" / "node_modules" / "esbuild").exists() or shutil.which("node") is None:
        pytest.skip("esbuild is not here; `make editors` fetches it")
    subprocess.run(["node", "build.mjs", "--out", str(tmp_path)], cwd=ROOT / "editors" / "play", check=True)
    for built in tmp_path.iterdir():
        assert _content(built) == _content(PAGE / built.name), f"{built.name}: run `make play-page`"
    script = PAGE / "page.js.gz"
    assert len(_content(script)) <= 600_000
    assert script.stat().st_size <= 200_000


def _content(path: Path) -> bytes:
    """Return a file's content. Another zlib may have compressed it in another way."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_without_its_token_a_question_gets_403_and_nothing_else(address: str) -> None:
    url = address.partition("/play")[0] + "/play/api/hello"
    for headers in ({}, {"authorization": "Bearer wrong-wrong-wrong-wrong"}):
        answer = httpx2.post(url, json={}, headers=headers, trust_env=False)
        assert (answer.status_code, answer.content) == (403, b"")


@pytest.mark.parametrize("fragment", ["", "#wrong-wrong-wrong-wrong"], ids=["missing", "wrong"])
def test_a_page_without_its_token_says_so_in_one_line(address: str, browser: Browser, fragment: str) -> None:
    browser.ask("open", url=address.partition("#")[0] + fragment)
    told = "This address has no valid token. Open the one that midspan play printed last."
    eventually(lambda: browser.text("#problem") == told, "the line about the token")


def test_a_folder_without_rights_is_answered_in_one_line(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    script = (
        "import os, sys; from pathlib import Path; from engine.play.folder import Folder\n"
        f"if os.geteuid() == 0: os.setegid({NOBODY}); os.seteuid({NOBODY})  # root may read all\n"
        "try: print(Folder(Path(sys.argv[1])).files())\nexcept Exception as error: print(error)"
    )
    for each in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        each.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", script, str(closed)], capture_output=True, text=True)
    closed.chmod(0o755)
    assert done.stdout == f"the folder {closed} cannot be read: Permission denied\n", done.stderr


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("big.py", "big.py has 2.0 MB; the page opens files of up to 1 MB"),
        ("data.py", "data.py is binary: it has NUL bytes; choose a text"),
        ("latin.py", "latin.py is not UTF-8 text; save it as UTF-8 first"),
        ("none.py", "none.py is no file of the folder; choose one of the list"),
    ],
)
def test_a_file_that_is_no_text_for_the_page_is_answered_in_one_line(
    name: str, line: str, address: str, browser: Browser
) -> None:
    if not browser.is_open("files"):
        browser.ask("open", url=address, name="files")
        eventually(lambda: browser.count("#files option", "files") == 6, "the list of files")
    before = browser.text(".cm-content", "files")
    browser.ask("fill", selector="#file", text=name, name="files")
    browser.ask("press", key="Enter", name="files")
    eventually(lambda: browser.text("#problem", "files") == line, line)
    assert browser.text(".cm-content", "files") == before


def test_a_hole_is_filled_in_three_ways_scrubbed_and_taken_by_tab(address: str, browser: Browser) -> None:
    browser.ask("open", url=address)
    browser.settle()
    assert browser.count("#tiles .tile") > 0
    assert browser.value(
        "[...document.querySelectorAll('#cards .passes')].every(each => /pass/.test(each.textContent))"
    )
    browser.ask("click", selector=".card:nth-child(1)")  # left to right: it always takes several passes
    first = eventually(lambda: browser.text("#pass"), "the last pass")
    browser.ask("click", selector="#player button:nth-child(1)")
    eventually(lambda: browser.text("#pass") != first, "the pass before")
    ghost = browser.ghost()
    browser.ask("press", key="Tab")
    # Another text may be suggested after it.
    eventually(lambda: ghost in browser.text(".cm-content") and browser.text(".ghost") != ghost, "the ghost taken")
    assert browser.ask("elsewhere") == []


def test_a_fill_that_a_newer_text_overtakes_is_answered_with_409(address: str) -> None:
    place = {"page": "overtaken", "path": "overtaken.py", "at": 18}
    edits = itertools.count(1)

    def is_begun() -> bool:
        engine = asked(address, "engine").json()["engine"]
        return engine is not None and engine["active"] > 0

    def overtaken() -> bool:
        text = {**place, "text": "def area(w, h):\n  \n"}
        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(asked, address, "trace", {**text, "edit": next(edits), "rule": "left-to-right"})
            eventually(lambda: answer.done() or is_begun(), "the fill begun")
            newer = {**text, "text": f"{text['text']}# {next(edits)}\n", "edit": next(edits)}
            assert asked(address, "suggest", newer).status_code == 200
        assert answer.result().status_code in (200, 409)
        return answer.result().status_code == 409  # else it was done before

    eventually(overtaken, "a fill under way when a newer text comes")


def test_the_keyboard_alone_reaches_and_moves_everything(address: str, browser: Browser) -> None:
    browser.ask("open", url=address)
    browser.settle()
    browser.ask("press", key="Escape")  # without a ghost Tab leaves the text
    browser.tab_to("#cards .card")
    browser.ask("press", key="ArrowLeft")
    chosen = "document.activeElement.matches('#cards .card:first-child[aria-checked=true]')"
    eventually(lambda: browser.value(chosen), "left to right, chosen by an arrow")
    # Left to right takes several passes on every machine, so there is one before the last.
    passes = browser.tab_to("#player input", key="Shift+Tab") and browser.text("#pass")
    browser.ask("press", key="ArrowLeft")
    eventually(lambda: browser.text("#pass") != passes, "the pass before")
    browser.tab_to("#sudoku-next")
    grid = browser.text("#grid")
    browser.ask("press", key="Enter")
    eventually(lambda: browser.text("#grid") != grid, "another puzzle")


def test_the_heat_map_shows_what_else_was_likely_to_mouse_and_keyboard(address: str, browser: Browser) -> None:
    browser.ask("open", url=address)
    browser.settle()
    browser.ask("fill", selector="#file", text="area.py")
    browser.ask("press", key="Enter")
    eventually(lambda: "def area" in browser.text(".cm-content"), "the file")
    browser.ask("click", selector="#heat")
    eventually(lambda: browser.value("document.body.dataset.heat === 'done'"), "all lines looked at")
    levels = "new Set([...document.querySelectorAll('.heat')].map(each => each.className)).size"
    assert browser.count(".heat") >= 8
    assert browser.value(levels) >= 2
    browser.ask("hover", selector=".heat")
    eventually(lambda: re.fullmatch(r"\S+ .*%. Likeliest: (\S+ .*%(, )?){3}", browser.text(".heat-tip")), "the tooltip")
    browser.ask("click", selector=".cm-line")
    browser.ask("press", key="Home")
    eventually(lambda: browser.text("#heat-note").startswith("def "), "the token at the cursor")
    assert browser.ask("axe") == []
    browser.ask("press", key="End")
    browser.ask("type", text=" ")
    eventually(lambda: not browser.count(".heat"), "an edit removes the marks")


def test_a_sudoku_is_filled_from_all_sides_and_scrubbed(address: str, browser: Browser) -> None:
    browser.ask("open", url=address.replace("/play#", "/play?sudoku#"), name="sudoku")
    eventually(lambda: browser.value("document.body.dataset.sudoku === 'done'", "sudoku"), "the grid filled three ways")
    assert "Solved." in browser.text("#sudoku-cards", "sudoku")
    assert re.fullmatch(r"[1-9]{81}", browser.text("#grid", "sudoku"))
    browser.ask("click", selector="#sudoku-cards .card:nth-child(3)", name="sudoku")
    eventually(lambda: browser.text("#sudoku-pass", "sudoku").startswith("pass 82 of 82"), "left to right's last pass")
    browser.ask("click", selector="#sudoku-player button:nth-child(1)", name="sudoku")
    browser.ask("click", selector="#sudoku-player button:nth-child(1)", name="sudoku")
    eventually(lambda: browser.text("#sudoku-pass", "sudoku").startswith("pass 80 of 82"), "two passes back")
    assert browser.ask("axe", name="sudoku") == []


@pytest.mark.parametrize("how", [{}, {"dark": True}, {"width": 390, "height": 844}], ids=["light", "dark", "narrow"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    how: dict[str, bool | int], address: str, browser: Browser
) -> None:
    browser.ask("open", url=address, **how)
    browser.settle()
    assert browser.ask("axe") == []
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")


def test_two_pages_have_texts_of_their_own_and_survive_a_killed_engine(address: str, browser: Browser) -> None:
    for name in ("first", "second"):
        browser.ask("open", url=address, name=name)
        browser.settle(name)
    browser.ask("type", text="self.depth / ", name="second")
    eventually(lambda: "self.depth /" in browser.text(".cm-content", "second"), "the typed text")
    assert "self.depth /" not in browser.text(".cm-content", "first")
    browser.settle("second")
    killed = asked(address, "engine").json()["engine"]["pid"]
    assert [each["name"] for each in asked(address, "engine").json()["workspaces"]]
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: "ready" not in browser.text("#model", "first"), "the page saying that the engine is gone")
    browser.ask("type", text="s", name="second")
    eventually(lambda: "ready" in browser.text("#model", "second"), "the engine back")
    browser.ask("type", text="e", name="second")
    browser.settle("second")
    eventually(lambda: browser.text("#problem", "second") == "", "nothing wrong any more")
    assert "self.depth / se" in browser.text(".cm-content", "second")
    assert asked(address, "engine").json()["engine"]["pid"] != killed
