"""What the tests of this folder share: an engine's home of their own, and the end of what they started."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lsp_editor import engine_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A runtime folder that a module's tests share; the embedded model's engine there is ended."""
    folder = tmp_path_factory.mktemp("runtime")
    with engine_home(folder, "embedded"):
        yield folder
