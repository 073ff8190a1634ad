"""Takes the pictures of docs/pictures.md in a real Neovim and a terminal: python take_tour_terminal.py [NAME ...]."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import attrs
from code_server import CodeServer, package_extension, what_is_missing
from fresh_clone import FreshClone
from git_folder import repository
from lsp_editor import engine_home
from moving_picture import Frame, animated_svg
from neovim import PROGRAM, ROOT, Setup, environment, write_init
from record_demo import LUA, Screen

PICTURES = ROOT / "docs" / "pictures"
NEOVIM_SIZE, TERMINAL_COLUMNS = (54, 14), 80
# A terminal so high that nothing leaves it. The picture has its first rows.
TERMINAL_ROWS = 120
READ = '''import os


def read(path):
    """Return the text of a file, or nothing."""
    if not os.path.exists(path):
'''
WORD = "return"
LISTS = """def names_of(items):
    names = []
    for item in items:
        names.append(item.name)
    return names


def kinds_of(items):
    kinds = []
    for item in items:
        kinds.append(item.kind)
"""
CARTS = """import pytest
from shop import Cart


def test_an_empty_cart(cart: Cart) -> None:
    assert cart.total() == 0


def test_one_pear(cart: Cart) -> None:
    cart.add("pear", 3)
    assert cart.total() == 3

"""
BEGUN, REST = "def test_two_pears(c", "art: Cart) -> None:"
TABS = 3
KEY_S, TAB_S, REST_S = 0.35, 0.8, 1.5
PROMPT = "$ "
DEMO_FILES, HEADING = 2, "────"


@attrs.frozen
class Recording:
    frames: list[Frame]
    seconds: float
    size: tuple[int, int]
    title: str


def typed_along(home: Path) -> Recording:
    """Type a word, slowly enough that each key's suggestion could come before the next key."""
    with neovim(home, READ) as screen:
        screen.press("G", "o")
        time.sleep(REST_S)
        screen.record()
        for key in WORD:
            time.sleep(KEY_S)
            screen.press_shown(key)
        time.sleep(REST_S)
        seconds = screen.stop_recording()
        return Recording(screen.frames, seconds, NEOVIM_SIZE, f"Neovim: {WORD!r} is typed, a key every {KEY_S} s")


def tab_after_tab(home: Path) -> Recording:
    """Accept one suggestion after the other."""
    with neovim(home, CARTS) as screen:
        screen.press("G", "A")
        screen.type(BEGUN)
        time.sleep(REST_S)
        screen.record()
        for _ in range(TABS):
            time.sleep(TAB_S)
            screen.press_shown("Tab")
        time.sleep(REST_S)
        seconds = screen.stop_recording()
        if not any(row.rstrip().endswith(BEGUN + REST) for row in screen.plain()):
            sys.exit("the suggestions are others; take another text")
        return Recording(screen.frames, seconds, NEOVIM_SIZE, f"Neovim: Tab every {TAB_S} s")


def asked(home: Path) -> Recording:
    """Ask where nothing is suggested unasked."""
    with neovim(home, LISTS) as screen:
        screen.press("G", "o")
        screen.type("if ")
        time.sleep(REST_S)
        if screen.after_cursor():
            sys.exit("a suggestion is shown before it is asked for; take another text")
        screen.press("C-g")
        time.sleep(REST_S)
        return Recording([still(screen)], 1.0, NEOVIM_SIZE, "Neovim: a suggestion is asked for by key")


def demo(home: Path) -> Recording:
    """Run `midspan demo`. The picture has the first files that it shows."""
    clone = FreshClone(home)
    clone.programs.mkdir()
    frame = session(clone, ROOT, ["midspan demo"])
    headings = [number for number, row in enumerate(frame.screen.split("\n")) if HEADING in row]
    return Recording([frame], 1.0, (TERMINAL_COLUMNS, headings[DEMO_FILES] - 1), "midspan demo")


