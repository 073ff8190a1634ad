"""The scripts that take the pictures of the pages, as `make` runs them: by path, from any folder."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted([*Path(__file__).parent.glob("take_*.py"), Path(__file__).with_name("record_demo.py")])
LOAD = "import runpy, sys; sys.path[0] = sys.argv[1].rpartition('/')[0]; runpy.run_path(sys.argv[1])"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_finds_all_that_it_imports(script: Path, tmp_path: Path) -> None:
    loaded = subprocess.run([sys.executable, "-c", LOAD, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
