"""What the page of `midspan play` shows and does at a hole, in a real Chromium over a real engine."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from play_browser import Browser, started
from support.browser_driver import eventually

HOLE = "    return abs(a.x - b.x) + "
RIGHT = "abs(a.y - b.y) + abs(a.z - b.z)"
TEXT = "document.querySelector('.cm-content').innerText"
SHIFTS = """new Promise(seen => new PerformanceObserver(list => seen(
  list.getEntries()
    .filter(each => each.value > 0.002)
    .flatMap(each => each.sources.map(({node}) => node).filter(node => node && !editor.contains(node)))
    .map(node => node.id || node.className || node.nodeName)
)).observe({type: 'layout-shift', buffered: true}))"""
"""What moved on the page, as Chromium counts it. Lines that move in the text are none: the user typed above them."""


@pytest.fixture
def page(address: str, browser: Browser) -> Browser:
    """Return the browser with a fresh page, whose hole is filled in all ways."""
    browser.ask("open", url=address)
    browser.settle()
    return browser


def open_file(browser: Browser, name: str, part: str) -> None:
    browser.ask("fill", selector="#file", text=name)
    browser.ask("press", key="Enter")
    eventually(lambda: part in browser.value(TEXT), f"{name} in the editor")


def test_it_opens_on_a_hole_that_denoising_fills_rightly_in_fewer_passes_than_left_to_right(page: Browser) -> None:
    assert HOLE in page.value(TEXT)
    assert page.text("#cards [aria-checked=true] .name") == "Denoising"
    assert page.value("[...document.querySelectorAll('#cards .text')].map(each => each.textContent)") == [RIGHT] * 3
    passes = "[...document.querySelectorAll('#cards .passes')].map(each => parseInt(each.textContent))"
    left_to_right, denoising, draft_and_verify = page.value(passes)
    assert draft_and_verify < left_to_right
    assert denoising < left_to_right
    # The canvas shows this way, from its first pass on, with masks.
    assert page.text("#pass").startswith(f"pass {denoising} of {denoising},")
    page.ask("press", key="Escape")
    page.tab_to("#player input")
    page.ask("press", key="Home")
    eventually(lambda: page.text("#pass").startswith(f"pass 1 of {denoising},"), "the first pass")
    assert page.count("#tiles .mask") > 1
    page.ask("press", key="End")
    eventually(lambda: page.text("#pass").startswith(f"pass {denoising} "), "the last pass")
    assert page.count("#tiles .mask") == 0


def test_what_is_pending_says_so_until_it_is_filled(home: Path, browser: Browser) -> None:
    pending = "document.querySelectorAll('.card.pending, #canvas.pending, #gate.pending').length"
    with started() as (address, process):
        browser.ask("open", url=address, name="pending")
        browser.settle("pending")
        assert browser.value(pending, "pending") == 0
        process.send_signal(signal.SIGSTOP)
        try:
            browser.ask("type", text="len(", name="pending")
            eventually(lambda: browser.value(pending, "pending") == 5, "three cards, the canvas and the gate pending")
            assert browser.text("#pass", "pending") == browser.text(".card .ms", "pending") == "pending"
            browser.ask("click", selector=".card:nth-child(1)", name="pending")
            assert browser.text("#pass", "pending") == "pending"
        finally:
            process.send_signal(signal.SIGCONT)
        browser.ask("type", text="a", name="pending")
        browser.settle("pending")
        assert browser.value(pending, "pending") == 0
        assert browser.text("#problem", "pending") == ""
        assert "ms" in browser.text("#pass", "pending")


def test_a_ghost_is_taken_by_word_and_by_line_and_dismissed(page: Browser) -> None:
    page.ghost()
    page.ask("press", key="Escape")
    eventually(lambda: not page.count(".ghost"), "nothing to take")
    ghost = page.ghost()
    word = ghost[: ghost.index("(")]
    page.ask("press", key="Control+ArrowRight")
    eventually(lambda: HOLE + word + ghost[len(word) :] in page.value(TEXT), "its first word")
    assert page.text(".ghost") == ghost[len(word) :]
    page.ask("press", key="Control+ArrowDown")
    # Another line may be suggested after it.
    eventually(lambda: not page.count(".ghost") or page.text(".ghost") != ghost[len(word) :], "the rest of its line")
    assert HOLE + ghost in page.value(TEXT)


def test_a_token_says_how_likely_it_is_and_opens_the_place_that_it_came_from(page: Browser) -> None:
    open_file(page, "other.py", "'comp")
    page.ask("press", key="Control+End")
    page.ask("press", key="ArrowUp")
    page.ask("press", key="End")

    def remembered() -> bool:
        # The workspace may be learned after the first fill.
        page.ghost()
        page.ask("click", selector="#cards .card:nth-child(3)")
        page.ask("click", selector="#tiles .tile.verified")
        return "rectangle.py:3" in page.text("#token")

    eventually(remembered, "the place")
    assert " drafted, then verified, " in page.text("#token")
    shares = page.value("[...document.querySelectorAll('#shares .value')].map(each => parseInt(each.textContent))")
    assert shares[2] > 50
    page.ask("click", selector="#token .link")
    eventually(lambda: "class Rectangle" in page.value(TEXT), "the file")
    eventually(lambda: "the area of the rectangle" in page.text(".hole-line"), "the line")


def test_what_only_closes_brackets_is_marked_as_hidden_from_the_model(page: Browser) -> None:
    page.ask("press", key="Control+End")
    page.ask("type", text="print(box.")
    page.ask("type", text=")")
    page.ask("press", key="ArrowLeft")
    eventually(lambda: page.text(".from-model-hidden") == ")", "the bracket struck through")
    assert "what only closes brackets after it is hidden from the model" in page.text("#cut")


def test_the_passes_play_by_themselves_at_a_speed_that_is_chosen(page: Browser) -> None:
    page.ask("click", selector="#cards .card:nth-child(1)")
    page.ask("click", selector="#player button[aria-label='Speed 1']")
    assert page.count("#player button[aria-label='Speed 2']") == 1
    last = page.text("#pass")
    page.ask("click", selector="#player .play")
    eventually(lambda: page.text("#pass").startswith("pass 1 "), "the first pass")
    eventually(lambda: page.text("#pass") == last, "the last pass")
    eventually(lambda: page.count("#player button[aria-label='Play']"), "the end")
    page.ask("click", selector="#roll canvas")
    eventually(lambda: page.text("#pass") != last, "a pass chosen in the roll")


def test_the_page_says_what_decided_and_what_the_engine_does(page: Browser) -> None:
    page.ghost()
    assert "The model wrote" in page.text("#verdict")
    assert page.text("#verdict .reason").startswith("Shown: ")
    facts = "[...document.querySelectorAll('#facts dd')].map(each => each.textContent)"
    eventually(lambda: page.value(facts)[2].endswith("in all"), "the passes of the engine")
    model, runs_on, _, queue, cache, memory, workspaces = page.value(facts)
    assert "parameters" in model
    assert runs_on.startswith("cpu, int4, ")
    assert queue.endswith(" waiting")
    assert cache.endswith(" held")
    assert "tokens" in memory
    assert "tokens" in workspaces
    assert "M" in page.value("document.querySelector('#plot .dots').getAttribute('d')")
    page.ask("press", key="Control+End")
    page.ask("type", text="zq = ")
    page.settle()
    assert page.text("#verdict .reason")


def test_light_and_dark_are_a_button(page: Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.value(paper)
    page.ask("click", selector="#theme")
    assert page.value(paper) != light
    assert page.ask("axe") == []
    page.ask("click", selector="#theme")
    assert page.value(paper) == light


def test_texts_are_as_large_as_the_browser_says(page: Browser) -> None:
    sizes = (
        "['.cm-content', '.tile .word', '.tile .chance', '.card .about', '#cut', 'h1']"
        ".map(each => parseFloat(getComputedStyle(document.querySelector(each)).fontSize))"
    )
    before = page.value(sizes)
    page.value("document.documentElement.style.fontSize = '200%'")
    assert page.value(sizes) == [2 * size for size in before]


@pytest.mark.parametrize("how", [{}, {"width": 390, "height": 844}], ids=["wide", "narrow"])
def test_nothing_jumps_while_holes_are_filled(how: dict[str, Any], address: str, browser: Browser) -> None:
    browser.ask("open", url=address, **how)
    browser.settle()
    open_file(browser, "other.py", "'comp")
    browser.settle()
    for text in ("uting", "\n    def area(self", ") -> float:\n"):
        browser.ask("press", key="Control+End")
        browser.ask("type", text=text)
        browser.settle()
    assert browser.value(SHIFTS) == []


def test_a_window_of_320_pixels_needs_no_scrolling_to_the_side(address: str, browser: Browser) -> None:
    browser.ask("open", url=address, width=320, height=640)
    browser.settle()
    assert browser.value("document.documentElement.scrollWidth") == 320


def test_a_browser_without_websocket_and_storage_fills_too(address: str, browser: Browser) -> None:
    browser.ask("open", url=address, hidden=["WebSocket", "EventSource", "indexedDB"])
    browser.settle()
    assert browser.value("typeof WebSocket") == "undefined"
    assert browser.text("#problem") == ""


def test_a_paste_of_more_than_one_megabyte_is_refused_in_one_line(page: Browser) -> None:
    before = page.value(TEXT)
    page.value(
        "(() => { const clipboardData = new DataTransfer();"
        " clipboardData.setData('text/plain', 'x = 1\\n'.repeat(180000));"
        " document.querySelector('.cm-content').dispatchEvent("
        "new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true})); })()"
    )
    told = "That is more than 1 MB, which the page does not take; paste a part of it."
    eventually(lambda: page.text("#problem") == told, told)
    assert page.value(TEXT) == before


def test_a_page_whose_midspan_play_has_ended_says_so_and_keeps_its_text(home: Path, browser: Browser) -> None:
    with started() as (address, process):
        browser.ask("open", url=address, name="left")
        browser.settle("left")
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    browser.ask("type", text="self.depth", name="left")
    told = "midspan play has ended. Start it again and open its new address; your text is still here."
    eventually(lambda: browser.text("#problem", "left") == told, told)
    assert HOLE + "self.depth" in browser.value(TEXT, "left")


def test_nothing_that_is_typed_is_written(tmp_path: Path, home: Path, browser: Browser) -> None:
    for name in ("home", "tmp", "folder"):
        (tmp_path / name).mkdir()
    kept = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    with started(tmp_path / "folder", **kept) as (address, _):
        browser.ask("open", url=address)
        browser.ask("type", text="self.xylophones")
        browser.settle()
        assert "xylophones" in browser.value(TEXT)
    files = [path for folder in (tmp_path, home) for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if b"xylophones" in path.read_bytes()] == []


def test_sudoku_as_an_argument_opens_the_page_with_the_sudoku_first(home: Path, browser: Browser) -> None:
    with started("sudoku") as (address, _):
        browser.ask("open", url=address, name="sudoku")
        eventually(lambda: browser.value("document.body.dataset.sudoku === 'done'", "sudoku"), "the grid filled")
        assert browser.value("document.querySelector('#sudoku').getBoundingClientRect().top < 200", "sudoku")


def test_a_folder_that_is_none_ends_midspan_play_with_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "engine.cli", "play", str(tmp_path / "none"), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("none is not a folder; name one whose files the page may open")
    assert done.stderr.count("\n") == 1
