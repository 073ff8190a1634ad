"""`midspan models` with folders of its own and a hub on loopback, for the tests of the library."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from huggingface_hub import constants

from engine.library.catalog import catalog
from support.ended import Ended, run_here
from support.hub_server import Hub, Repository, serve

NAME = "dreamon-7b"
WEIGHTS = "model.safetensors"
NEVER_PULLED = (
    "pytorch_model.bin",
    "consolidated.pt",
    "modeling_dream.py",
    "onnx/model.onnx",
    ".gitattributes",
    "run.sh",
)
TIMEOUT_S = 90


@attrs.frozen
class ModelsCommand:
    """The command `midspan models`, with its own folders for models and settings, and its hub."""

    hub: Hub
    repository: Repository
    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> Ended:
        """Run a command; with another environment in a process of its own, for huggingface_hub reads it once."""
        if environment is None:
            return run_here("models", *arguments)
        run = subprocess.run(
            [sys.executable, "-m", "engine.cli", "models", *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env={**self.environment, **environment},
            check=False,
        )
        return Ended.of(run)

    def fails(self, *arguments: str, environment: dict[str, str] | None = None) -> str:
        """Run a command that must fail, and return its error line."""
        ended = self.run(*arguments, environment=environment)
        assert ended.status == 1
        line = ended.err.splitlines()[-1]
        assert line.startswith("midspan: ")
        assert sum(line.startswith("midspan: ") for line in ended.err.splitlines()) == 1
        assert "Traceback" not in ended.err
        return line

    def pull(self) -> Path:
        """Pull the model NAME and return its folder."""
        assert self.run("pull", NAME).status == 0
        return self.folder / NAME


@contextmanager
def models_command(tiny_model: Path, folder: Path) -> Iterator[ModelsCommand]:
    """Run a hub whose model NAME is the tiny model, with more files beside it. Folders are set in the environment."""
    variables = {
        "MIDSPAN_MODELS_DIR": str(folder / "models"),
        "MIDSPAN_CONFIG_DIR": str(folder / "config"),
        "MIDSPAN_RUNTIME_DIR": str(folder / "runtime"),
    }
    files = {path.name: path.read_bytes() for path in sorted(tiny_model.iterdir())}
    files |= {"generation_config.json": b"", "LICENSE": b"Apache", **dict.fromkeys(NEVER_PULLED, b"import os")}
    repository = Repository(files, large={WEIGHTS, "tokenizer.json"})
    with pytest.MonkeyPatch.context() as patch, serve() as hub:
        for variable, value in variables.items():
            patch.setenv(variable, value)
        patch.delenv("HF_TOKEN", raising=False)
        for constant, setting in {
            "ENDPOINT": hub.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
            "HF_TOKEN_PATH": str(folder / "hf" / "token"),
            "HF_HUB_OFFLINE": False,  # a model that was loaded in this process sets it
        }.items():
            patch.setattr(constants, constant, setting)
        hub.repositories[catalog()[NAME].hub] = repository
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment = {**kept, "HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "NO_PROXY": "*"}
        yield ModelsCommand(hub, repository, folder / "models", environment)
