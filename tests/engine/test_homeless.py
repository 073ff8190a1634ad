"""A user without a home directory: no variable HOME and no entry for the user, as in many containers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOBODY = "import pwd\ndef unknown(_):\n    raise KeyError\npwd.getpwuid = pwd.getpwnam = unknown\n"
COMMANDS = {
    "midspan models list": ("engine.cli", "models", "list"),
    "midspan stats": ("engine.cli", "stats"),
    "midspan engine status": ("engine.cli", "engine", "status"),
    "midspan setup": ("engine.cli", "setup"),
    "midspan-lsp": ("lsp_server",),
}


def run(tmp_path: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "sitecustomize.py").write_text(NOBODY)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOME", "XDG_", "MIDSPAN_"))}
    environment = {**kept, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path.cwd()}", **variables}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=60
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_user_without_a_home_gets_one_line_or_an_answer_and_no_folder_named_tilde(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, *COMMANDS[name], MIDSPAN_RUNTIME_DIR=str(tmp_path / "runtime"))

    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (tmp_path / "~").exists()


def test_folders_that_variables_name_need_no_home(tmp_path: Path) -> None:
    folders = {f"MIDSPAN_{name}_DIR": str(tmp_path / name) for name in ("DATA", "CONFIG", "RUNTIME")}

    assert run(tmp_path, "engine.cli", "models", "list", **folders).returncode == 0
    assert run(tmp_path, "lsp_server", **folders).returncode == 0


def test_without_a_home_the_log_is_beside_the_runtime_files(tmp_path: Path) -> None:
    folders = {f"MIDSPAN_{name}_DIR": str(tmp_path / name) for name in ("DATA", "CONFIG")}

    done = run(tmp_path, "engine.cli", "engine", "status", **folders, XDG_RUNTIME_DIR=str(tmp_path))
    assert "no engine is running" in done.stdout, done.stderr
