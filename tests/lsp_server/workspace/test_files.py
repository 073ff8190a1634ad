"""Which files of a workspace are learned: git's, or those of a walk, and of these only what is safe to read."""

import contextlib
import os
import random
from pathlib import Path

import pytest
from support.git_folder import git, repository, write

from engine.bounds import MAX_FILE_BYTES
from engine.git import Repository
from engine.reading import is_inside, read_text
from lsp_server.settings import Settings
from lsp_server.workspace import files as files_module
from lsp_server.workspace.files import Changes, Rules, examine, learnable_files, walk
from lsp_server.workspace.memory import Folders

RULES = Rules.of(Settings())
IGNORING = {
    ".gitignore": "*.gen.py\n/build/\n!keep.gen.py\n",
    "a.py": "a = 1\n",
    "b.gen.py": "b = 1\n",
    "keep.gen.py": "kept = 1\n",
    "build/c.py": "c = 1\n",
    "sub/build/d.py": "d = 1\n",
    "sub/.gitignore": "e.py\n!f.gen.py\n",
    "sub/e.py": "e = 1\n",
    "sub/f.gen.py": "f = 1\n",
}
NOT_IGNORED = {"a.py", "keep.gen.py", "sub/build/d.py", "sub/f.gen.py"}


def learnable(folder: Path, rules: Rules = RULES, near: str = "") -> list[str]:
    return learnable_files(os.path.realpath(folder), rules, near)


def test_in_a_repository_ignored_files_are_left_out_and_untracked_ones_are_not(tmp_path: Path) -> None:
    repository(tmp_path, IGNORING)
    write(tmp_path, {"untracked.py": "u = 1\n", "tracked.gen.py": "t = 1\n"})
    git(tmp_path, "add", "--force", "tracked.gen.py")
    assert set(learnable(tmp_path)) == {*NOT_IGNORED, "untracked.py", "tracked.gen.py"}


def test_a_folder_inside_a_repository_has_its_own_files_only(tmp_path: Path) -> None:
    repository(tmp_path, IGNORING)
    assert set(learnable(tmp_path / "sub")) == {"build/d.py", "f.gen.py"}


def test_a_walk_leaves_out_what_gitignore_files_name(tmp_path: Path) -> None:
    write(tmp_path, IGNORING)
    write(tmp_path, {"node_modules/x.js": "x", ".venv/y.py": "y", "sub/__pycache__/z.py": "z"})
    assert set(learnable(tmp_path)) == NOT_IGNORED


def test_a_folder_that_git_ignores_is_walked_when_it_is_the_workspace(tmp_path: Path) -> None:
    repository(tmp_path, IGNORING)
    assert learnable(tmp_path / "build") == ["c.py"]
    write(tmp_path / "build", {"new.py": "n = 1\n"})
    changes = examine(os.path.realpath(tmp_path / "build"), ["new.py"], ["c.py"], RULES, "")
    assert changes == Changes(["new.py"], [])


def test_a_walk_skips_lines_of_gitignore_that_are_no_patterns(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "!\nb.py\n[\n", "a.py": "", "b.py": ""})
    assert learnable(tmp_path) == ["a.py"]


_NAMES = ("a", "b", "ab", "a.py", "b.py", "foo", "f o", "x[y", "#h", "!n", "a*b", "é.py")
_GLOBS = (
    "*",
    "a",
    "b",
    "ab",
    "*.py",
    "a*",
    "?",
    "[ab]",
    "[!a]",
    "[^b]*",
    "foo",
    "**",
    r"\#h",
    r"\!n",
    r"a\*b",
    "f o",
    "f o ",
)
_MORE_GLOBS = ("**b", "#h", "*a*b", "[", r"\[")


