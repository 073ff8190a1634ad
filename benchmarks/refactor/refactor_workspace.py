"""How long does "Repeat my edit" take in a workspace of 2,000 files, and how long until the first place?

The files are those of the installed packages, sorted by name. Run `python benchmarks/refactor/refactor_workspace.py`;
it should find the first place within 1 second and all within 10 on two cores.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import asyncio
import os
import sysconfig
import time

from engine.bounds import MAX_FILE_BYTES
from lsp_server.languages.registry import language_for
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.search import Caps, Progress, Target, search

EDITS = {
    "os.path.join(a, b)": Example("import os\nos.path.join(a, b)\n", "import os\nPath(a) / b\n"),
    "isinstance(a, b)": Example("isinstance(a, b)", "isinstance(a, b, c)"),
    "logger.warn(x)": Example("logger.warn(x)", "logger.warning(x)"),
    "x == None": Example("x == None", "x is None"),
}


def targets(count: int) -> list[Target]:
    """Return the first Python files of the installed packages that are small enough to be searched."""
    folder = os.path.realpath(sysconfig.get_paths()["purelib"])
    paths = sorted(path for path in Path(folder).rglob("*.py") if path.stat().st_size <= MAX_FILE_BYTES)
    step = max(len(paths) // count, 1)
    return [Target(folder, path.relative_to(folder).as_posix()) for path in paths[::step][:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    files = targets(parser.parse_args().files)
    megabytes = sum(Path(one.folder, one.path).stat().st_size for one in files) / 1e6
    print(f"{len(files)} files, {megabytes:.1f} MB, {os.cpu_count()} cores; seconds")
    print(f"{'edit':22}{'files':>7}{'places':>8}{'left out':>10}{'first':>8}{'all':>8}")
    for name, example in EDITS.items():
        rules = [learn([example], language_for("python", ""))]
        began, first = time.perf_counter(), 0.0

        def report(progress: Progress, began: float = began) -> None:
            nonlocal first
            if not first and progress.places:
                first = time.perf_counter() - began

        found, progress = asyncio.run(search(rules, files, Caps(places=1_000_000), report))
        took = time.perf_counter() - began
        changed, left_out = sum(bool(one.edit.edits) for one in found), sum(len(one.edit.left_out) for one in found)
        print(f"{name:22}{changed:7}{progress.places:8}{left_out:10}{first:8.2f}{took:8.2f}")


if __name__ == "__main__":
    main()
