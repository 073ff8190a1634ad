"""A clone of the tree as it is, in a bare home folder, and the commands of README, run there as a user types them."""

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
_LIMIT_S = 500


@attrs.define
class FreshClone:
    """A bare home with a clone in it.

    `typed` are the commands that were run, `seconds` how long each took, and `computed` the seconds of processor time
    that they took together, to which no download adds.
    """

    home: Path
    typed: list[str] = attrs.field(factory=list)
    seconds: list[float] = attrs.field(factory=list)
    computed: float = 0.0

    @property
    def folder(self) -> Path:
        return self.home / "midspan"

    @property
    def programs(self) -> Path:
        """The folder in which a test puts programs that its user has."""
        return self.home / "programs"

    @classmethod
    def of(cls, home: Path) -> "FreshClone":
        """Copy what git tracks, and what it would, to a new clone in `home`."""
        clone = cls(home)
        listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, capture_output=True, check=True).stdout.decode().split("\0")
        for name in filter(None, names):
            source = ROOT / name
            if source.is_file() and not source.is_symlink():
                target = clone.folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                shutil.copymode(source, target)
        clone.programs.mkdir()
        (clone.programs / "python3").symlink_to(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
        return clone

    def environment(self) -> dict[str, str]:
        """Return a user's variables: nothing of ours, and a PATH with the system's programs, npm and `programs`."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "npm_", "NPM_"))}
        npm = shutil.which("npm")
        folders = [str(self.programs), *([str(Path(npm).parent)] if npm else []), "/usr/bin", "/bin"]
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": os.pathsep.join(folders),
            "LANG": "C.UTF-8",
            "MIDSPAN_RUNTIME_DIR": str(self.home / "runtime"),
        }

    def type(self, command: str) -> None:
        """Run a command of README, and keep how long it took."""
        start, before = time.monotonic(), _processor_seconds()
        self.run(command)
        self.computed += _processor_seconds() - before
        self.typed.append(command)
        self.seconds.append(time.monotonic() - start)

    def run(self, command: str) -> str:
        """Run a command in the clone, with a shell; return what it says. Fails if the command does."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
        )
        assert done.returncode == 0, f"{command} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout + done.stderr


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def commands_after(mark: str) -> list[str]:
    """Return the commands of the first block of shell after `mark` in README."""
    readme = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"```sh\n(.*?)```", readme[readme.index(mark) :], re.DOTALL)
    assert block, f"README has no commands after {mark!r}"
    return [line for line in block[1].splitlines() if line]