@pytest.mark.parametrize("seed", range(20))
def test_a_walk_ignores_what_git_ignores(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    lines = list[str]()
    for _ in range(choice.randint(1, 6)):
        line = "/".join(choice.choices((*_GLOBS, *_MORE_GLOBS), k=choice.randint(1, 3)))
        lines.append(choice.choice(("", "", "", "/", "!")) + line + choice.choice(("", "", "", "/")))
    paths = {"/".join(choice.choices(_NAMES, k=choice.randint(1, 4))): "" for _ in range(30)}
    for path in paths:
        with contextlib.suppress(OSError):  # a file is where a folder would be
            write(tmp_path, {path: ""})
    write(tmp_path, {".gitignore": "\n".join(lines)})
    of_walk = set(walk(os.path.realpath(tmp_path)))
    git(tmp_path, "init", "-q")
    of_git = Repository.of(str(tmp_path)).ask("ls-files", "-z", "--others", "--exclude-standard").decode()
    assert of_walk == set(of_git.split("\0")[:-1]), lines


def test_no_pattern_of_a_stranger_takes_long(tmp_path: Path) -> None:
    """Each of these took more steps than there are atoms, or as many as a name has letters, squared, for each."""
    patterns = [
        "*a" * 20 + "*b",
        "**/" * 20 + "b",
        "/".join(["**", "*a" * 9 + "b"] * 9),
        "[" * 400,
        "[a-" * 90,
        "*" * 399 + "z",
    ]
    names = {f"{'a' * 200}{number}.py": "" for number in range(100)}
    write(tmp_path, {".gitignore": "\n".join(patterns * 100), **names, "/".join(["a" * 100] * 20) + "/c.py": ""})
    assert len(walk(os.path.realpath(tmp_path))) == 100 + 2, "the deep file and the .gitignore too"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "/a",
            "//a",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a/.",
            "a//b",
            "a/",
            ".git",
            ".git/config",
            "a/.git/b",
            ".GIT/b",
        ),
        *(
            ".git./b",
            ".git /b",
            "git~1/b",
            ".g\u200cit/b",
            ".git::$INDEX_ALLOCATION/b",
            "a\0b",
            "a\nb",
            "a\x1b[2J",
            "\udcff",
        ),
        "a/" * 3000 + "b",
    ],
)
def test_a_path_that_could_lead_out_is_not_inside(path: str) -> None:
    assert not is_inside(path)
    assert read_text("/", path) is None


@pytest.mark.parametrize(
    "path", ["a", "a/b.py", ".github/a.py", ".gitignore", "a/..b", "...", "x.git/b", "é/日本.py", "git/b"]
)
def test_an_ordinary_path_is_inside(path: str) -> None:
    assert is_inside(path)


def test_a_folder_behind_a_link_whose_name_is_not_utf_8_is_no_workspace(tmp_path: Path) -> None:
    real = tmp_path / os.fsdecode(b"\xff")
    write(real, {"a.py": ""})
    (tmp_path / "link").symlink_to(real)
    folders = Folders()
    folders.use([str(tmp_path / "link")])
    assert list(folders.workspaces) == []
    folders.use([str(tmp_path)])
    assert folders.places_of(str(tmp_path / "link" / "a.py")) == []


def test_variables_of_git_lead_to_no_other_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "own", {"own.py": ""})
    repository(tmp_path / "other", {"other.py": ""})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert learnable(tmp_path / "own") == ["own.py"]


def test_a_repository_cannot_start_a_program(tmp_path: Path) -> None:
    folder = repository(tmp_path / "folder", {"a.py": ""})
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(program))
    assert learnable(folder) == ["a.py"]
    assert not (tmp_path / "started").exists()


def test_without_git_the_folder_is_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path, IGNORING)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert set(learnable(tmp_path)) == NOT_IGNORED


def test_secrets_excluded_files_and_other_languages_are_left_out(tmp_path: Path) -> None:
    names = [
        ".env",
        "secrets.py",
        "credentials.json",
        "server.key",
        "notes.txt",
        "data.csv",
        "Makefile",
        "a.py",
        "b.go",
    ]
    write(tmp_path, {**dict.fromkeys(names, "x"), "private/c.py": "x"})
    assert learnable(tmp_path) == ["a.py", "b.go", "private/c.py"]
    settings = Settings(exclude=("private/*",), languages={"go": False})
    assert set(learnable(tmp_path, Rules.of(settings))) == {"a.py", "secrets.py", "credentials.json"}


def test_files_near_the_open_document_come_first(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(["a.py", "x/b.py", "x/y/c.py", "x/y/open.py", "x/y/z/d.py", "w/v/e.py"], ""))
    near = learnable(tmp_path, near="x/y/open.py")
    assert near == ["x/y/c.py", "x/y/open.py", "x/b.py", "x/y/z/d.py", "a.py", "w/v/e.py"]


def test_of_too_many_files_the_nearest_are_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_FILES", 2)
    write(tmp_path, dict.fromkeys(["a.py", "x/b.py", "x/c.py"], ""))
    assert learnable(tmp_path, near="x/b.py") == ["x/b.py", "x/c.py"]


