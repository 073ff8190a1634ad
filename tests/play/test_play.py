"""The page of `midspan play` in a real Chromium, over a real engine."""

import gzip
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from play_browser import ROOT, Browser, eventually, what_is_missing
from support.lsp_editor import engine_home

PAGE = ROOT / "engine" / "play" / "page"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address that `midspan play` prints."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "area.py").write_text("def area(w, h):\n    return w * h\n")
    with engine_home(tmp_path_factory.mktemp("runtime"), Path("embedded")):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "engine.cli", "play", str(folder), "--no-browser"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        found = re.search(r"http\S+", process.stderr.readline())
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            assert found is not None
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if (missing := what_is_missing()) is not None:
        pytest.skip(missing)
    browser = Browser()
    yield browser
    browser.close()


def test_the_committed_page_is_what_its_sources_build_and_is_small(tmp_path: Path) -> None:
    if not (ROOT / "editors" / "play" / "node_modules" / "esbuild").exists() or shutil.which("node") is None:
        pytest.skip("esbuild is not here; `make editors` fetches it")
    subprocess.run(["node", "build.mjs", "--out", str(tmp_path)], cwd=ROOT / "editors" / "play", check=True)
    for built in tmp_path.iterdir():
        assert built.read_bytes() == (PAGE / built.name).read_bytes(), f"{built.name}: run `make play-page`"
    script = (PAGE / "page.js").read_bytes()
    assert len(script) <= 600_000
    assert len(gzip.compress(script)) <= 200_000


def test_without_its_token_a_question_gets_403_and_nothing_else(address: str) -> None:
    url = address.partition("/play")[0] + "/play/api/hello"
    for headers in ({}, {"authorization": "Bearer wrong-wrong-wrong-wrong"}):
        answer = httpx2.post(url, json={}, headers=headers, trust_env=False)
        assert (answer.status_code, answer.content) == (403, b"")


def test_a_hole_is_filled_in_three_ways_scrubbed_and_taken_by_tab(address: str, browser: Browser) -> None:
    browser.ask("open", url=address)
    browser.settle()
    assert browser.count("#tiles .tile") > 0
    assert browser.value("[...document.querySelectorAll('.card .passes')].every(each => /pass/.test(each.textContent))")
    browser.ask("click", selector=".card:nth-child(1)")  # left to right: it always takes several passes
    first = eventually(lambda: browser.text("#pass"), "the last pass")
    browser.ask("click", selector="#player button:nth-child(1)")
    eventually(lambda: browser.text("#pass") != first, "the pass before")
    ghost = eventually(lambda: browser.text(".ghost"), "the ghost")
    browser.ask("click", selector=".hole-line")
    browser.ask("press", key="End")
    eventually(lambda: browser.text(".ghost"), "the ghost again")
    browser.ask("press", key="Tab")
    eventually(lambda: ghost in browser.text(".cm-content") and not browser.count(".ghost"), "the ghost taken")
    assert browser.ask("elsewhere") == []


@pytest.mark.parametrize("how", [{}, {"dark": True}, {"width": 390, "height": 844}], ids=["light", "dark", "narrow"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    how: dict[str, bool | int], address: str, browser: Browser
) -> None:
    browser.ask("open", url=address, **how)
    browser.settle()
    assert browser.ask("axe") == []
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
