"""Examples from git: the edits of the working tree."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs

from engine.errors import MidspanError
from lsp_server.refactor.example import Example
from lsp_server.workspace.reading import read_text

_SECONDS = 20.0


class GitFailed(MidspanError):
    """Git is missing, the folder is in no repository, or the revision does not exist."""

    code = "git"


@attrs.frozen
class ChangedFile:
    """A file that git tracks, as it was and as it is. `path` is from the root of the repository."""

    path: str
    example: Example


def changed_files(folder: Path, revision: str) -> list[ChangedFile]:
    """Return the tracked files whose text differs from a revision, by path. Raises GitFailed."""
    root = _git(folder, "rev-parse", "--show-toplevel").decode().rstrip("\n")
    # A revision that begins with "-" would be an option.
    commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    names = _git(Path(root), "diff", "--name-only", "-z", "--no-ext-diff", "--diff-filter=M", commit, "--")
    files: list[ChangedFile] = []
    for name in names.split(b"\0"):
        path = name.decode("utf-8", "replace")
        after = read_text(os.path.realpath(root), path) if path else None
        if after is None:
            continue
        try:
            before = _git(Path(root), "show", f"{commit}:{path}").decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
        files.append(ChangedFile(path, Example(before, after)))
    return files


def _git(folder: Path, *arguments: str) -> bytes:
    # A repository may be a stranger's, so its settings must not start a program.
    command: Sequence[str] = ["git", "-c", "core.fsmonitor=false", "--literal-pathspecs", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise GitFailed(f"git cannot be run ({type(error).__name__}); install it, or give --from and --to") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(f"git: {said[-1] if said else 'failed'}; give a revision of this repository, such as HEAD")
    return done.stdout
