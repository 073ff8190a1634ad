"""What `pip install .` brings, and that it is enough: the embedded model needs neither torch nor transformers."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.gguf_files import tiny_network
from support.masked_checkpoints import save_checkpoint

import engine
import lsp_server

_MOST_MEGABYTES = 240
"""NumPy has 57, 23 grammars have 55, tokenizers with what it requires has 32, the weights have 17."""
_EXTRAS_ONLY = ("torch", "transformers", "matplotlib")


def brought(requirement: str) -> set[str]:
    """Return the distributions that `requirement` brings, itself included, as far as they are installed here."""
    found: set[str] = set()
    waiting = [requirement]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for line in metadata.requires(name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name.lower().replace("_", "-"))
    return found


def size_of(name: str) -> int:
    """Return the bytes of a distribution's files, without the bytecode that Python can make again."""
    distribution = metadata.distribution(name)
    paths = [Path(str(distribution.locate_file(file))) for file in distribution.files or []]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.exists())


def test_it_brings_no_torch_and_is_small() -> None:
    names = brought("midspan")
    assert {"numpy", "tokenizers", "pygls", "tree-sitter-python"} <= names
    assert not names & set(_EXTRAS_ONLY)
    own = [Path(str(package.__file__)).parent for package in (engine, lsp_server)]
    project = tomllib.loads((Path(str(engine.__file__)).parents[1] / "pyproject.toml").read_text())
    left_out = ["*.pyc", *project["tool"]["setuptools"]["exclude-package-data"]["*"]]
    files = [path for folder in own for path in folder.rglob("*") if path.is_file()]
    files = [path for path in files if not any(map(path.match, left_out))]
    total = sum(path.stat().st_size for path in files) + sum(size_of(name) for name in names - {"midspan"})
    assert total <= _MOST_MEGABYTES * 1e6


@pytest.fixture
def without_torch(tmp_path: Path) -> dict[str, str]:
    """An environment in which these packages cannot be imported, as if they were not installed."""
    (tmp_path / "missing").mkdir()
    code = f"import sys\nsys.modules.update(dict.fromkeys({_EXTRAS_ONLY}))\n"
    (tmp_path / "missing" / "sitecustomize.py").write_text(code)
    paths = os.pathsep.join([str(tmp_path / "missing"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": paths, "MIDSPAN_RUNTIME_DIR": str(tmp_path / "runtime")}


def _midspan(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)


def test_without_torch_the_embedded_model_fills_a_hole(without_torch: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n\nhome = os.path.joi\n")
    try:
        ended = _midspan(without_torch, "fill", str(tmp_path / "a.py"), "--at", "3:19", "--json")
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["text"].startswith("n(")
    finally:
        _midspan(without_torch, "engine", "stop")


def test_without_torch_a_gguf_fills_a_hole(without_torch: dict[str, str], tmp_path: Path) -> None:
    path = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf", "Q4_0")
    (tmp_path / "a.py").write_text("import os\n\nhome = \n")
    try:
        ended = _midspan(without_torch, "fill", str(tmp_path / "a.py"), "--at", "3:8", "--json", "--model", str(path))
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["model"] == "tiny"
    finally:
        _midspan(without_torch, "engine", "stop", "--model", str(path))


def test_without_torch_a_gguf_is_tuned(without_torch: dict[str, str], tmp_path: Path) -> None:
    path = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf", "Q4_0")
    (tmp_path / "code").mkdir()
    for number in range(6):
        (tmp_path / "code" / f"m{number}.py").write_text(f"def total{number}(values):\n    return sum(values)\n" * 9)
    ended = _midspan(without_torch, "models", "tune", str(path), str(tmp_path / "code"), "--minutes", "0.1")
    assert ended.returncode == 0, ended.stderr
    assert "nats a token on" in ended.stdout
    (tmp_path / "empty").mkdir()
    ended = _midspan(without_torch, "models", "tune", str(path), str(tmp_path / "empty"))
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == ["midspan: 0 files of code are too few to tune on; at least 5 are needed"]


def test_without_torch_a_larger_model_names_the_extra(without_torch: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "qwen2"}')
    (tmp_path / "a.py").write_text("x = 1\n")
    ended = _midspan(without_torch, "fill", str(tmp_path / "a.py"), "--at", "1:5", "--model", str(tmp_path / "model"))
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "needs torch; install Midspan with its extra" in line
    assert "[models]" in line


def test_without_torch_nobody_is_sent_for_it_where_it_would_not_help(
    without_torch: dict[str, str], tmp_path: Path
) -> None:
    folder = tiny_network("llama", mlp_bias=True).save_folder(tmp_path / "model")
    (tmp_path / "a.py").write_text("x = 1\n")
    ended = _midspan(without_torch, "fill", str(tmp_path / "a.py"), "--at", "1:5", "--model", str(folder))
    assert ended.returncode == 1
    problem = "nothing here, but a server may: the kernel does not run a network with mlp_bias"
    assert ended.stderr.splitlines() == [f"midspan: the model in {folder} is run by {problem}"]


def test_without_torch_the_info_of_a_model_that_needs_it_says_so(without_torch: dict[str, str], tmp_path: Path) -> None:
    ended = _midspan(
        without_torch, "models", "info", str(save_checkpoint("llada", tmp_path / "model").folder), "--json"
    )
    assert "; torch is missing: install Midspan with its extra" in json.loads(ended.stdout)["runs_in"]


def test_without_torch_training_names_the_extra(without_torch: dict[str, str]) -> None:
    ended = _midspan(without_torch, "train", "--help")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        'midspan: training needs torch; install Midspan with its extra "train": pip install ".[train]" in its clone'
    ]
