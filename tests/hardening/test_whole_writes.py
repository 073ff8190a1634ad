"""Files that Midspan writes are whole or as they were, all or none, whatever ends the writing."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.git_folder import write

from engine.cli.setup.deeds import Deeds, remove_files, write_files

ROOT = Path(__file__).parents[2]
OLD, NEW = "import os\n\nx = os.getcwd()\n", "from pathlib import Path\n\nx = Path.cwd()\n"
CODE = ("--from", "import os\nos.getcwd()", "--to", "from pathlib import Path\nPath.cwd()")
NAMES = [f"f{number}.py" for number in range(6)]
# Ends the process when it gives the fourth file its name.
KILLED = """
import os, signal, sys
from lsp_server.refactor_cli import app
seen = 0
def hook(event, arguments):
    global seen
    seen += event == "os.rename"
    if seen == 4 and event == "os.rename":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
app(sys.argv[1:])
"""


def run(folder: Path, *command: str, most_bytes: int = -1) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if most_bytes >= 0:  # as a full disk does, this lets a file grow no further
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MIDSPAN_DATA_DIR": str(folder.parent / "data")}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=limit,
    )


def texts(folder: Path) -> dict[str, str]:
    """Return all files of a folder: temporary ones are seen too."""
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "folder", dict.fromkeys(NAMES, OLD))
    return tmp_path / "folder"


def test_one_file_that_cannot_be_written_leaves_all_as_they_were(folder: Path) -> None:
    (folder / "f5.py").chmod(0o444)
    done = run(folder, "-m", "engine.cli", "refactor", "repeat", ".", *CODE, "--apply")
    assert "f5.py is read-only; make it writable and run the command again; no file was changed" in done.stderr
    assert done.returncode == 1
    assert texts(folder) == dict.fromkeys(NAMES, OLD)
    assert list((folder.parent / "data" / "unfinished-edits").iterdir()) == []


def test_a_full_disk_leaves_all_as_they_were(folder: Path) -> None:
    (folder / "f3.py").write_text(OLD + "# " + "x" * 8000 + "\n")
    before = texts(folder)
    done = run(folder, "-m", "lsp_server.refactor_cli", "repeat", ".", *CODE, "--apply", most_bytes=7000)
    assert "f3.py cannot be written" in done.stderr
    assert texts(folder) == before


def test_a_run_that_is_killed_is_undone_by_the_next_one(folder: Path) -> None:
    (folder / "f0.py").chmod(0o750)
    killed = run(folder, "-c", KILLED, "repeat", ".", *CODE, "--apply")
    assert killed.returncode == -9
    assert sorted(texts(folder)[name] == NEW for name in NAMES) == [False, False, False, True, True, True]
    (folder / "f1.py").write_text("mine = 1\n")
    again = run(folder, "-m", "lsp_server.refactor_cli", "repeat", ".", *CODE)
    assert "an earlier --apply was cut off; its 2 files are as they were before" in again.stderr
    assert texts(folder) == {**dict.fromkeys(NAMES, OLD), "f1.py": "mine = 1\n"}
    assert stat.S_IMODE((folder / "f0.py").stat().st_mode) == 0o750
    done = run(folder, "-m", "lsp_server.refactor_cli", "repeat", ".", *CODE, "--apply")
    assert "cut off" not in done.stderr
    assert texts(folder) == {**dict.fromkeys(NAMES, NEW), "f1.py": "mine = 1\n"}


@pytest.mark.parametrize("how", ["the folder is away", "its disk is away"])
def test_a_run_that_is_killed_is_undone_when_its_folder_is_back(folder: Path, how: str) -> None:
    killed = run(folder, "-c", KILLED, "repeat", ".", *CODE, "--apply")
    assert killed.returncode == -9
    away = folder.rename(folder.parent / "away")
    other = folder.parent / "other"
    write(other, {"a.py": OLD})
    if how == "its disk is away":
        folder.mkdir()
    for _ in range(2):
        assert "cut off" not in run(other, "-m", "lsp_server.refactor_cli", "repeat", ".", *CODE).stderr
    if how == "its disk is away":
        folder.rmdir()
    away.rename(folder)
    again = run(other, "-m", "lsp_server.refactor_cli", "repeat", ".", *CODE)
    assert "an earlier --apply was cut off; its 3 files are as they were before" in again.stderr
    assert texts(folder) == dict.fromkeys(NAMES, OLD)
    assert list((folder.parent / "data" / "unfinished-edits").iterdir()) == []


def test_a_run_that_still_works_is_not_undone(folder: Path) -> None:
    stopped = KILLED.replace("SIGKILL", "SIGSTOP")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MIDSPAN_DATA_DIR": str(folder.parent / "data")}
    arguments = [sys.executable, "-c", stopped, "repeat", ".", *CODE, "--apply"]
    process = subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    again = run(folder, "-m", "lsp_server.refactor_cli", "repeat", ".", *CODE)
    assert "cut off" not in again.stderr
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert texts(folder) == dict.fromkeys(NAMES, NEW)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_keeps_its_owner_and_its_rights(folder: Path) -> None:
    os.chown(folder / "f2.py", 65534, 65533)
    (folder / "f2.py").chmod(0o4751)
    assert run(folder, "-m", "lsp_server.refactor_cli", "repeat", ".", *CODE, "--apply").returncode == 0
    status = (folder / "f2.py").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (65534, 65533, 0o4751)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_takes_a_files_place_is_neither_waited_for_nor_followed(folder: Path, kind: str) -> None:
    script = f"""
