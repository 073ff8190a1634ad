"""`midspan refactor repeat`, run as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from git_folder import git, repository

FILES = {
    "a.py": "import os\nx = os.getcwd()\n",
    "b.py": "import os\n\n\ndef f(os):\n    return os.getcwd()\n",
    "c.py": "import os\n\nprint(os.getcwd())\n",
}
CODE = ("--from", "import os\nos.getcwd()", "--to", "from pathlib import Path\nPath.cwd()")


def refactor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "COLUMNS": "200"}
    command = [sys.executable, "-m", "engine.cli", "refactor", "repeat", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def test_a_diff_is_the_default_and_writes_nothing(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    done = refactor(tmp_path, ".", *CODE)
    assert "-print(os.getcwd())\n+print(Path.cwd())\n" in done.stdout
    assert "python: os.getcwd($$R0_all) → Path.cwd($$R0_all)" in done.stderr
    assert "b.py:5: left out: `os` is a parameter here" in done.stderr
    assert "2 places in 2 files found, 1 left out" in done.stderr
    assert done.returncode == 3, "a place was left out"
    assert (tmp_path / "a.py").read_text() == FILES["a.py"]
    assert subprocess.run(["git", "apply", "--check"], cwd=tmp_path, input=done.stdout, text=True).returncode == 0


def test_apply_writes_the_files(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    done = refactor(tmp_path, "a.py", "c.py", *CODE, "--apply")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.py").read_text() == "from pathlib import Path\n\nprint(Path.cwd())\n"
    again = refactor(tmp_path, ".", *CODE)
    assert "0 places in 0 files found" in again.stderr


def test_json_has_edits_places_and_what_was_left_out(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    result = json.loads(refactor(tmp_path, ".", *CODE, "--json").stdout)
    assert {file["path"]: len(file["places"]) for file in result["files"]} == {"a.py": 1, "b.py": 0, "c.py": 1}
    first = next(file for file in result["files"] if file["path"] == "a.py")
    assert first["edits"][0] == {"startByte": 0, "endByte": 9, "start": 0, "end": 9, "text": "from pathlib import Path"}
    assert (result["places"], result["leftOut"], result["reached"]) == (2, 1, [])


def test_the_edits_of_the_working_tree_are_examples(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "a.py").write_text("from pathlib import Path\nx = Path.cwd()\n")
    done = refactor(tmp_path, ".", "--since", "HEAD", "--apply")
    assert (tmp_path / "c.py").read_text() == "from pathlib import Path\n\nprint(Path.cwd())\n", done.stderr


def test_two_files_are_an_example(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    (tmp_path / "new.py").write_text("from pathlib import Path\nx = Path.cwd()\n")
    done = refactor(tmp_path, "c.py", "--example", "a.py", "new.py")
    assert "+print(Path.cwd())" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((".",), "give one of --from with --to, --example and --since"),
        ((".", "--from", "a()"), "--from and --to belong together"),
        ((".", *CODE, "--json", "--apply"), "exclude each other"),
        (("none.py", *CODE), "none.py cannot be read as a UTF-8 text"),
        ((".", "--since", "nowhere"), "give a revision of this repository"),
        ((".", "--from", "a(", "--to", "b("), "the example has syntax errors in python"),
        ((".", *CODE, "--language", "cobol"), "--language 'cobol' is not known"),
    ],
)
def test_bad_input_gets_one_line(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    repository(tmp_path, FILES)
    done = refactor(tmp_path, *arguments)
    assert done.returncode == 2
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1
