"""Helix has no inline completion: there the suggestion is an item of the completion menu. Code actions work as they do
with any server. Real Helix, in tmux."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lsp_editor import engine_home
from terminal import Terminal

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".editors" / "debian" / "root" / "usr" / "bin" / "hx"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="Helix is not here: make editors")
_ANSWER_S = 3.0
"""Longer than an answer takes: asked again before, Helix would drop the first."""
CALLS = "import http\n\nhttp.get(one)\nhttp.get(two)\n"
LANGUAGES = """
[language-server.midspan]
command = "midspan-lsp"
config = { completionItems = true, threads = 1, gate = 0, budgetMs = 2000, maxTokens = 8 }

[[language]]
name = "python"
language-servers = ["midspan"]
"""


@pytest.fixture
def helix(tmp_path: Path) -> Iterator[Terminal]:
    config = tmp_path / "config" / "helix"
    config.mkdir(parents=True)
    (config / "languages.toml").write_text(LANGUAGES)
    (tmp_path / "list.py").write_text("# Shopping list:\n# - \n")
    (tmp_path / "calls.py").write_text(CALLS)
    places = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "CACHE", "DATA", "STATE")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    terminal = Terminal(tmp_path)
    with engine_home(tmp_path / "runtime", Path("embedded")):
        environment = {**os.environ, **places, "HOME": str(tmp_path), "PATH": path}
        terminal.start([str(PROGRAM), str(tmp_path / "list.py")], environment)
        yield terminal
        terminal.close()


def item(screen: str) -> str | None:
    """Return the text of the menu's only item. Helix writes the item's kind after it."""
    rows = [line.rstrip() for line in screen.split("\n") if line.rstrip().endswith(" text")]
    return rows[0].removesuffix("text").strip(" ~") if rows else None


def test_an_item_of_the_completion_menu_is_inserted(helix: Terminal, tmp_path: Path) -> None:
    helix.eventually(lambda screen: "list.py" in screen and "Shopping" in screen)
    helix.keys("j", "A")
    helix.eventually(lambda screen: "INS" in screen)

    helix.keys("a")
    asked = time.monotonic()

    def asked_again(screen: str) -> str | None:
        # Until the engine is there the menu stays empty, and Helix asks only when a key is pressed.
        nonlocal asked
        if item(screen) is None and time.monotonic() - asked > _ANSWER_S:
            helix.keys("C-x")
            asked = time.monotonic()
        return item(screen)

    text = helix.eventually(asked_again)
    helix.keys("Tab")
    helix.eventually(lambda screen: f"# - {text}" in screen)
    helix.keys("Enter")
    helix.eventually(lambda screen: item(screen) is None)
    helix.keys("Escape")
    helix.eventually(lambda screen: "NOR" in screen)
    helix.keys(":w", "Enter")
    helix.eventually(lambda screen: "written" in screen)

    assert text.startswith("a"), "what was typed is part of the item"
    # Helix puts the old file aside for a moment while it writes the new one.
    file = tmp_path / "list.py"
    helix.eventually(lambda _: file.exists() and file.read_text() == f"# Shopping list:\n# - {text}\n")


def test_an_edit_is_repeated_from_the_menu_of_code_actions(helix: Terminal, tmp_path: Path) -> None:
    helix.eventually(lambda screen: "list.py" in screen and "Shopping" in screen)
    helix.keys(f":open {tmp_path / 'calls.py'}", "Enter")
    helix.eventually(lambda screen: "http.get(two)" in screen)
    ask_until(helix, "No code actions available")  # The server has the file.
    helix.keys("2j", "t)", "a", ", timeout=1", "Escape")
    helix.eventually(lambda screen: "http.get(one, timeout=1)" in screen and "NOR" in screen)

    ask_until(helix, "Repeat this edit in this file (1 place)")
    helix.keys("Enter")
    helix.eventually(lambda screen: "http.get(two, timeout=1)" in screen)
    helix.keys("u")

    helix.eventually(lambda screen: "http.get(two)" in screen and "http.get(one, timeout=1)" in screen)


def ask_until(helix: Terminal, answer: str) -> None:
    """Ask for code actions until Helix shows an answer. It asks only when the keys are pressed."""
    asked = -_ANSWER_S

    def shown(screen: str) -> bool:
        nonlocal asked
        if answer not in screen and time.monotonic() - asked > _ANSWER_S:
            helix.keys("Space", "a")
            asked = time.monotonic()
        return answer in screen

    helix.eventually(shown)
