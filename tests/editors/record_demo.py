"""Records docs/demo.svg, README's moving picture, from a real Neovim with the real server: make demo-picture.

A simulated person types a method of a public project's file, which lacks it, with the project around it:
list_paths() of requests' cookie jar, as the installed package has it. At the start of each word and after two letters
the person looks at the screen, reads a suggestion if there is one, accepts it with Tab if it is right, and types on if
not. All settings that decide what is shown have their defaults. The picture plays as fast as it was recorded.
"""

import importlib.util
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # First: tests has a folder named engine too.

from moving_picture import Frame, animated_svg
from neovim import PROGRAM, ROOT, Setup, environment, write_init
from support.git_folder import repository
from support.lsp_editor import PATIENCE_S, engine_home
from terminal import PROGRAM as TMUX

PICTURE = ROOT / "docs" / "demo.svg"
PACKAGE, FILE, METHOD = "requests", "cookies.py", "    def list_paths(self)"
TITLE = f"{PACKAGE}/{FILE} - Neovim with Midspan"
COLUMNS, ROWS = 92, 29
# Where a line's text begins, right of the line numbers.
TEXT_COLUMN = 4
LUA = """
vim.o.termguicolors = true
vim.o.number, vim.o.ruler, vim.o.showmode, vim.o.showcmd = true, false, false, false
vim.o.laststatus, vim.o.cmdheight = 3, 0
vim.opt.shortmess:append('IF')
vim.g.loaded_matchparen = 1
vim.api.nvim_set_hl(0, 'ComplHint', { fg = '#868b95', italic = true })
vim.o.statusline = " %f %m%=%{v:lua.require'midspan'.statusline()} "
"""
KEY_S, READ_S, CAP_S, END_S = 0.075, 0.4, 0.4, 1.8
# So long the server may take to read the project, before the person begins.
READING_S = 3.0
# The person looks at the screen at the start of a word and after two letters, and accepts what saves at least two keys.
LETTERS_BEFORE_LOOK, WORTH_A_KEY = 2, 2


class Screen:
    """A tmux of its own with one program in it, whose screens are recorded while `recording` is set."""

    def __init__(
        self, home: Path, command: list[str], variables: dict[str, str], columns: int = COLUMNS, rows: int = ROWS
    ) -> None:
        self._tmux = [str(TMUX), "-S", str(home / "tmux"), "-f", "/dev/null"]
        # Without these variables a program takes the terminal for one of few colours.
        colours = ["env", "TERM=tmux-256color", "COLORTERM=truecolor"]
        size = ["-x", str(columns), "-y", str(rows)]
        argv = [*self._tmux, "new-session", "-d", *size, *colours, *command]
        subprocess.run(argv, env=variables, check=True)
        # tmux's own status line would take a row of the picture; Escape would wait half a second.
        self._run("set", "-g", "status", "off", ";", "set", "-sg", "escape-time", "0")
        self.frames: list[Frame] = []
        self._key, self._key_until_s = "", 0.0
        self._started_s = 0.0
        self._stopped = threading.Event()
        self._recorder = threading.Thread(target=self._record)

    def press(self, *keys: str) -> None:
        """Press keys, in the notation of tmux."""
        self._run("send-keys", *keys)

    def press_shown(self, key: str) -> None:
        """Press a key that the picture names."""
        self._key, self._key_until_s = key, time.monotonic() + CAP_S
        self.press(key)

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    def plain(self) -> list[str]:
        return self._run("capture-pane", "-p").split("\n")

    def cursor(self) -> tuple[int, int]:
        column, row = self._run("display-message", "-p", "#{cursor_x} #{cursor_y}").split()
        return int(column), int(row)

    def after_cursor(self) -> str:
        """Return what the cursor's row shows after the cursor: the ghost text, as no code is there."""
        column, row = self.cursor()
        return self.plain()[row][column:].rstrip()

    def wait_for(self, is_there: Callable[[], object], what: str) -> None:
        """Wait until `is_there`; exit with `what` if it never is."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_there():
            if time.monotonic() > deadline:
                sys.exit(f"{what}; the screen:\n" + "\n".join(self.plain()))
            time.sleep(0.05)

    def record(self) -> None:
        self._started_s = time.monotonic()
        self._recorder.start()

    def stop_recording(self) -> float:
        """End the recording; return its length in seconds."""
        self._stopped.set()
        self._recorder.join()
        return time.monotonic() - self._started_s

    def close(self) -> None:
        self._stopped.set()
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    def _record(self) -> None:
        while not self._stopped.wait(0.03):
            now_s = time.monotonic()
            key = self._key if now_s < self._key_until_s else ""
            frame = Frame(now_s - self._started_s, self._run("capture-pane", "-peN"), self.cursor(), key)
            if not self.frames:
                frame = Frame(0.0, frame.screen, frame.cursor, frame.key)
            last = self.frames[-1] if self.frames else None
            if last is None or (last.screen, last.cursor, last.key) != (frame.screen, frame.cursor, frame.key):
                self.frames.append(frame)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True)
        return done.stdout


def type_line(screen: Screen, line: str) -> int:
    """Type `line` from where the editor's indentation ends; return how many characters came from suggestions."""
    taken, letters = 0, 0
    indentation = len(line) - len(line.lstrip())
    while screen.cursor()[0] - TEXT_COLUMN > indentation:
        outdent(screen)
    typed = screen.cursor()[0] - TEXT_COLUMN
    while typed < len(line):
        rest = line[typed:]
        if letters in (0, LETTERS_BEFORE_LOOK) or typed == 0:
            ghost = screen.after_cursor()
            if len(ghost) >= WORTH_A_KEY:
                # The person reads it, also if it is wrong. Where nothing is shown, there is nothing to wait for.
                time.sleep(READ_S)
            if len(ghost) >= WORTH_A_KEY and rest.startswith(ghost):
                taken_now = accept(screen)
                typed, taken, letters = typed + taken_now, taken + taken_now, 0
                continue
        screen.type(rest[0])
        letters = letters + 1 if rest[0].isalnum() else 0
        typed += 1
        time.sleep(KEY_S)
    return taken


