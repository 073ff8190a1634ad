"""A folder that the user names is learned, and requests look it up by their path."""

from collections.abc import Callable
from pathlib import Path

import pytest
from engine_process import end
from http_service import http_service

from engine.client.address import runtime_paths_of
from engine.http.exchange import Place, Workspaces


def test_a_request_finds_the_workspace_of_its_path(tmp_path: Path) -> None:
    one, inner = tmp_path / "one", tmp_path / "one" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "link").symlink_to(one)
    several = Workspaces([one, inner])
    assert several.place_of(str(one / "a.py")) == Place(str(one), "a.py")
    assert several.place_of(str(inner / "b" / "a.py")) == Place(str(inner), "b/a.py")
    assert several.place_of(str(tmp_path / "link" / "a.py")) == Place(str(one), "a.py")
    assert several.place_of(str(one / ".." / "other.py")).workspace == ""
    assert several.place_of("a.py") == Place("", "a.py")
    only = Workspaces([one])
    assert only.place_of("") == Place(str(one), "")
    assert only.place_of("src/a.py") == Place(str(one), "src/a.py")
    assert only.place_of("/etc/passwd").workspace == ""
    assert Workspaces().place_of("a.py") == Place("", "a.py")


@pytest.mark.slow
def test_the_engine_learns_the_named_folder_and_no_other(
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    named, other = tmp_path / "named", tmp_path / "other"
    for folder in (named, other):
        folder.mkdir()
        for number in range(3):
            (folder / f"part{number}.py").write_text(f"def part{number}(value):\n    return value * {number}\n" * 5)
    try:
        with http_service(tiny_model, "--workspace", str(named)) as service:
            eventually(lambda: service.metric("engine_memory_files") == 3)
            hole = {"prompt": "def part1(value):\n    return ", "suffix": "\n", "max_tokens": 4}
            assert service.post("/v1/completions", hole).status_code == 200
    finally:
        end(runtime_paths_of(str(tiny_model)))
