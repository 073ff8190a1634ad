"""The page of `midspan play` in a headless Chromium: how soon it is there, how typing and scrubbing feel.

Run it as `python benchmarks/editors/play_page.py` after `make editors`. First picture: from the command to the page's
first text on the screen, with a running engine and without opening a browser. Typing: from the page's question to its
answer, beside the same question to a language server without the page, at the same places of the same text in turn.
Scrubbing: a pass a frame, over the canvas of a long hole and over the Sudoku's 82 passes of 81 cells.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "play")]

import asyncio
import gzip
import tempfile
import time
from typing import Annotated, Any

import httpx2
import typer
from play_browser import Browser, started, what_is_missing
from support.browser_driver import eventually
from support.lsp_editor import engine_home

from benchmarks.common.machine import this_machine
from benchmarks.common.statistic import Percentiles
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession

PAGE = ROOT / "engine" / "play" / "page" / "page.js.gz"
TEXT = (ROOT / "engine" / "fill" / "denoise.py").read_text()
LONG_HOLE = TEXT + "\n\ndef by_margin(proposal: Proposal, least: int) -> list[int]:\n    "
SCRUB = """async (selector) => {
  const slider = document.querySelector(selector), last = Number(slider.max), work = [];
  await new Promise(requestAnimationFrame);
  const begun = performance.now();
  for (let index = 0; index <= last; index += 1) {
    const before = performance.now();
    slider.value = String(index);
    slider.dispatchEvent(new Event('input'));
    document.body.offsetHeight;
    work.push(performance.now() - before);
    await new Promise(requestAnimationFrame);
  }
  return {frames: last + 1, seconds: (performance.now() - begun) / 1000, work};
}"""


def main(keys: Annotated[int, typer.Option(help="Keys that are typed for the latency.")] = 60) -> None:
    """Measure the page, and print a line a figure."""
    if missing := what_is_missing():
        sys.exit(missing)
    print(this_machine())
    script = PAGE.read_bytes()
    print(f"bundle: {len(gzip.decompress(script)) // 1000} kB, {len(script) // 1000} kB compressed")
    with tempfile.TemporaryDirectory() as home, engine_home(Path(home), Path("embedded")):
        browser = Browser()
        try:
            measure(browser, keys)
        finally:
            browser.close()


def measure(browser: Browser, keys: int) -> None:
    with started() as (warm, _):
        browser.ask("open", url=warm)
        browser.settle()
        begun = time.time()
        with started() as (address, _):
            browser.ask("open", url=address)
            painted = browser.value("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            opened = browser.value("performance.timeOrigin") / 1000
            print(f"first picture: {opened + painted / 1000 - begun:.2f} s after the command, the engine warm")
            browser.settle()
            asyncio.run(compare_typing(address, keys))
            scrub(browser)


async def compare_typing(address: str, keys: int) -> None:
    """Ask the page's server and a language server for the same suggestions, in turn."""
    url, _, token = address.partition("/play#")
    headers = {"authorization": f"Bearer {token}"}
    start = TEXT.index("def by_entropy")
    by_page: list[float] = []
    by_socket: list[float] = []
    async with (
        httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as page,
        LspSession() as session,
    ):
        path = Path.cwd() / "typed.py"
        await session.open(path, TEXT[:start])

        async def ask_page(at: int) -> None:
            fields: dict[str, Any] = {"page": "bench", "path": "typed.py", "text": TEXT[: at + 1], "at": at + 1}
            begun = time.perf_counter()
            (await page.post("/play/api/suggest", json=fields)).raise_for_status()
            by_page.append((time.perf_counter() - begun) * 1000)

        async def ask_socket(at: int) -> None:
            begun = time.perf_counter()
            await session.type_text(Cursor.at_offset(path, TEXT[:at], at), TEXT[at])
            await session.suggest(Cursor.at_offset(path, TEXT[: at + 1], at + 1))
            by_socket.append((time.perf_counter() - begun) * 1000)

        for at in range(start, start + keys):
            # The second to ask finds the other's context read.
            for ask in (ask_page, ask_socket) if at % 2 else (ask_socket, ask_page):
                await ask(at)
    page_ms, socket_ms = Percentiles.of(by_page), Percentiles.of(by_socket)
    print(
        f"typing: {page_ms.p50:.1f} ms by the page, {socket_ms.p50:.1f} ms by the socket (median of {keys} keys), "
        f"{page_ms.p50 / socket_ms.p50:.2f} times"
    )


def scrub(browser: Browser) -> None:
    """Scrub over a long hole's canvas and over the Sudoku."""
    browser.ask("click", selector=".cm-content")
    browser.ask("press", key="Control+End")
    browser.ask("type", text=LONG_HOLE)
    browser.settle()
    browser.ask("click", selector="#cards .card:first-child")
    tiles = browser.count("#tiles .tile")
    report(f"canvas of {tiles} tokens", browser.value(f"({SCRUB})('#player input')"))
    browser.ask("click", selector="#sudoku-fill")
    eventually(lambda: browser.value("document.body.dataset.sudoku === 'done'"), "the grid")
    browser.ask("click", selector="#sudoku-cards .card:last-child")
    report("Sudoku", browser.value(f"({SCRUB})('#sudoku-player input')"))


def report(name: str, found: dict[str, Any]) -> None:
    work = Percentiles.of(found["work"])
    rate = found["frames"] / found["seconds"]
    print(
        f"scrubbing, {name}, {found['frames']} passes: {rate:.0f} frames a second; "
        f"a pass takes {work.p50:.1f} ms (median), {work.p95:.1f} ms (95 %) of a frame's 16.7"
    )


if __name__ == "__main__":
    typer.run(main)
