"""What strangers try at the doors of `midspan play`: the folder's files, questions, the browser's command line."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from hardening.hostile_repository import FILES, bare_folder, hostile_repository
from play_browser import started
from support.lsp_editor import engine_home

SOURCES = {name for name in FILES if name.endswith(".py")}


def asked(address: str, question: str, body: object) -> httpx2.Response:
    """Return what `midspan play` answers to a question of a page."""
    url, _, token = address.partition("/play#")
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.post(f"{url}/play/api/{question}", json=body, headers=headers, trust_env=False, timeout=60)


@pytest.fixture
def runtime(tmp_path: Path, tiny_model: Path) -> Iterator[Path]:
    """Return the engine's runtime folder; the tests of this file need no suggestion of a good model."""
    with engine_home(tmp_path / "runtime", tiny_model):
        yield tmp_path / "runtime"


@pytest.mark.parametrize("make", [hostile_repository, bare_folder])
def test_the_list_of_a_strangers_files_starts_nothing(
    make: Callable[[Path, Path], Path], tmp_path: Path, runtime: Path
) -> None:
    marker = tmp_path / "marker"
    folder = make(tmp_path / "folder", marker)
    with started(folder) as (address, _):
        assert set(asked(address, "files", {}).json()["paths"]) >= SOURCES
    assert not marker.exists(), marker.read_text()
