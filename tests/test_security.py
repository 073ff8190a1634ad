"""Each promise of SECURITY.md names tests that hold it, and these tests exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
_PROMISE = re.compile(r"^- \*\*(.+?)\*\*(.*?)(?=^- \*\*|^\S|\Z)", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"^  - (tests/\S+\.py)::(test_\w+)$", re.MULTILINE)
PROMISES = [(match[1], _TEST.findall(match[2])) for match in _PROMISE.finditer(_TEXT)]


def test_there_are_promises() -> None:
    assert len(PROMISES) >= 5


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise for promise, _ in PROMISES])
def test_each_promise_is_held_by_tests_that_exist(promise: str, tests: list[tuple[str, str]]) -> None:
    assert tests, f"no test holds: {promise}"
    missing = [f"{file}::{name}" for file, name in tests if not _has(ROOT / file, name)]
    assert missing == []


def _has(file: Path, name: str) -> bool:
    return file.is_file() and re.search(rf"^(?:async )?def {name}\(", file.read_text("utf-8"), re.MULTILINE) is not None
