"""Takes the pictures of bulk edits in VS Code: python take_vscode_edit_pictures.py [preview] [next-edit].

The README of the extension and docs/refactor.md show them.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # First: tests has a folder named engine too.

from code_server import EXTENSION, CodeServer, package_extension, what_is_missing
from PIL import Image
from support.lsp_editor import engine_home
from take_edit_pictures import EDIT, FAKE, FORECAST, STATIONS, VENDORED
from workbench import Workbench, eventually

OTHERS = {"forecast.py": FORECAST, "tests/fake.py": FAKE, "vendor/ping.py": VENDORED}
# The rows of the window that the picture shows.
TOP, BOTTOM = 36, {"preview": 600, "next-edit": 420}


def preview(window: Workbench) -> None:
    window.choose_action("Repeat this edit in the workspace")
    eventually(lambda: window.texts_in_webview(".place"), "the preview")
    window.press("ArrowDown")
    window.press("Space")
    window.ask("webviewClick", selector=".left-out summary")


def next_edit(window: Workbench) -> None:
    eventually(lambda: any("⇥ next edit" in text for text in window.decorations()), "the next edit")


def take(name: str, home: Path) -> None:
    """Make the edit by hand in the first place, and take the picture of what is offered then."""
    command = str(Path(sys.executable).parent / "midspan-lsp")
    server = CodeServer(home / "vscode", {"midspan.server.path": command, "midspan.model": "embedded"})
    window = None
    try:
        server.start(package_extension())
        window = Workbench(server)
        window.open_window("forecast.py")
        server.configure({"editor.inlineSuggest.enabled": False, "editor.lightbulb.enabled": "off"})
        for path, text in OTHERS.items():
            (server.folder / path).parent.mkdir(exist_ok=True)
            (server.folder / path).write_text(text)
        window.open("stations.py", STATIONS.replace('/stations")', '/stations"|)', 1))
        window.press("Control+B")
        window.type(EDIT)
        {"preview": preview, "next-edit": next_edit}[name](window)
        window.screenshot(home / "window.png")
    finally:
        if window is not None:
            window.close()
        server.stop()
    picture = EXTENSION / "images" / f"{name}.png"
    with Image.open(home / "window.png") as taken:
        half = taken.convert("RGB").reduce(2)
        shown = half.crop((0, TOP, half.width, min(BOTTOM[name], half.height)))
        shown.quantize(64).save(picture, optimize=True)
    print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def main() -> None:
    if missing := what_is_missing():
        sys.exit(missing)
    for name in sys.argv[1:] or ["preview", "next-edit"]:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            engine_home(Path(folder) / "run", Path("embedded")),
        ):
            os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
            take(name, Path(folder))


if __name__ == "__main__":
    main()
