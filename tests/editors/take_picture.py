"""Takes the picture of the extension's README from a real VS Code: python take_picture.py [MODEL]."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from code_server import EXTENSION, CodeServer, package_extension, what_is_missing
from lsp_editor import engine_home
from workbench import Workbench

SOURCE = '''"""Areas and lengths of simple shapes."""

import math
from dataclasses import dataclass


@dataclass
class Circle:
    radius: float

    def area(self) -> float:
        return math.pi * self.radius**2

    def circumference(self) -> float:
        |


def total_area(shapes: list[Circle]) -> float:
    return sum(shape.area() for shape in shapes)
'''
# The picture is taken at the first suggestion after the shortest part of it.
TYPED, SHORTEST = "return 2 * math.pi * self.radius", len("return 2 * ")


def main() -> None:
    if missing := what_is_missing():
        sys.exit(missing)
    model = sys.argv[1] if len(sys.argv) > 1 else "embedded"
    picture = EXTENSION / "images" / "suggestion.png"
    with tempfile.TemporaryDirectory() as folder, engine_home(Path(folder) / "run", Path(model)):
        settings = {
            "midspan.server.path": str(Path(sys.executable).parent / "midspan-lsp"),
            "midspan.model": model,
            "midspan.gate": 0,
            "midspan.budgetMs": 2000,
        }
        os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
        server = CodeServer(Path(folder) / "vscode", settings)
        workbench = None
        try:
            server.start(package_extension())
            workbench = Workbench(server)
            workbench.open_window("notes.txt")
            workbench.open("shapes.py", SOURCE)
            shown = ""
            for number, key in enumerate(TYPED, 1):
                workbench.type(key)
                shown = workbench.wait_for_ghost(2.0)
                if shown.strip() and number >= SHORTEST:
                    break
            if not shown:
                sys.exit(f"the model {model} suggests nothing after {TYPED!r}; no picture was taken")
            workbench.screenshot(picture)
            print(f"{picture.name} shows {shown!r}")
        finally:
            if workbench is not None:
                workbench.close()
            server.stop()


if __name__ == "__main__":
    main()
