"""`midspan refactor stubs`, `annotate` and `docstrings`, run as a user runs them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_folder import repository
from support.lsp_editor import engine_home
from support.remote_server import ModelServer, answers_status
from support.scripted_model import writes

FILES = {
    "box.py": 'def f(size: int) -> int:\n    """It."""\n    return size\n\n\ndef g(size, b=True):\n    print(b)\n',
    "stub.py": "def h():\n    pass\n",
    "notes.md": "# Notes\n",
}


def refactor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "COLUMNS": "200"}
    command = [sys.executable, "-m", "engine.cli", "refactor", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def model(server: ModelServer, tmp_path: Path) -> Iterator[str]:
    name = server.model("openai")
    with engine_home(tmp_path / "runtime", name):
        yield name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    repository(folder, FILES)
    return folder


def test_what_the_files_say_is_annotated_without_a_model(folder: Path) -> None:
    done = refactor(folder, "annotate", ".", "--no-model")
    assert "-def g(size, b=True):\n+def g(size, b: bool = True) -> None:\n" in done.stdout
    assert "box.py:6: doubtful: `int`, as elsewhere in the file" in done.stderr
    assert "2 places in 1 file found" in done.stderr
    assert done.returncode == 3, "a doubtful place was left out"
    assert (folder / "box.py").read_text() == FILES["box.py"]
    assert subprocess.run(["git", "apply", "--check"], cwd=folder, input=done.stdout, text=True).returncode == 0


def test_files_as_pre_commit_names_them_are_written(folder: Path) -> None:
    # The other file of the folder has annotations, so this one gets them too.
    done = refactor(folder, "annotate", "box.py", "stub.py", "notes.md", "--no-model", "--doubtful", "--apply")
    assert (folder / "box.py").read_text() == FILES["box.py"].replace(
        "g(size, b=True):", "g(size: int, b: bool = True) -> None:"
    )
    assert "stub.py:1: left out: what `h` returns: the file does not say it" in done.stderr
    assert done.returncode == 3
    assert refactor(folder, "annotate", "box.py", "--no-model").returncode == 0, "nothing is left to do"


def test_stubs_are_filled_by_the_model(folder: Path, server: ModelServer, model: str) -> None:
    server.behaviour = writes([("return", 0.99), (" 1", 0.98)])
    done = refactor(folder, "stubs", ".", "--model", model, "--apply")
    assert done.returncode == 0, done.stderr
    assert (folder / "stub.py").read_text() == "def h():\n    return 1\n"


def test_json_has_the_places_and_what_was_left_out(folder: Path, server: ModelServer, model: str) -> None:
    server.behaviour = writes([("return", 0.99), (" 1", 0.7)])
    (folder / "two.py").write_text("def i():\n    ...\n")
    result = json.loads(refactor(folder, "stubs", ".", "--model", model, "--json").stdout)
    assert (result["places"], result["doubtful"], result["leftOut"]) == (2, 2, 0)
    file = next(file for file in result["files"] if file["path"] == "stub.py")
    assert {name: file["places"][0][name] for name in ("line", "start", "end", "text", "reason", "byModel")} == {
        "line": 2,
        "start": 13,
        "end": 17,
        "text": "return 1",
        "reason": "the model is 69 % sure",
        "byModel": True,
    }


def test_an_engine_that_fails_changes_nothing(folder: Path, server: ModelServer, model: str) -> None:
    server.behaviour = answers_status(500)
    done = refactor(folder, "stubs", ".", "--model", model, "--apply")
    assert done.returncode == 1
    assert done.stderr.startswith("midspan: ")
    assert len(done.stderr.splitlines()) == 1
    assert (folder / "stub.py").read_text() == FILES["stub.py"]


def test_a_small_model_writes_no_docstrings(folder: Path, tiny_model: Path, tmp_path: Path) -> None:
    with engine_home(tmp_path / "runtime", tiny_model):
        done = refactor(folder, "docstrings", ".", "--model", str(tiny_model))
    assert "box.py:7: left out: the docstring of `g`: tiny is too small to write docstrings" in done.stderr
    assert done.returncode == 3


def test_a_file_that_the_settings_exclude_is_left_alone(folder: Path) -> None:
    (folder / "credentials.py").write_text("def f():\n    pass\n")
    done = refactor(folder, "stubs", "credentials.py")
    assert (done.stdout, done.returncode) == ("", 0)
    assert 'midspan: credentials.py is left alone: the file matches "credentials*"' in done.stderr


def test_bad_input_is_told_in_one_line(folder: Path) -> None:
    done = refactor(folder, "stubs", "missing.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "midspan: no such file: missing.py\n"
    assert refactor(folder, "stubs", ".", "--json", "--apply").returncode == 2
