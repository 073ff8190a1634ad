"""Which tests run first: those of what changed since the last commit, or in it when the working tree is clean."""

import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_PACKAGES = ("engine", "lsp_server")


def changed_paths(root: Path) -> list[PurePosixPath]:
    """Return the paths that differ from the last commit, else those that it changed; none without git."""
    differing = _git(root, "diff", "--name-only", "HEAD") + _git(root, "ls-files", "--others", "--exclude-standard")
    return [PurePosixPath(path) for path in differing or _git(root, "diff", "--name-only", "HEAD~1", "HEAD")]


def rank(test: PurePosixPath, changed: Iterable[PurePosixPath]) -> int:
    """Return 0 for a test file that changed, 1 for one that mirrors a changed module, 2 for the rest."""
    best = 2
    for path in changed:
        if test == path:
            return 0
        if path.parts[0] in _PACKAGES and _mirrors(test, "tests" / path.parent):
            best = 1
    return best


def _mirrors(test: PurePosixPath, folder: PurePosixPath) -> bool:
    # The tests of a package's root modules are in the root too; below it are the tests of its rooms.
    return test.parent == folder if folder.name in _PACKAGES else test.is_relative_to(folder)


def _git(root: Path, *arguments: str) -> list[str]:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
