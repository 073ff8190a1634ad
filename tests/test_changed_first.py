"""`make check` runs the tests of what changed before the others."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest
from support.changed_first import changed_paths, rank

FILL = PurePosixPath("tests/engine/fill/test_sampling.py")
MODEL = PurePosixPath("tests/engine/models/embedded/test_link.py")


@pytest.mark.parametrize(
    ("changed", "test", "expected"),
    [
        ("tests/engine/fill/test_sampling.py", FILL, 0),
        ("engine/fill/denoise.py", FILL, 1),
        ("engine/fill/denoise.py", MODEL, 2),
        ("engine/models/load.py", MODEL, 1),
        ("engine/errors.py", MODEL, 2),
        ("engine/usage_file.py", PurePosixPath("tests/engine/test_usage_file.py"), 1),
        ("README.md", FILL, 2),
    ],
)
def test_a_test_ranks_by_how_near_the_change_is(changed: str, test: PurePosixPath, expected: int) -> None:
    assert rank(test, [PurePosixPath("docs/models.md"), PurePosixPath(changed)]) == expected


def test_changes_come_from_the_working_tree_or_else_from_the_last_commit(tmp_path: Path) -> None:
    assert changed_paths(tmp_path) == [], "no repository"
    git(tmp_path, "init", "--quiet")
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "--quiet", "--message", name)
    assert changed_paths(tmp_path) == [PurePosixPath("second")]
    (tmp_path / "first").write_text("changed")
    (tmp_path / "third").write_text("new")
    assert changed_paths(tmp_path) == [PurePosixPath("first"), PurePosixPath("third")]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)
