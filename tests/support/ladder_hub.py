"""A hub on loopback with a tiny model for each rung of the ladder, and folders of the test's own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.library.catalog import catalog
from support.gguf_files import tiny_network
from support.hub_server import Hub, Repository, serve

RUNGS = ("qwen-coder-0.5b-q4", "qwen-coder-1.5b-q4")
PATIENT = {"threads": 1, "budgetMs": 5000, "gate": 0, "maxTokens": 4}
"""Settings with which a rung is in time on every machine."""


def add_rungs(hub: Hub, folder: Path) -> list[Repository]:
    """Give a hub a repository for each rung. `folder` gets their tiny model, tiny.gguf."""
    data = tiny_network("qwen2").save_gguf(folder / "tiny.gguf").read_bytes()
    found = [Repository({catalog()[name].file: data}, large={catalog()[name].file}) for name in RUNGS]
    hub.repositories |= {catalog()[name].hub: each for name, each in zip(RUNGS, found, strict=True)}
    return found


@contextmanager
def ladder_hub(folder: Path) -> Iterator[Hub]:
    """Run the hub, and set the environment of this process for it. All engines of the test end at the end."""
    variables = {f"MIDSPAN_{kind}_DIR": str(folder / kind.lower()) for kind in ("MODELS", "CONFIG", "RUNTIME", "DATA")}
    with pytest.MonkeyPatch.context() as patch, serve() as hub:
        for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
            patch.delenv(name, raising=False)
        variables |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "NO_PROXY": "*", "HOME": str(folder)}
        for name, value in variables.items():
            patch.setenv(name, value)
        add_rungs(hub, folder)
        try:
            yield hub
        finally:
            stop = [sys.executable, "-m", "engine.cli", "engine", "stop"]
            subprocess.run(stop, capture_output=True, check=False)
