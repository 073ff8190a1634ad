"""Folders with files, with git or without it."""

import os
import subprocess
from pathlib import Path


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files by their paths in `folder`."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def git(folder: Path, *arguments: str) -> None:
    """Run git in `folder`, untouched by the user's settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments]
    subprocess.run(command, cwd=folder, env={**clean, **settings}, check=True, capture_output=True)


def repository(folder: Path, files: dict[str, str]) -> Path:
    """Write files and track all of them that are not ignored."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    write(folder, files)
    git(folder, "add", ".")
    return folder
