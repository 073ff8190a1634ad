"""Takes the pictures of README.md and docs/play.md from the page in Chromium: take_pictures.py [FOLDER]."""

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # First: tests has a folder named engine too.

from play_browser import ROOT, Browser, what_is_missing
from support.browser_driver import eventually
from support.lsp_editor import engine_home

MOST_BYTES = 120_000
WIDTH = 1120


def main() -> None:
    if missing := what_is_missing():
        sys.exit(missing)
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    with tempfile.TemporaryDirectory() as home, engine_home(Path(home), Path("embedded")):
        command = [sys.executable, "-P", "-m", "engine.cli", "play", "--no-browser"]
        play = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        browser = Browser()
        try:
            assert play.stderr is not None
            found = re.search(r"http\S+", play.stderr.readline())
            assert found is not None
            for name, dark in (("play", False), ("play-dark", True)):
                take_page(browser, found[0], target / f"{name}.png", dark)
            take_sudoku(browser, found[0], target / "play-sudoku.png")
        finally:
            browser.close()
            play.send_signal(signal.SIGINT)
            play.wait(30)


def take_page(browser: Browser, address: str, target: Path, dark: bool) -> None:
    """The sample's hole, filled in all ways, with the heat map in the dark picture."""
    browser.ask("open", url=address, width=WIDTH, height=718 if dark else 648, dark=dark, scale=1)
    browser.settle()
    if dark:
        browser.ask("click", selector="#heat")
        eventually(lambda: browser.value("document.body.dataset.heat === 'done'"), "the heat map")
        browser.ask("click", selector=".cm-line:nth-child(16) .heat")
        eventually(lambda: "Likeliest" in browser.text("#heat-note"), "what else was likely")
        browser.settle()
    browser.ask("click", selector="#tiles .tile")
    keep(browser, target)


def take_sudoku(browser: Browser, address: str, target: Path) -> None:
    """A grid half-way."""
    address = address.replace("/play#", "/play?sudoku#")
    browser.ask("open", url=address, width=WIDTH, height=760, scale=1)
    eventually(lambda: browser.value("document.body.dataset.sudoku === 'done'"), "the grid filled")
    passes = int(browser.text("#sudoku-cards .passes").split()[0])
    for _ in range(passes // 2):
        browser.ask("click", selector="#sudoku-player button:nth-child(1)")
    keep(browser, target, "#sudoku")


def keep(browser: Browser, target: Path, selector: str | None = None) -> None:
    browser.ask("screenshot", path=str(target), selector=selector)
    size = target.stat().st_size
    print(f"{target}: {size // 1000} kB")
    assert size <= MOST_BYTES, f"{target} has {size} bytes; a picture has at most {MOST_BYTES}"


if __name__ == "__main__":
    main()
