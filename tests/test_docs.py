"""Each file and folder of this project that documents and docstrings name exists: a module that moves takes its name
along.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
PACKAGES = ("engine", "lsp_server")
FOLDERS = (*PACKAGES, "benchmarks", "docs", "editors", "tests")
# Git ignores these: they are there only after a benchmark, or after `make editors`.
OUTPUTS = ("benchmarks/out", "tests/editors/out")

# What code names and this project does not have: files of a user's folder, and an example in a docstring.
FOREIGN = ("types.py", "json.py", "engine/loader.py")

_NAME = re.compile(r"(?<![\w./~:-])[\w-][\w.-]*(?:/[\w.*-]+)*")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_each_path_that_a_document_names_exists(document: Path) -> None:
    assert missing_paths(document.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_each_python_file_that_the_code_names_exists(package: str) -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / package).rglob("*.py")
        for text in prose_of(path.read_text(encoding="utf-8"))
        for name in missing_paths(text)
        if name.endswith(".py") and name not in FOREIGN
    }
    assert missing == set()


def test_docstrings_and_comments_are_read_and_other_strings_are_not() -> None:
    source = '"""a.py"""\nvalue = "b.py"\n"""c.py"""\n# d.py\n'
    assert [name for text in prose_of(source) for name in paths_in(text)] == ["a.py", "c.py", "d.py"]


def test_a_missing_path_is_found_however_it_is_written() -> None:
    assert missing_paths("see engine/no_such.py, and `lsp_server/no_such/`.") == [
        "engine/no_such.py",
        "lsp_server/no_such",
    ]
    assert missing_paths("`suggest/no_such.py`, fill/no_such, no_such.py") == [
        "suggest/no_such.py",
        "fill/no_such",
        "no_such.py",
    ]


def test_other_names_are_no_paths() -> None:
    assert missing_paths("https://docs.example/engine/a.py init.lua config.json Qwen/Qwen2.5 `midspan/fill` 3/4") == []


def prose_of(source: str) -> Iterator[str]:
    """Yield the docstrings of Python code, also those of constants, and then its comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def missing_paths(text: str) -> list[str]:
    """Return the paths in `text` that lead nowhere.

    A path begins with a folder of the root or with a room of a package, as in `suggest/shape.py`, or is the name of a
    Python file.
    """
    return [path for path in paths_in(text) if not exists(path)]


def paths_in(text: str) -> Iterator[str]:
    """Yield the names in `text` that have the form of a path of this project."""
    rooms = {room.name for package in PACKAGES for room in (ROOT / package).iterdir() if room.is_dir()}
    for match in _NAME.finditer(text):
        name = match.group().rstrip(".*")
        first, slash, _ = name.partition("/")
        if not name.startswith(OUTPUTS) and (name.endswith(".py") or (slash and first in {*FOLDERS, *rooms})):
            yield name


def exists(path: str) -> bool:
    """Return whether `path` leads somewhere: from the root, or else from any folder of the packages or benchmarks."""
    if path.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
        return any(ROOT.glob(path))
    return any(any((ROOT / folder).rglob(path)) for folder in (*PACKAGES, "benchmarks"))