def setup(home: Path) -> Recording:
    """Run `midspan setup` in a clone, where Neovim, Helix and a VS Code are on the PATH."""
    clone = FreshClone.of(home)
    (clone.folder / "dist").mkdir()
    shutil.copy(package_extension(), clone.folder / "dist")
    for program in (PROGRAM, PROGRAM.with_name("hx")):
        (clone.programs / program.name).symlink_to(program)
    code = CodeServer(home / "vscode", {}).command('"$@"')
    (clone.programs / "code-server").write_text(f"#!/bin/sh\nexec {' '.join(code)}\n")
    (clone.programs / "code-server").chmod(0o755)
    frame = session(clone, clone.folder, ["midspan setup", "midspan setup neovim", "midspan setup --remove"])
    used = max(number for number, row in enumerate(frame.screen.split("\n")) if row.strip())
    return Recording([frame], 1.0, (TERMINAL_COLUMNS, used + 1), "midspan setup")


TOUR: dict[str, Callable[[Path], Recording]] = {
    "typed-along": typed_along,
    "tab-after-tab": tab_after_tab,
    "asked": asked,
    "demo": demo,
    "setup": setup,
}


@contextmanager
def neovim(home: Path, text: str) -> Iterator[Screen]:
    """Open a file in a Neovim whose server is ready. Settings have their defaults."""
    project = repository(home / "project", {"example.py": text})
    options = Setup({"keymaps": {"accept": "<Tab>", "trigger": "<C-g>"}}, extra=LUA)
    init = write_init(home / "home", options)
    command = ["sh", "-c", f"cd {project} && exec {PROGRAM} -u {init} example.py"]
    screen = Screen(home, command, environment(home / "home", options), *NEOVIM_SIZE)
    last = NEOVIM_SIZE[1] - 1
    try:
        screen.wait_for(lambda: "Midspan" in screen.plain()[last], "Midspan is not in the status line")
        screen.wait_for(lambda: "starting" not in screen.plain()[last], "the engine does not get ready")
        yield screen
    finally:
        screen.close()


def session(clone: FreshClone, source: Path, commands: Sequence[str]) -> Frame:
    """Type commands at a prompt in the clone's home, with Midspan's code from `source`; return the last screen."""
    (clone.programs / "midspan").symlink_to(Path(sys.executable).parent / "midspan")
    variables = {**clone.environment(), "PYTHONPATH": str(source), "PS1": PROMPT, "ENV": ""}
    screen = Screen(clone.home, ["sh"], variables, TERMINAL_COLUMNS, TERMINAL_ROWS)
    try:
        for number, command in enumerate(commands, 1):
            screen.wait_for(partial(prompts, screen, number), "no prompt comes")
            screen.type(f"{command}\n")
        screen.wait_for(partial(prompts, screen, len(commands) + 1), "the last command does not end")
        return still(screen)
    finally:
        screen.close()


def prompts(screen: Screen, number: int) -> bool:
    """Return whether so many prompts are on the screen."""
    return sum(row.startswith(PROMPT.strip()) for row in screen.plain()) == number


def still(screen: Screen) -> Frame:
    """Return what is on the screen now."""
    screen.record()
    screen.wait_for(lambda: screen.frames, "the screen cannot be read")
    screen.stop_recording()
    return screen.frames[0]


def take(name: str, home: Path, picture: Path) -> None:
    recording = TOUR[name](home)
    picture.write_text(animated_svg(recording.frames, recording.seconds, recording.size, recording.title))
    print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def main() -> None:
    if missing := what_is_missing() or (None if PROGRAM.exists() else "Neovim is not here: make editors-neovim"):
        sys.exit(missing)
    for name in sys.argv[1:] or TOUR:
        # Neovim may write its last file while the folder is removed.
        temporary = tempfile.TemporaryDirectory(prefix="home-", ignore_cleanup_errors=True)
        with temporary as folder, engine_home(Path(folder) / "runtime", Path("embedded")):
            os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
            take(name, Path(folder), PICTURES / f"{name}-after.svg")


if __name__ == "__main__":
    main()
