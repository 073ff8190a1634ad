"""Asks git about a folder that may be a stranger's: nothing in it makes git run a program.

Git's settings name programs: monitors, hooks, filters, helpers, transports. A repository brings such settings along,
and its drivers have names that nobody can list. So all calls go through `Repository.ask`, and it knows only commands
that convert, compare and fetch nothing: they list names and read objects as they are. What these commands could still
start is switched off here, by variables and by settings of the command line, which count more than a repository's.

dulwich would read the index without a process. It would hold the interpreter for a large one, and unpack what a
stranger packed without a bound on memory; a process can be limited and ended.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

import attrs

from engine.bounds import GIT_S, MOST_GIT_BYTES, MOST_GIT_MEMORY
from engine.errors import MidspanError

if sys.platform == "linux":
    import resource

_CHUNK = 1 << 16

Command = Literal["ls-files", "ls-tree", "rev-parse", "cat-file"]

_SETTINGS = {
    "core.fsmonitor": "",  # "false" is the name of a program for git before 2.36
    "core.hooksPath": os.devnull,
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.askPass": "false",
    "core.editor": "false",
    "core.pager": "cat",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "gpg.program": "false",
    "uploadpack.packObjectsHook": "",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",  # a tracked folder may look like a repository
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}


class GitFailed(MidspanError):
    """Git is missing, the folder is in no repository, or git does not know what it is asked for."""

    code = "git"


@attrs.frozen
class Repository:
    """The repository that a folder is in. `folder` and `root` are real paths; `root` has the .git."""

    folder: str
    root: str

    @classmethod
    def of(cls, folder: str) -> "Repository":
        """Find the repository of a folder. Raises GitFailed if there is none.

        A folder that is a bare repository itself has no files, and may be a tracked folder of a hostile one.
        """
        real = Path(os.path.realpath(folder))
        for place in (real, *real.parents):
            if _is_git_folder(place):
                break
            if (place / ".git").is_file() or _is_git_folder(place / ".git"):
                return cls(str(real), str(place))
        raise GitFailed(f"{folder} is in no git repository; name a folder that is in one")

    def files(self, *paths: str) -> list[str]:
        """Return the folder's files that git tracks, or neither tracks nor ignores; of `paths` only, if there are some.

        A name that is not UTF-8 is left out: no message can have it. Raises GitFailed.
        """
        listing = self.ask("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths)
        names: dict[str, None] = {}
        for name in listing.split(b"\0")[:-1]:  # a listing that was too long has no whole name at its end
            with suppress(UnicodeDecodeError):
                names[name.decode()] = None
        return [name for name in names if name and not name.endswith("/")]  # "/": a repository inside this one

    def ask(self, command: Command, *arguments: str, stdin: bytes = b"", most_bytes: int = MOST_GIT_BYTES) -> bytes:
        """Return what git prints, at most `most_bytes` of it. Raises GitFailed if it fails or takes too long.

        Git runs in the folder. It is ended, with all that it started, when it has printed enough or its time is over.
        """
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        options = ["--no-pager", "--literal-pathspecs", f"--work-tree={self.root}"]
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            try:
                process = subprocess.Popen(
                    [*_ending_with_us(), _program(self.root), *settings, *options, command, *arguments],
                    cwd=self.folder,
                    env=_environment(self.root),
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise GitFailed(f"git cannot be run ({type(error).__name__}); install it") from error
            return _output(process, most_bytes)


def _output(process: subprocess.Popen[bytes], most_bytes: int) -> bytes:
    _limit_memory(process.pid)
    ended_late = threading.Event()

    def end() -> None:
        ended_late.set()
        _end_group(process)

    timer = threading.Timer(GIT_S, end)
    timer.daemon = True
    timer.start()
    parts, size = list[bytes](), 0
    try:
        assert process.stdout is not None
        with process.stdout as printed:
            while size < most_bytes and (part := os.read(printed.fileno(), min(_CHUNK, most_bytes - size))):
                parts.append(part)
                size += len(part)
    finally:
        if size >= most_bytes:
            _end_group(process)
        if sys.platform == "linux":
            # Not yet reaped: its number is that of the group, and of no other one.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            _end_group(process)
        status = process.wait()
        timer.cancel()
    if ended_late.is_set():
        raise GitFailed(f"git took longer than {GIT_S:g} seconds; look at the repository with `git status`")
    if status and size < most_bytes:
        raise GitFailed(f"git ended with status {status}")
    return b"".join(parts)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started, as far as anything of it is left."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(OSError):  # all have ended
        os.killpg(process.pid, signal.SIGKILL)


def _limit_memory(pid: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError, ValueError):  # it has ended, or has a lower limit
            resource.prlimit(pid, resource.RLIMIT_DATA, (MOST_GIT_MEMORY, MOST_GIT_MEMORY))


def _program(root: str) -> str:
    """Return the path of git. A program of the repository is none: PATH may begin with "." or be relative."""
    found = shutil.which("git", path=os.pathsep.join(_search_path(root)))
    if found is None or not Path(found).is_absolute() or _is_below(found, root):
        raise GitFailed("git is not installed; install it")
    return found


@functools.cache
def _ending_with_us() -> tuple[str, ...]:
    """Return what runs a program so that it ends with the thread that started it, where the system has that.

    Otherwise git would outlive a killed server and wait for ever for a .gitignore that is a pipe.
    """
    program = "/usr/bin/setpriv"  # of util-linux; busybox has one that cannot do it
    command = (program, "--pdeathsig", "KILL", "--")
    if sys.platform != "linux" or not os.access(program, os.X_OK):
        return ()
    done = subprocess.run(
        (*command, program, "--version"), stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_S, check=False
    )
    return command if done.returncode == 0 else ()


def _search_path(root: str) -> list[str]:
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [part for part in parts if Path(part).is_absolute() and not _is_below(part, root)]


def _is_below(path: str, root: str) -> bool:
    return root != Path(root).anchor and Path(os.path.realpath(path)).is_relative_to(root)


def _environment(root: str) -> dict[str, str]:
    # Git's own variables could name another repository: an editor may run inside a commit hook.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    path = os.pathsep.join(_search_path(root))
    # Above the root git looks for no repository, should the one that was found be damaged.
    return {**own, **_VARIABLES, "PATH": path, "GIT_CEILING_DIRECTORIES": str(Path(root).parent)}


def _is_git_folder(folder: Path) -> bool:
    """Return whether git would take this folder for a repository's own."""
    return os.path.lexists(folder / "HEAD") and (folder / "objects").is_dir() and (folder / "refs").is_dir()
