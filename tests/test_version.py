"""One version: pyproject.toml and the VS Code extension have that of engine.__version__."""

import json
import tomllib
from pathlib import Path

from engine import __version__

ROOT = Path(__file__).parent.parent


def test_the_package_takes_its_version_from_the_code() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "engine.__version__"}


def test_the_vs_code_extension_has_the_same_version() -> None:
    extension = ROOT / "editors" / "vscode"
    for name in ("package.json", "package-lock.json"):
        assert json.loads((extension / name).read_text())["version"] == __version__, name