def accept(screen: Screen) -> int:
    """Press Tab; return how many characters it wrote."""
    column = screen.cursor()[0]
    screen.press_shown("Tab")
    screen.wait_for(lambda: screen.cursor()[0] > column, "Tab accepted nothing")
    return screen.cursor()[0] - column


def press_enter(screen: Screen) -> None:
    row = screen.cursor()[1]
    screen.press("Enter")
    screen.wait_for(lambda: screen.cursor()[1] == row + 1, "no new line")


def outdent(screen: Screen) -> None:
    """Press Backspace where the editor has indented too far."""
    column = screen.cursor()[0]
    screen.press("BSpace")
    screen.wait_for(lambda: screen.cursor()[0] < column, "Backspace deleted nothing")


def type_all(screen: Screen, typed: str) -> int:
    """Type a text; return how many characters came from suggestions."""
    taken = 0
    for number, line in enumerate(typed.split("\n")):
        if number:
            press_enter(screen)
        taken += type_line(screen, line)
    return taken


def cut() -> tuple[Path, str, str, str]:
    """Return the package's folder, and the file's text before the method, the method, and after it."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        sys.exit(f"{PACKAGE} is not installed: make setup")
    folder = Path(found.origin).parent
    before, method, rest = (folder / FILE).read_text("utf-8").partition(METHOD)
    body, _, after = rest.partition("\n\n")
    if not method:
        sys.exit(f"{PACKAGE}/{FILE} has no {METHOD.strip()}; name another method in record_demo.py")
    return folder, before, method + body, "\n\n" + after


def record(home: Path) -> tuple[list[Frame], float, int, int]:
    """Record one session; return its frames, its length in seconds, the characters that suggestions wrote, and all.

    Exits if the file is not what the person meant to type.
    """
    folder, before, typed, after = cut()
    texts = {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*.py")}
    project = repository(home / PACKAGE, {**texts, FILE: before + after})
    file = project / FILE
    setup = Setup({"keymaps": {"accept": "<Tab>"}, "settings": {"idleMinutes": 1}}, extra=LUA)
    init = write_init(home / "home", setup)
    row = before.count("\n") + 1
    command = ["sh", "-c", f"cd {project} && exec {PROGRAM} -u {init} +{row} {FILE}"]
    screen = Screen(home, command, environment(home / "home", setup))
    try:
        screen.wait_for(lambda: "Midspan" in screen.plain()[ROWS - 1], "Midspan is not in the status line")
        screen.wait_for(lambda: "starting" not in screen.plain()[ROWS - 1], "the engine does not get ready")
        screen.press("z", "z", "i")
        indentation = len(typed) - len(typed.lstrip())
        screen.type(" " * indentation)
        screen.wait_for(lambda: screen.cursor()[0] == TEXT_COLUMN + indentation, "insert mode is not on")
        time.sleep(READING_S)
        screen.record()
        time.sleep(0.6)
        taken = type_all(screen, typed)
        time.sleep(END_S)
        seconds = screen.stop_recording()
        screen.press("Escape")
        screen.type(":w\n")
        whole = before + typed + after
        screen.wait_for(lambda: file.read_text("utf-8") == whole, "the file is not as meant")
        return screen.frames, seconds, taken, len(typed)
    finally:
        screen.close()


def main() -> None:
    if not PROGRAM.exists():
        sys.exit("Neovim is not here: make editors-neovim")
    with tempfile.TemporaryDirectory() as folder, engine_home(Path(folder) / "run", Path("embedded")):
        frames, seconds, taken, characters = record(Path(folder))
    PICTURE.write_text(animated_svg(frames, seconds, (COLUMNS, ROWS), TITLE))
    print(f"{PICTURE}: {seconds:.1f} s, {len(frames)} frames, {PICTURE.stat().st_size / 1000:.0f} kB;", end=" ")
    print(f"suggestions wrote {taken} of {characters} characters")


if __name__ == "__main__":
    main()
