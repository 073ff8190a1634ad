"""Fetch Neovim, Helix and tmux into .editors/debian, for the tests that drive them. Run by `make editors-neovim`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import attrs
from debian import Bundle, FetchError

EDITORS = Path(__file__).parents[2] / ".editors"
SUITE = "forky"  # Debian's first with Neovim 0.12, the first Neovim with inline completion.


@attrs.frozen
class Program:
    """A program, its package, where its binary lies, and the version that the tests are written for."""

    package: str
    path: str
    version: str
    asked: str = "--version"


PROGRAMS = (
    Program("neovim", "usr/bin/nvim", r"NVIM v0\.12\.\d+"),
    Program("hx", "usr/bin/hx", r"helix \d+\.\d+"),
    Program("tmux", "usr/bin/tmux", r"tmux \d+\.\d+", "-V"),
)


def fetch() -> None:
    """Leave programs that run in .editors/debian. Fetched once; a folder that was moved is made again.

    Raises FetchError.
    """
    bundle = Bundle(EDITORS / "debian", SUITE)
    receipt = bundle.folder / "receipt.json"
    wanted = {"suite": SUITE, "root": str(bundle.root), "programs": [attrs.asdict(each) for each in PROGRAMS]}
    if receipt.exists() and json.loads(receipt.read_text()) == wanted:
        return
    receipt.unlink(missing_ok=True)
    bundle.fetch([each.package for each in PROGRAMS], [each.path for each in PROGRAMS])
    for each in PROGRAMS:
        print(f"fetched {_verified(bundle.root / each.path, each)}")
    receipt.write_text(json.dumps(wanted, indent=2))


def _verified(path: Path, program: Program) -> str:
    done = subprocess.run([str(path), program.asked], capture_output=True, text=True)
    first = (done.stdout or done.stderr).strip().split("\n")[0]
    if done.returncode != 0 or re.match(program.version, first) is None:
        raise FetchError(f"{program.package} of {SUITE} says {first!r}; the tests need {program.version}")
    return first


if __name__ == "__main__":
    try:
        fetch()
    except FetchError as error:
        sys.exit(f"make editors-neovim: {error}")
