"""Takes the pictures of README.md and docs/play.md from the page in Chromium: take_pictures.py [FOLDER]."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # First: tests has a folder named engine too.

from play_browser import ROOT, Browser, started, what_is_missing
from support.browser_driver import eventually
from support.lsp_editor import engine_home

MOST_BYTES = 150_000
WIDTH = 1120


def main() -> None:
    if missing := what_is_missing():
        sys.exit(missing)
    target = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "docs"
    with tempfile.TemporaryDirectory() as home, engine_home(Path(home), Path("embedded")):
        browser = Browser()
        try:
            with started() as (address, _):
                take_page(browser, address, target / "play.png")
                take_heat(browser, address, target / "play-dark.png")
                take_sudoku(browser, address, target / "play-sudoku.png")
        finally:
            browser.close()


def take_page(browser: Browser, address: str, target: Path) -> None:
    """The sample's hole, filled in all ways, with its ghost."""
    browser.ask("open", url=address, width=WIDTH, height=926, scale=1)
    browser.settle()
    browser.ghost()
    eventually(lambda: "ready" in browser.text("#model"), "the engine's state")
    browser.ask("click", selector="#tiles .tile")
    keep(browser, target)


def take_heat(browser: Browser, address: str, target: Path) -> None:
    """The heat map in the dark, with what else was likely at a token."""
    browser.ask("open", url=address, width=WIDTH, height=706, dark=True, scale=1)
    browser.settle()
    browser.ask("click", selector="#heat")
    eventually(lambda: browser.value("document.body.dataset.heat === 'done'"), "the heat map")
    browser.ask("hover", selector=".cm-line:nth-child(16) .heat")
    eventually(lambda: browser.text(".heat-tip"), "what else was likely")
    browser.ask("click", selector="#tiles .tile")
    browser.ask("hover", selector=".cm-line:nth-child(16) .heat")
    eventually(lambda: browser.text(".heat-tip"), "what else was likely")
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
