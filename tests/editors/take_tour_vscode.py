"""Takes the pictures of docs/pictures.md in a real VS Code: python take_tour_vscode.py [NAME ...]."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import attrs
from code_server import QUIET, ROOT, CodeServer, package_extension, what_is_missing
from lsp_editor import engine_home
from PIL import Image
from workbench import CHOICE, STATUS, Workbench, eventually

PICTURES = ROOT / "docs" / "pictures"
PROGRAM = Path(sys.executable).parent / "midspan-lsp"
USER: dict[str, Any] = {
    **QUIET,
    "breadcrumbs.enabled": False,
    "workbench.activityBar.location": "hidden",
    "workbench.editor.useModal": "off",
    "workbench.reduceMotion": "on",
}
# No program of Midspan is on this path, and no Python has it.
NOWHERE = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ""}
WIDTH = 760
PAGES = """from fetching import Missing, fetch_page, fetch_sound


def page(address: str) -> bytes:
    try:
        return fetch_page(address)
    except Missing as error:
        raise ValueError(f"{address} is missing") from error


def sound(address: str) -> bytes:
    try:
        return fetch_sound(address)
    except Missing as error:
        return b''|
"""
KERNELS = """import torch


def kernels() -> list[str]:
    capability = torch.cuda.get_device_capability()
    names = ["plain"]
    if capability >= (7, 0):
        names.append("half")
    if capability >= (8, 0):|
        names.append("bfloat16")
    if capability >= (9, 0):
        names.append("float8")
    return names
"""


@attrs.frozen
class Picture:
    """What is done in a window of `height` CSS pixels before the picture is taken; the picture has the first `rows`.

    `text` is the open file, with the cursor at "|".
    """

    act: Callable[[Workbench], None]
    height: int
    rows: int
    text: str = PAGES
    environment: dict[str, str] = attrs.field(factory=dict)


def server_missing(window: Workbench) -> None:
    """Click the red status item."""
    window.ask("click", selector=STATUS)
    eventually(lambda: window.texts(CHOICE), "what is offered")
    leave_status(window)


def fill_selection(window: Workbench) -> None:
    """Select the last line's code, and have it filled."""
    window.press("Shift+Home")
    window.command("Midspan: Fill the Selection")
    eventually(lambda: window.texts_in_webview(".added code"), "the preview")
    eventually(lambda: not window.notifications(), "the bar of progress to go")


def fill_unsure(window: Workbench) -> None:
    """Have filled what the model is not sure of."""
    window.press("Shift+Home")
    window.command("Midspan: Fill the Selection")
    eventually(lambda: ["sure enough" in text for text in window.notifications()] == [True], "the reason alone")


def status_menu(window: Workbench) -> None:
    window.ask("click", selector=STATUS)
    eventually(lambda: window.texts(CHOICE), "the menu")
    leave_status(window)


def leave_status(window: Workbench) -> None:
    """Take the mouse away from the status item, which has another colour below it."""
    window.ask("click", selector=".quick-input-title")


def settings(window: Workbench) -> None:
    window.command("Preferences: Open Settings (UI)")
    eventually(lambda: window.texts(".settings-editor .setting-item-label"), "the settings")
    window.type("@ext:midspan.midspan")
    eventually(lambda: "Enabled" in window.texts(".settings-editor .setting-item-label")[:1], "Midspan's settings")
    window.press("Escape")
    eventually(lambda: not window.menu(), "the list of filters to close")


TOUR = {
    "server-missing": Picture(server_missing, height=330, rows=330, environment=NOWHERE),
    "fill-selection": Picture(fill_selection, height=460, rows=460),
    "fill-unsure": Picture(fill_unsure, height=460, rows=460, text=KERNELS),
    "status-menu": Picture(status_menu, height=820, rows=410),
    "settings": Picture(settings, height=620, rows=620),
}


@contextmanager
def window_of(picture: Picture, home: Path) -> Iterator[Workbench]:
    """Open a window with a file, ready, or red if the picture's environment has no server."""
    server_path = {} if picture.environment else {"midspan.server.path": str(PROGRAM)}
    server = CodeServer(home / "vscode", {"midspan.model": "embedded", **server_path}, picture.environment, USER)
    window = None
    try:
        server.start(package_extension())
        window = Workbench(server)
        window.open_first("notes.txt")
        window.wait_for_status("error" if picture.environment else "ready")
        window.open("example.py", picture.text)
        window.press("Control+B")
        window.ask("resize", width=WIDTH, height=picture.height)
        yield window
    finally:
        if window is not None:
            window.close()
        server.stop()


def take(name: str, home: Path) -> None:
    picture = TOUR[name]
    with window_of(picture, home) as window:
        picture.act(window)
        window.screenshot(home / "window.png")
    save(home / "window.png", picture.rows, PICTURES / f"{name}-after.png")


def save(taken: Path, rows: int, picture: Path) -> None:
    """Save the first rows of a window's picture at half its size and in few colours."""
    with Image.open(taken) as window:
        window.convert("RGB").reduce(2).crop((0, 0, WIDTH, rows)).quantize(64).save(picture, optimize=True)
    print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def main() -> None:
    if missing := what_is_missing():
        sys.exit(missing)
    for name in sys.argv[1:] or TOUR:
        with tempfile.TemporaryDirectory() as folder, engine_home(Path(folder) / "run", Path("embedded")):
            os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
            take(name, Path(folder))


if __name__ == "__main__":
    main()
