"""Takes the pictures of bulk edits in VS Code: python take_vscode_edit_pictures.py [preview] [next-edit].

The README of the extension and docs/refactor.md show them.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from code_server import EXTENSION, CodeServer, package_extension, what_is_missing
from PIL import Image
from support.lsp_editor import engine_home
from workbench import Workbench, eventually

PATHS = '''"""Where the settings of a user are."""

import os
from pathlib import Path


def settings(home: str) -> Path:
    return |Path(os.path.join(home, "settings.toml"))


def cache(home: str) -> Path:
    return Path(os.path.join(home, ".cache"))


def log(home: str, name: str) -> Path:
    return Path(os.path.join(home, f"{name}.log"))
'''
# The rows of the window that the picture shows.
TOP, BOTTOM = 36, {"preview": 600, "next-edit": 420}
TYPED = 'Path(home) / "settings.toml"'
REPORTS = '''"""Reports as files."""

import os
from pathlib import Path


def report(folder: str, number: int) -> str:
    path = Path(os.path.join(folder, f"report-{number}.md"))
    return path.read_text()


def summary(folder: str, Path: type) -> object:
    return Path(os.path.join(folder, "summary.md"))
'''


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
        window.open_window("reports.py")
        server.configure({"editor.inlineSuggest.enabled": False, "editor.lightbulb.enabled": "off"})
        (server.folder / "reports.py").write_text(REPORTS)
        window.open("paths.py", PATHS)
        window.press("Control+B")
        window.press("Shift+End")
        window.type(TYPED)
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
        with tempfile.TemporaryDirectory() as folder, engine_home(Path(folder) / "run", Path("embedded")):
            os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
            take(name, Path(folder))


if __name__ == "__main__":
    main()
