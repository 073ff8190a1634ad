"""A folder that the user names is learned, and requests look it up by their path."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from http_service import http_service
from support.engine_process import end

from engine.client.address import runtime_paths_of
from engine.http.connection import Problem
from engine.http.workspaces import Place, Workspaces


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


def test_a_path_that_no_system_has_is_refused_before_the_disk_is_asked(tmp_path: Path) -> None:
    for workspaces in (Workspaces(), Workspaces([tmp_path])):
        with pytest.raises(Problem, match="send one of at most 4096"):
            workspaces.place_of("/a" * 1_000_000)


def test_a_request_without_a_path_is_found_by_its_lines(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / ".hidden").mkdir(parents=True)
        shared = "import everything_that_all_have\n" * 3
        own = "".join(f"    value_{number} = {folder.name}_of_{number}(argument)\n" for number in range(9))
        (folder / "code.py").write_text(shared + own)
        (folder / ".hidden" / "code.py").write_text("".join(f"hidden_line_number_{n}\n" for n in range(9)))
        os.mkfifo(folder / "pipe")
    several = Workspaces([one, two])
    above = "".join(f"    value_{number} = two_of_{number}(argument)\n" for number in range(5)) + "    val"
    assert several.place_of("", above).workspace == "", "nothing is read yet"
    several.read()
    assert several.place_of("", above) == Place(str(two), "")
    assert several.place_of("src/a.py", "", above) == Place(str(two), "src/a.py")
    assert several.place_of("", "import everything_that_all_have\n" * 9).workspace == ""
    assert several.place_of("", above + above.replace("two", "one")).workspace == "", "both have as many"
    assert several.place_of("", "".join(f"hidden_line_number_{n}\n" for n in range(9))).workspace == ""
    assert several.place_of("/etc/passwd", above).workspace == ""


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
