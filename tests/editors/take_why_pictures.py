"""Takes the pictures of docs/memory.md, why a suggestion is shown: python take_why_pictures.py [neovim] [vscode].

The workspace is a copy of this repository. A person adds a function to one of its files, takes the suggestion and asks.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # First: tests has a folder named engine too.

from code_server import ROOT, CodeServer, package_extension, what_is_missing
from moving_picture import Frame, animated_svg
from neovim import PROGRAM, Setup, environment, write_init
from PIL import Image
from record_demo import COLUMNS, LUA, ROWS, Screen
from support.git_folder import git
from support.lsp_editor import engine_home
from workbench import Workbench, eventually

PICTURES = ROOT / "docs"
FILE = Path("engine") / "cli" / "stats.py"
ADDED = """

def forget() -> None:
    try:
        StatisticsFile(statistics_path()).reset()
    except MidspanError as error:
"""
INDENT, TYPED = "        ", "lea"
KNOWN = """
function known()
  local client = vim.lsp.get_clients({ name = 'midspan' })[1]
  local status = client and require('midspan.status').of(client.id)
  return status and status.memory or ''
end
vim.o.statusline = " %f %m%=%{v:lua.known()}   %{v:lua.require'midspan'.statusline()} "
"""
SETTINGS = {"midspan.model": "embedded", "midspan.gate": 0.5, "midspan.budgetMs": 2000}


def copy_repository(folder: Path) -> Path:
    """Copy what git tracks here into a repository of its own, with the new function; return the file that has it."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    git(folder, "init", "-q")
    git(folder, "add", ".")
    file = folder / FILE
    file.write_text(file.read_text() + ADDED + INDENT)
    return file


def neovim(home: Path) -> None:
    """Take the picture of `:Midspan why`."""
    folder = home / "midspan"
    copy_repository(folder)
    options = {"keymaps": {"accept": "<Tab>"}, "settings": {name[8:]: value for name, value in SETTINGS.items()}}
    setup = Setup(options, extra=LUA + KNOWN)
    init = write_init(home / "home", setup)
    command = ["sh", "-c", f"cd {folder} && exec {PROGRAM} -u {init} {FILE}"]
    screen = Screen(home, command, environment(home / "home", setup))
    try:
        screen.wait_for(lambda: screen.plain()[ROWS - 1].rstrip().endswith("Midspan"), "the engine is not ready")
        screen.press("G", "A")
        screen.type(TYPED[0])
        screen.wait_for(lambda: "memory:" in screen.plain()[ROWS - 1], "the repository is not read")
        screen.type(TYPED[1:])
        screen.wait_for(screen.after_cursor, "nothing is suggested")
        screen.press("Tab", "Escape")
        screen.type(":Midspan why\n")
        screen.wait_for(lambda: any("as in" in line for line in screen.plain()), "no window opens")
        screen.record()
        time.sleep(0.5)
        screen.stop_recording()
        last = screen.frames[-1]
    finally:
        screen.close()
    frame = Frame(0.0, last.screen, last.cursor)
    picture = PICTURES / "why-neovim.svg"
    picture.write_text(animated_svg([frame], 1.0, (COLUMNS, ROWS), "Midspan's own repository in Neovim: :Midspan why"))
    print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def vscode(home: Path) -> None:
    """Take the picture of `Midspan: Why This Suggestion?`."""
    settings = {**SETTINGS, "midspan.server.path": str(Path(sys.executable).parent / "midspan-lsp")}
    server = CodeServer(home / "vscode", settings)
    copy_repository(server.folder)
    workbench = None
    try:
        server.start(package_extension())
        workbench = Workbench(server)
        workbench.open_window("notes.txt")
        workbench.press("Control+P")
        workbench.type(str(FILE))
        found = '.quick-input-list .monaco-list-row.focused[aria-label*="stats.py"]'
        eventually(lambda: workbench.texts(found), "the file in the list")
        workbench.press("Enter")
        eventually(lambda: workbench.texts('.tab.active[data-resource-name="stats.py"]'), "the file open")
        workbench.press("Control+End")

        def suggested() -> bool:
            # The repository is being read meanwhile, so the word is typed again until it is known.
            workbench.type(TYPED)
            until_s = time.monotonic() + 3
            while not (shown := "error" in workbench.ghost()) and time.monotonic() < until_s:
                time.sleep(0.05)
            for _ in "" if shown else TYPED:
                workbench.press("Backspace")
            return shown

        eventually(suggested, "the suggestion")
        workbench.press("Tab")
        workbench.command("Midspan: Why This Suggestion?")
        eventually(lambda: any("as in" in row for row in workbench.texts(".quick-input-list")), "the places")
        workbench.screenshot(home / "window.png")
    finally:
        if workbench is not None:
            workbench.close()
        server.stop()
    picture = PICTURES / "why-vscode.png"
    with Image.open(home / "window.png") as window:
        half = window.convert("RGB").reduce(2)
        half.quantize(64).save(picture, optimize=True)
    print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def main() -> None:
    if missing := what_is_missing() or (None if PROGRAM.exists() else "Neovim is not here: make editors-neovim"):
        sys.exit(missing)
    for name in sys.argv[1:] or ["neovim", "vscode"]:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            engine_home(Path(folder) / "run", Path("embedded")),
        ):
            os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
            {"neovim": neovim, "vscode": vscode}[name](Path(folder))


if __name__ == "__main__":
    main()
