"""A stranger's folder: nothing of it runs, no name in it leads out of it, and no file of it is waited for."""

import hashlib
import os
import shutil
import struct
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import psutil
import pytest
from support.git_folder import repository, write
from support.lsp_editor import Editor, engine_home
from support.processes import children
from support.workspace_editor import work_on

from engine import git as git_module
from engine.bounds import MOST_GIT_BYTES
from engine.client.address import resolve_model
from engine.git import GitFailed, Repository
from hardening.hostile_repository import FILES, URLS, bare_folder, hostile_repository, marker_program
from lsp_server.refactor.learn.example import changed_files
from lsp_server.settings import Settings
from lsp_server.workspace.files import Rules, learnable_files

RULES = Rules.of(Settings())
ROOT = Path(__file__).parents[2]
SOURCES = {name for name in FILES if name.endswith(".py")}


def listed(folder: Path) -> list[str]:
    return learnable_files(os.path.realpath(folder), RULES, "")


def midspan(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # -P, because the script `midspan` imports nothing of the current folder either.
    command = [sys.executable, "-P", "-m", "engine.cli", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=90)


def was_made(marker: Path) -> bool:
    return marker.exists()


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


@pytest.mark.parametrize("url", URLS)
def test_no_key_of_a_repository_starts_a_program(tmp_path: Path, marker: Path, url: str) -> None:
    folder = hostile_repository(tmp_path / "folder", marker, url)
    assert set(listed(folder)) == SOURCES
    assert [one.path for one in changed_files(folder, "HEAD")] == ["area.py"]
    assert not marker.exists(), marker.read_text()


def test_plain_git_would_start_them(tmp_path: Path, marker: Path) -> None:
    """Else the test above could not fail."""
    folder = hostile_repository(tmp_path / "folder", marker)
    subprocess.run(["git", "ls-files", "--others", "--exclude-standard"], cwd=folder, capture_output=True, timeout=30)
    assert "core.sshCommand" not in marker.read_text()
    started = marker.read_text()
    assert "evil.sh" in started
    subprocess.run(["git", "diff", "--name-only", "HEAD"], cwd=folder, capture_output=True, timeout=30)
    assert len(marker.read_text()) > len(started)


@pytest.mark.parametrize("place", ["alone", "tracked in a clone"])
def test_a_folder_that_looks_like_a_bare_repository_is_walked(tmp_path: Path, marker: Path, place: str) -> None:
    if place != "alone":
        repository(tmp_path / "clone", {"a.py": "x = 1\n"})
    folder = bare_folder(tmp_path / "clone" / "folder", marker)
    assert SOURCES.issubset(listed(folder))
    with pytest.raises(GitFailed, match="is in no git repository"):
        changed_files(folder, "HEAD")
    assert not marker.exists(), marker.read_text()


def test_a_program_of_the_folder_is_no_git(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = hostile_repository(tmp_path / "folder", marker)
    marker_program(folder, marker).rename(folder / "git")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([".", str(folder), "", os.environ["PATH"]]))
    assert set(listed(folder)) == SOURCES
    assert not marker.exists()


@pytest.mark.slow
def test_the_commands_start_nothing(tmp_path: Path, marker: Path, tiny_model: Path) -> None:
    folder = hostile_repository(tmp_path / "folder", marker)
    with engine_home(tmp_path / "runtime", tiny_model):
        explained = midspan(folder, "fill", "other.py", "--at", "3:7", "--explain", "--model", str(tiny_model))
        assert explained.returncode == 0, explained.stderr
    modules = "torch", "json", "types", "numpy", "tree_sitter", "lsp_server", "engine", "sitecustomize"
    write(folder, {f"{name}.py": f"open({str(marker)!r}, 'w')\n" for name in modules})
    midspan(folder, "doctor")
    code = ("--from", "import os\nos.getcwd()", "--to", "from pathlib import Path\nPath.cwd()")
    assert "2 places in 2 files found" in midspan(folder, "refactor", "repeat", ".", *code).stderr
    since = midspan(folder, "refactor", "repeat", ".", "--since", "HEAD")
    assert "2 places in 2 files found" in since.stderr
    assert not marker.exists(), marker.read_text()


async def test_the_server_starts_nothing(tmp_path: Path, marker: Path, tiny_model: Path) -> None:
    folder = hostile_repository(tmp_path / "folder", marker)
    with engine_home(tmp_path / "runtime", tiny_model):
        editor = Editor()
        await editor.start({"model": str(tiny_model), "threads": 1, "gate": 0, "maxTokens": 4}, folders=[folder])
        await work_on(editor, folder / "area.py")
        answer = await editor.fill(explain=True)
        assert answer.source is not None
        await editor.stop()
    assert not was_made(marker)


_BAD = os.fsdecode(b"\xff")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("models", "use", "[/x]m"), "no model '[/x]m'"),
        (("engine", "status", "--model", "[/x]m"), "no engine is running for the model [/x]m"),
        (("engine", "status", "--model", _BAD), "it is not UTF-8"),
        (("fill", "a.py", "--at", "1:1", "--model", _BAD), "it is not UTF-8"),
        (("fill", _BAD, "--at", "1:1"), "no such file"),
        (("fill", "x" * 300, "--at", "1:1"), "cannot be read: File name too long"),
        (("refactor", "repeat", "x" * 300, "--from", "a()", "--to", "b()"), "no such file"),
        (("refactor", "repeat", _BAD, "--from", "a()", "--to", "b()"), "no such file"),
        (("refactor", "repeat", "a.py", "--from", _BAD, "--to", "b()"), "--from or --to is not UTF-8"),
        (("refactor", "repeat", "a.py", "--since", _BAD), "is in no git repository"),
        (("setup", "[/x]"), "setup knows no '[/x]'"),
    ],
)
def test_no_name_makes_a_command_fail_with_more_than_its_line(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    write(tmp_path, {"a.py": "a()\n", os.fsdecode(b"\xfe.py"): "a()\n"})
    done = midspan(tmp_path, *arguments)
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_models_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> None:
    monkeypatch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    folder = tmp_path / "[" / "x]m[red]:smile:"
    shutil.copytree(tiny_model, folder)
    assert midspan(tmp_path, "models", "use", str(folder)).stdout == f"in use from now on: {folder}\n"
    assert midspan(tmp_path, "models", "list").returncode == 0
    assert f"no engine is running for the model {folder}" in midspan(tmp_path, "engine", "status").stdout


@pytest.mark.parametrize(("name", "says"), [("dreamon-7b", "midspan models pull"), ("mine", "such as ./mine")])
def test_a_models_name_is_no_folder_of_a_stranger(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path
) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    folder = tmp_path / "folder"
    shutil.copytree(tiny_model, folder / name)
    write(folder, {"a.py": "x = \n"})
    filled = midspan(folder, "fill", "a.py", "--at", "1:5", "--model", name)
    assert filled.returncode != 0
    assert says in filled.stderr
    monkeypatch.chdir(folder)
    assert resolve_model(name) == name
    assert resolve_model(f"./{name}") == str(folder / name)


def test_git_that_waits_for_ever_is_ended_with_all_it_started(
    tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hostile_repository(tmp_path / "folder", marker)
    os.mkfifo(folder / ".git" / "pipe")
    with (folder / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {folder}/.git/pipe\n")
    monkeypatch.setattr(git_module, "GIT_S", 0.5)
    assert set(listed(folder)) == SOURCES, "the folder is walked"


@pytest.mark.skipif(not Path("/usr/bin/setpriv").exists(), reason="only setpriv of util-linux ends git with us")
def test_git_that_waits_for_ever_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    folder = repository(tmp_path / "folder", {"a.py": "x = 1\n"})
    os.mkfifo(folder / ".gitignore")
    code = "import sys; from engine.git import Repository; Repository.of(sys.argv[1]).ask('ls-files', *sys.argv[2:])"
    arguments = [str(folder), "--others", "--exclude-standard"]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=ROOT)
    gits = list[psutil.Process]()
    deadline = time.monotonic() + 30
    while not gits and time.monotonic() < deadline:
        gits = children(process.pid, lambda child: child.name() == "git")
    assert gits
    process.kill()
    process.wait()
    assert psutil.wait_procs(gits, timeout=30)[1] == []


def test_an_index_of_a_few_hundred_kilobytes_that_names_gigabytes_is_read_with_a_bound(tmp_path: Path) -> None:
    """Version 4 of the index says how much of the name before it a name keeps."""
    prefix = "x" * 30_000
    folder = index_of(tmp_path, [f"{prefix}/{number:04}.py" for number in range(4_000)], version=4)
    assert (folder / ".git" / "index").stat().st_size < 320_000
    tracemalloc.start()
    assert listed(folder) == []
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5 * MOST_GIT_BYTES
    assert len(Repository.of(str(folder)).ask("ls-files", "-z", "--cached")) == MOST_GIT_BYTES


def index_of(folder: Path, paths: list[str], version: int = 2) -> Path:
    """Make a repository whose index has these paths, whatever they are: git checks none that it only reads."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    entries, before = [], b""
    for path in sorted(path.encode() for path in paths):
        about = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 11) + hashlib.sha1(b"blob 0\0").digest()
        about += struct.pack(">H", min(len(path), 0xFFF))
        if version == 4:
            kept = next((at for at, pair in enumerate(zip(path, before, strict=False)) if pair[0] != pair[1]), 0)
            entries.append(about + _varint(len(before) - kept) + path[kept:] + b"\0")
        else:
            entries.append(about + path + b"\0" * (8 - (len(about) + len(path)) % 8))
        before = path
    index = b"DIRC" + struct.pack(">2I", version, len(paths)) + b"".join(entries)
    (folder / ".git" / "index").write_bytes(index + hashlib.sha1(index).digest())
    return folder


def _varint(number: int) -> bytes:
    """Return a number as git writes offsets: seven bits a byte, the last byte without the highest bit."""
    parts = [number & 0x7F]
    while number := number >> 7:
        number -= 1
        parts.append(0x80 | number & 0x7F)
    return bytes(reversed(parts))


OUTSIDE = ("/outside.py", "../outside.py", "a/../../outside.py", "./a.py", ".git/hooks/x.py", ".GIT/x.py", "a//b.py")


def test_no_name_of_an_index_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(tmp_path, {"outside.py": "import os\nos.getcwd()\n", "folder/inside.py": "import os\nos.getcwd()\n"})
    index_of(folder, [*OUTSIDE, f"{tmp_path}/outside.py", "inside.py", "link/outside.py", "\x1b[2Jx.py", "git~1/x.py"])
    (folder / "link").symlink_to(tmp_path)
    assert set(listed(folder)) == {"inside.py", "link/outside.py"}
    code = ("--from", "import os\nos.getcwd()", "--to", "from pathlib import Path\nPath.cwd()")
    done = midspan(folder, "refactor", "repeat", ".", *code, "--apply")
    assert "1 place in 1 file edited" in done.stderr
    assert (tmp_path / "outside.py").read_text() == "import os\nos.getcwd()\n"
