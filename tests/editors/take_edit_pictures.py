"""Takes the pictures of docs/refactor.md in a real Neovim: python take_edit_pictures.py [preview] [next-edit]."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # First: tests has a folder named engine too.

from moving_picture import animated_svg
from neovim import PROGRAM, ROOT, Setup, environment, write_init
from record_demo import COLUMNS, LUA, ROWS, Screen
from support.git_folder import repository
from support.lsp_editor import engine_home

PICTURES = ROOT / "docs"
STATIONS = '''"""The stations that measure the weather."""

import requests


class Stations:
    def __init__(self, url):
        self.url = url

    def all(self):
        return requests.get(f"{self.url}/stations").json()

    def one(self, name):
        answer = requests.get(f"{self.url}/stations/{name}")
        answer.raise_for_status()
        return answer.json()

    def near(self, place):
        return requests.get(self.url + place)

    def send(self, name, report):
        return requests.post(f"{self.url}/stations/{name}", report)
'''
FORECAST = """import requests


def tomorrow(url, city):
    return requests.get(url + city).json()
"""
VENDORED = """import requests


def ping(url):
    return requests.get(url).ok
"""
FAKE = """class Requests:
    def get(self, url):
        self.seen.append(url)


requests = Requests()
requests.get("/stations")
"""
EDIT = ", timeout=10"
READ_S = 1.0


def take(home: Path, keys: Callable[[Screen], None], name: str, title: str) -> None:
    """Change the first call of requests.get by hand in Neovim, press `keys`, and save what was recorded."""
    files = {"stations.py": STATIONS, "forecast.py": FORECAST, "tests/fake.py": FAKE, "vendor/ping.py": VENDORED}
    repository(home / "weather", files)
    init = write_init(home / "home", Setup({"settings": {"model": "embedded"}}, extra=LUA.replace("%f", "%t")))
    command = ["sh", "-c", f"cd {home / 'weather'} && exec {PROGRAM} -u {init} stations.py"]
    screen = Screen(home, command, environment(home / "home", Setup({})))
    try:
        screen.wait_for(lambda: screen.plain()[ROWS - 1].rstrip().endswith("Midspan"), "the engine is not ready")
        screen.type("11Gf)i" + EDIT)
        screen.wait_for(lambda: EDIT in screen.plain()[10], "the edit is not made")
        screen.press("Escape")
        screen.wait_for(lambda: EDIT in screen.plain()[13], "no next edit is shown")
        keys(screen)
        seconds = screen.stop_recording()
    finally:
        screen.close()
    picture = PICTURES / name
    picture.write_text(animated_svg(screen.frames, seconds, (COLUMNS, ROWS), title))
    print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def preview(screen: Screen) -> None:
    screen.type(":Midspan repeat\n")
    screen.wait_for(lambda: any("tick, a all" in line for line in screen.plain()), "no preview opens")
    screen.type(":only\n")
    screen.wait_for(lambda: any("left out" in line for line in screen.plain()), "the preview does not fit")
    screen.type("9G ")
    screen.wait_for(lambda: any(line.startswith("[ ] stations.py:19") for line in screen.plain()), "no tick goes")
    screen.record()
    time.sleep(READ_S)


def next_edit(screen: Screen) -> None:
    shown = [(13, EDIT), (13, EDIT), (18, EDIT), (18, EDIT), (18, "next edit: forecast.py:5"), (4, EDIT), (4, EDIT)]
    for number, (row, text) in enumerate(shown):
        if number == 0:
            screen.record()
        else:
            screen.press_shown("Tab")
        screen.wait_for(partial(_has, screen, row, text), f"{text} is not in row {row}")
        time.sleep(READ_S)
    screen.wait_for(lambda: "[+]" in screen.plain()[ROWS - 1], "the last place is not changed")


def _has(screen: Screen, row: int, text: str) -> bool:
    return text in screen.plain()[row]


def main() -> None:
    if not PROGRAM.exists():
        sys.exit("Neovim is not here: make editors-neovim")
    for name in sys.argv[1:] or ["preview", "next-edit"]:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            engine_home(Path(folder) / "run", Path("embedded")),
        ):
            os.environ["MIDSPAN_DATA_DIR"] = str(Path(folder) / "data")
            if name == "preview":
                take(Path(folder), preview, "preview-neovim.svg", "An edit to repeat in Neovim: :Midspan repeat")
            else:
                take(Path(folder), next_edit, "next-edit-neovim.svg", "The next edit in Neovim: Tab makes it")


if __name__ == "__main__":
    main()