import os, sys
from lsp_server.refactor import save
first = save._prepared
def swapped(change, beside):
    path = change.target.full
    if path.endswith("f3.py"):
        os.unlink(path)
        os.mkfifo(path) if {kind!r} == "pipe" else os.symlink({str(folder.parent / "outside.py")!r}, path)
    return first(change, beside)
save._prepared = swapped
from lsp_server.refactor_cli import app
app(sys.argv[1:])
"""
    (folder.parent / "outside.py").write_text(OLD)
    done = run(folder, "-c", script, "repeat", ".", *CODE, "--apply")
    assert "f3.py cannot be read" in done.stderr
    assert (folder.parent / "outside.py").read_text() == OLD
    assert all((folder / name).read_text() == OLD for name in NAMES if name != "f3.py")
    assert len(list(folder.iterdir())) == len(NAMES)


def helix(home: Path, *arguments: str, most_bytes: int = -1) -> subprocess.CompletedProcess[str]:
    """Run `midspan setup` in a home whose only editor is Helix."""
    (home / "bin").mkdir(exist_ok=True)
    (home / "bin" / "hx").write_text("#!/bin/sh\n")
    (home / "bin" / "hx").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        patch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
        return run(home / "bin", "-m", "engine.cli", "setup", *arguments, "helix", most_bytes=most_bytes)


def test_setup_leaves_a_link_of_the_users_where_it_is(tmp_path: Path) -> None:
    languages = tmp_path / "dotfiles" / "languages.toml"
    languages.parent.mkdir()
    languages.write_bytes(b"")
    (tmp_path / ".config" / "helix").mkdir(parents=True)
    link = tmp_path / ".config" / "helix" / "languages.toml"
    link.symlink_to(languages)
    assert helix(tmp_path).returncode == 0
    assert b"midspan" in languages.read_bytes()
    assert helix(tmp_path, "--remove").returncode == 0
    assert link.is_symlink()
    assert languages.read_bytes() == b""


def test_setup_leaves_a_link_in_the_place_of_its_own_file(tmp_path: Path) -> None:
    plugin, kept = tmp_path / "plugin" / "midspan.lua", tmp_path / "dotfiles" / "midspan.lua"
    written = write_files({plugin: b"-- ours\n"}, Deeds())
    kept.parent.mkdir()
    plugin.rename(kept)
    plugin.symlink_to(kept)
    assert remove_files(written) == written
    assert plugin.is_symlink()
    assert kept.read_bytes() == b"-- ours\n"


def test_a_folder_of_ours_is_for_its_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MIDSPAN_CONFIG_DIR": str(tmp_path / "a" / "config")}
    code = "import os; os.umask(0); from engine.client.address import trust; trust('example.org')"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, cwd=tmp_path)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in sorted((tmp_path / "a").rglob("*"))]
    assert (stat.S_IMODE((tmp_path / "a").stat().st_mode), *modes) == (0o700, 0o700, 0o644)


def test_setup_keeps_a_users_lines_byte_for_byte_also_when_the_disk_is_full(tmp_path: Path) -> None:
    languages = tmp_path / "dotfiles" / "languages.toml"
    languages.parent.mkdir()
    mine = b"# mine\r\n" + b"# long enough\r\n" * 266
    languages.write_bytes(mine)
    languages.chmod(0o640)
    (tmp_path / ".config" / "helix").mkdir(parents=True)
    (tmp_path / ".config" / "helix" / "languages.toml").symlink_to(languages)
    failed = helix(tmp_path, most_bytes=4100)
    assert failed.returncode == 1
    assert languages.read_bytes() == mine
    assert [path.name for path in languages.parent.iterdir()] == ["languages.toml"]
    assert helix(tmp_path).returncode == 0
    written = languages.read_bytes()
    assert written.startswith(mine)
    assert written.count(b"\n") == written.count(b"\r\n") > mine.count(b"\n")
    assert stat.S_IMODE(languages.stat().st_mode) == 0o640
    assert helix(tmp_path, "--remove").returncode == 0
    assert languages.read_bytes() == mine
    shutil.rmtree(tmp_path / "data")
