"""Takes the picture of the extension's README from a real VS Code at default settings: take_picture.py [MODEL]."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from code_server import EXTENSION, CodeServer, package_extension, what_is_missing
from lsp_editor import engine_home
from workbench import Workbench

SOURCE = '''"""The depot: where parcels wait until a van takes them."""

import logging
from collections import defaultdict

from parcels import Parcel

logger = logging.getLogger(__name__)


class Depot:
    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[Parcel]] = defaultdict(list)

    def receive(self, parcel: Parcel) -> None:
        self._waiting[parcel.destination].append(parcel)
        logger.info("parcel %s waits for %s", parcel.number, parcel.destination)

    def give_back(self, parcel: Parcel) -> None:
        self._waiting[parcel.destination].remove(parcel)
        |
'''
TYPED = 'logger.info("parcel %s is back from %s", parcel.number, parcel.destination)'
SHORTEST = 12
"""Characters of a suggestion that is worth a picture. It must be right."""


def main() -> None:
    if missing := what_is_missing():
        sys.exit(missing)
    model = sys.argv[1] if len(sys.argv) > 1 else "embedded"
    picture = EXTENSION / "images" / "suggestion.png"
    with tempfile.TemporaryDirectory() as folder, engine_home(Path(folder) / "run", Path(model)):
        program = str(Path(sys.executable).parent / "midspan-lsp")
        os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
        server = CodeServer(Path(folder) / "vscode", {"midspan.server.path": program, "midspan.model": model})
        workbench = None
        try:
            server.start(package_extension())
            workbench = Workbench(server)
            workbench.open_window("notes.txt")
            workbench.open("depot.py", SOURCE)
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
