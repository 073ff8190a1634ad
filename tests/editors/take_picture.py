"""Takes the picture of the extension's README from a real VS Code at default settings: take_picture.py [MODEL]."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # First: tests has a folder named engine too.

from code_server import EXTENSION, CodeServer, package_extension, what_is_missing
from support.lsp_editor import engine_home
from workbench import Workbench, eventually

SOURCE = """from fetching import Missing, fetch_page, fetch_sound


def page(address: str) -> bytes:
    try:
        return fetch_page(address)
    except Missing as error:
        raise ValueError(f"{address} cannot be fetched") from error


def sound(address: str) -> bytes:
    try:
        return fetch_sound(address)
    except Missing as error:
        |
"""
TYPED = 'raise ValueError(f"{address} cannot be fetched") from error'
READING = ".statusbar-item[aria-label*='Reading the workspace']"
SHORTEST = 12
"""Characters of a suggestion that is worth a picture. It must be right."""


def main() -> None:
    if missing := what_is_missing():
        sys.exit(missing)
    model = sys.argv[1] if len(sys.argv) > 1 else "embedded"
    picture = EXTENSION / "images" / "suggestion.png"
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        engine_home(Path(folder) / "run", Path(model)),
    ):
        program = str(Path(sys.executable).parent / "midspan-lsp")
        os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
        server = CodeServer(Path(folder) / "vscode", {"midspan.server.path": program, "midspan.model": model})
        workbench = None
        try:
            server.start(package_extension())
            workbench = Workbench(server)
            workbench.open_window("notes.txt")
            workbench.open("retries.py", SOURCE)
            # The workspace is read from the first suggestion on.
            workbench.type(TYPED[0])
            workbench.wait_for_ghost(5.0)
            workbench.press("Backspace")
            eventually(lambda: not workbench.texts(READING), "the workspace to be read")
            shown = ""
            for number, key in enumerate(TYPED, 1):
                workbench.type(key)
                shown = workbench.wait_for_ghost(2.0)
                if len(shown) >= SHORTEST and TYPED[number:].startswith(shown):
                    break
            else:
                sys.exit(
                    f"the model {model} suggests nothing long and right while {TYPED!r} is typed; no picture was taken"
                )
            workbench.screenshot(picture)
            print(f"{picture.name} shows {shown!r}")
        finally:
            if workbench is not None:
                workbench.close()
            server.stop()


if __name__ == "__main__":
    main()
