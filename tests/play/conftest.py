"""One page of `midspan play` in a real Chromium, over a real engine, for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from play_browser import Browser, started, what_is_missing
from support.lsp_editor import engine_home

DESCRIBE = "        print('computing the area of the rectangle', self.width_in_points, self.height_in_points)\n"
"""A line that the model alone would never write."""


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the page may open."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "area.py").write_text("def area(w, h):\n    return w * h\n")
    (folder / "rectangle.py").write_text("class Rectangle:\n    def describe(self) -> None:\n" + DESCRIBE)
    (folder / "other.py").write_text("class Other:\n    def describe(self) -> None:\n        print('comp\n")
    (folder / "big.py").write_text("x = 1\n" * 350_000)
    (folder / "data.py").write_bytes(b"x = 1\n\0\0")
    (folder / "latin.py").write_bytes("größe = 1\n".encode("latin-1"))
    return folder


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return where the engine's runtime files are while the tests of this folder run."""
    home = tmp_path_factory.mktemp("runtime")
    with engine_home(home, Path("embedded")):
        yield home


@pytest.fixture(scope="package")
def address(home: Path, folder: Path) -> Iterator[str]:
    """Return the address that `midspan play` prints."""
    with started(folder) as (address, _):
        yield address


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if (missing := what_is_missing()) is not None:
        pytest.skip(missing)
    browser = Browser()
    yield browser
    browser.close()