def read(folder: Path, path: str) -> str | None:
    return read_text(os.path.realpath(folder), path)


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret.py": "s = 1\n", "inside/a.py": "a = 1\n"})
    inside = tmp_path / "inside"
    (inside / "file.py").symlink_to(tmp_path / "outside" / "secret.py")
    (inside / "folder").symlink_to(tmp_path / "outside")
    (inside / "loop").symlink_to(inside)
    assert learnable(inside) == ["a.py"]
    git(inside, "init", "-q")
    git(inside, "add", ".")
    for path in learnable(inside):
        assert (read(inside, path) is None) == (path != "a.py")
    assert read(inside, "folder/secret.py") is None
    assert read(inside, "loop/a.py") is None
    assert read(inside, "../outside/secret.py") is None


def test_a_workspace_that_is_a_symlink_itself_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"real/a.py": "a = 1\n"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read(tmp_path / "link", "a.py") == "a = 1\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a = 1\n", "a = 1\n"),
        (b"\xef\xbb\xbfa", "a"),
        (b"a\0b", None),
        (b"x" * 8000 + b"\0", None),
        (b"\xff\xfe\xfa", None),
        (b"x" * MAX_FILE_BYTES, "x" * MAX_FILE_BYTES),
        (b"x" * (MAX_FILE_BYTES + 1), None),
    ],
    ids=["text", "byte order mark", "binary", "binary later", "not UTF-8", "large", "too large"],
)
def test_a_file_is_read_when_it_is_a_text_of_a_modest_size(tmp_path: Path, data: bytes, text: str | None) -> None:
    (tmp_path / "a.py").write_bytes(data)
    assert read(tmp_path, "a.py") == text


def test_a_pipe_a_folder_and_a_missing_file_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    assert [read(tmp_path, name) for name in ("pipe.py", "folder.py", "missing.py", "nul\0.py")] == [None] * 4


@pytest.mark.parametrize("with_git", [True, False])
def test_changes_are_sorted_into_present_and_gone(tmp_path: Path, with_git: bool) -> None:
    if with_git:
        repository(tmp_path, IGNORING)
    else:
        write(tmp_path, IGNORING)
    folder, known = os.path.realpath(tmp_path), ["a.py", "lost.py", "old/x.py", "old/y/z.py", "older.py"]
    write(tmp_path, {"new.py": "", "new.gen.py": "", ".env": "", "build/new.py": ""})
    changed = ["a.py", "lost.py", "new.py", "new.gen.py", ".env", "build/new.py", "old", "never.py"]
    changes = examine(folder, changed, known, RULES, "")
    assert changes.present == ["a.py", "new.py"]
    assert set(changes.gone) == {"lost.py", "old/x.py", "old/y/z.py"}


def test_a_changed_gitignore_changes_what_is_learned(tmp_path: Path) -> None:
    repository(tmp_path, {".gitignore": "a.py\n", "a.py": "", "b.py": "", "c.py": ""})
    git(tmp_path, "rm", "-q", "--cached", "b.py")
    (tmp_path / ".gitignore").write_text("b.py\n")
    changes = examine(os.path.realpath(tmp_path), [".gitignore", "c.py"], ["b.py", "c.py"], RULES, "")
    assert (changes.present, changes.gone) == (["a.py", "c.py"], ["b.py"])


def test_a_new_folder_is_learned_with_all_its_files(tmp_path: Path) -> None:
    repository(tmp_path, {"a.py": "", "moved/b.py": "", "moved/deep/c.py": ""})
    changes = examine(os.path.realpath(tmp_path), ["moved"], ["a.py"], RULES, "")
    assert changes == Changes(["moved/b.py", "moved/deep/c.py"], [])


def test_thousands_of_changes_are_examined_at_once(tmp_path: Path) -> None:
    names = [f"f{number:04}.py" for number in range(1500)]
    repository(tmp_path, {**dict.fromkeys(names, ""), ".gitignore": "*.gen.py"})
    write(tmp_path, dict.fromkeys([f"g{number}.gen.py" for number in range(200)], ""))
    changed = [*names, *(f"g{number}.gen.py" for number in range(200))]
    assert examine(os.path.realpath(tmp_path), changed, names[:700], RULES, "").present == names
