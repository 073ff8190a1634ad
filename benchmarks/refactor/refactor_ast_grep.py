"""`os.path.join(a, b)` to `Path(a) / b` in 2,000 real files: "Repeat my edit" from one example, ast-grep from its rule.

"kept" counts the places that keep their meaning: Python reads the new text as a division of `Path(a)` by `b`, with the
expressions that the call had. Run `python benchmarks/refactor/refactor_ast_grep.py`. CPU seconds are those of all
processes.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import ast
import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import attrs

from benchmarks.refactor.ast_grep import AstGrep, apart, find
from benchmarks.refactor.refactor_edits import FOLDER
from benchmarks.refactor.refactor_workspace import EDITS, targets
from lsp_server.documents.text_edit import TextEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.search import Caps, Progress, Target, search

_EDIT = "os.path.join(a, b)"
_RULE = FOLDER / "os_path_join.py.ast-grep.yml"


@attrs.frozen
class Row:
    """What one way did: files, places in them, places that keep their meaning, and seconds."""

    files: int
    places: int
    kept: int
    first: float
    all: float
    cpu: float


def by_example(files: Sequence[Target], note: Callable[[], None]) -> Iterator[FileEdit]:
    """Yield the edits of "Repeat my edit", those of imports too. `note` is called as soon as there are some."""
    rules = [learn([EDITS[_EDIT]], language_for("python", ""))]
    report: Callable[[Progress], None] = lambda progress: note() if progress.places else None  # noqa: E731
    found, _ = asyncio.run(search(rules, files, Caps(places=1_000_000), report))
    yield from (one.edit for one in found)


def by_rule(tool: AstGrep, files: Sequence[Target]) -> Iterator[FileEdit]:
    """Yield the edits of ast-grep's rule."""
    folder = files[0].folder
    matches = tool.matches(_RULE, folder, [one.path for one in files])
    for path, found in groupby(matches, lambda one: one.path):
        data = Path(folder, path).read_bytes()
        yield FileEdit(path, edits=tuple(one.edit(data) for one in found))


def by_rule_after_search(tool: AstGrep, files: Sequence[Target]) -> Iterator[FileEdit]:
    """Yield the edits of ast-grep's rule in the files that have the words, as `ast-grep ... $(grep -l ...)` does."""
    yield from by_rule(tool, [one for one in files if b"os.path.join" in Path(one.folder, one.path).read_bytes()])


def measure(way: Callable[[Callable[[], None]], Iterator[FileEdit]], folder: str) -> Row:
    """Return how long one way takes, and how many places it edits and keeps the meaning of."""
    began, cpu_before, first = time.perf_counter(), sum(os.times()[:4]), 0.0
    found: dict[str, list[TextEdit]] = {}

    def note() -> None:
        nonlocal first
        first = first or time.perf_counter() - began

    for one in way(note):
        note()
        found.setdefault(one.path, []).extend(one.edits)
    took, cpu = time.perf_counter() - began, sum(os.times()[:4]) - cpu_before
    places = kept = 0
    for path, edits in found.items():
        text = Path(folder, path).read_bytes().decode()
        after = FileEdit(path, edits=tuple(apart(edits))).applied(text)
        calls, divisions = _calls(text), _divisions(after)
        places += (calls - _calls(after)).total()
        kept += (calls & divisions).total()
    return Row(len(found), places, kept, first, took, cpu)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--ast-grep", default="ast-grep", help="the command, if it is not on PATH")
    arguments = parser.parse_args()
    files = targets(arguments.files)
    tool = find(arguments.ast_grep)
    ways: dict[str, Callable[[Callable[[], None]], Iterator[FileEdit]]] = {
        "repeat my edit": lambda note: by_example(files, note)
    }
    if tool:
        ways[tool.version()] = lambda _: by_rule(tool, files)
        ways["ast-grep, files with the words"] = lambda _: by_rule_after_search(tool, files)
    else:
        print(f"no line for ast-grep: {arguments.ast_grep} is not installed; --ast-grep PATH says where it is")
    print(f"{'':32}{'files':>7}{'places':>8}{'kept':>6}{'first, s':>10}{'all, s':>8}{'CPU, s':>8}")
    for name, way in ways.items():
        row = measure(way, files[0].folder)
        numbers = f"{row.files:7}{row.places:8}{row.kept:6}{row.first:10.2f}{row.all:8.2f}{row.cpu:8.2f}"
        print(f"{name:32}{numbers}")
    return 0


def _calls(text: str) -> Counter[str]:
    """Return the arguments of the calls of os.path.join that have two, and how often each pair is there."""
    return Counter(
        _pair(node.args[0], node.args[1])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and len(node.args) == 2 and ast.unparse(node.func) == "os.path.join"
    )


def _divisions(text: str) -> Counter[str]:
    """Return the same for `Path(a) / b`."""
    return Counter(
        _pair(node.left.args[0], node.right)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and isinstance(node.left, ast.Call)
        and ast.unparse(node.left.func) == "Path"
        and node.left.args
    )


def _pair(left: ast.expr, right: ast.expr) -> str:
    return f"{ast.dump(left)} {ast.dump(right)}"


if __name__ == "__main__":
    sys.exit(main())
