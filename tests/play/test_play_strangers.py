"""What strangers try at the doors of `midspan play`: the folder's files, questions, the browser's command line."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from hardening.hostile_repository import FILES, bare_folder, hostile_repository
from hardening.strangers import CAN_BE_A_STRANGER, STRANGER
from play_browser import started
from support.lsp_editor import engine_home
from support.slow_bodies import MARK, SlowBodies

SOURCES = {name for name in FILES if name.endswith(".py")}


def asked(address: str, question: str, body: object) -> httpx2.Response:
    """Return what `midspan play` answers to a question of a page."""
    url, _, token = address.partition("/play#")
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.post(f"{url}/play/api/{question}", json=body, headers=headers, trust_env=False, timeout=30)


@pytest.fixture
def runtime(tmp_path: Path, tiny_model: Path) -> Iterator[Path]:
    """Return the engine's runtime folder; the tests of this file need no suggestion of a good model."""
    with engine_home(tmp_path / "runtime", tiny_model):
        yield tmp_path / "runtime"


@pytest.mark.parametrize("make", [hostile_repository, bare_folder])
def test_the_list_of_a_strangers_files_starts_nothing(
    make: Callable[[Path, Path], Path], tmp_path: Path, runtime: Path
) -> None:
    marker = tmp_path / "marker"
    folder = make(tmp_path / "folder", marker)
    with started(folder) as (address, _):
        assert set(asked(address, "files", {}).json()["paths"]) >= SOURCES
    assert not marker.exists(), marker.read_text()


def test_no_question_of_the_page_keeps_the_others_waiting(tmp_path: Path, runtime: Path) -> None:
    text = {"page": "p", "text": "x = 1\n", "at": 2, "edit": 1}
    with started(tmp_path) as (address, _):
        assert asked(address, "suggest", {**text, "path": "a.py"}).status_code == 200
        for path in ("a/" * 400_000 + "a.py", "/a.py", "../a.py", "a/./b.py", ".git/x.py"):
            refused = asked(address, "suggest", {**text, "path": path})
            assert refused.status_code == 400, path[:20]
            assert refused.elapsed.total_seconds() < 5
        long = "p" * 800_000
        assert asked(address, "leave", {"page": long}).status_code == 400
        assert asked(address, "suggest", {**text, "path": "a.py", "page": long}).status_code == 400
        tags: list[object] = [[5], [[[]]], [{"offer": {}}], [{"a" * 300: 1}], [{}] * 2, "x", [{"language": []}]]
        for tag in tags:
            assert asked(address, "accepted", {"tag": tag}).status_code == 400
        assert asked(address, "accepted", {"tag": [1] * 100_000}).status_code == 400
        assert asked(address, "accepted", {"tag": None}).status_code == 200
        assert asked(address, "suggest", {**text, "path": "a.py"}).status_code == 200


def test_while_a_body_is_worked_on_the_page_gets_its_answers(tmp_path: Path, runtime: Path) -> None:
    slow = SlowBodies.of(tmp_path / "slow")
    with started(tmp_path, **slow.environment) as (address, _), ThreadPoolExecutor(1) as thread:
        answer = thread.submit(asked, address, "hello", {"x": MARK})
        slow.begun()
        try:
            assert asked(address, "hello", {}).status_code == 200
        finally:
            slow.end()
        assert answer.result().status_code == 200


def test_a_text_that_comes_after_a_newer_one_changes_nothing(tmp_path: Path, runtime: Path) -> None:
    place = {"page": "p", "path": "a.py", "at": 4}
    with started(tmp_path) as (address, _):
        assert asked(address, "suggest", {**place, "text": "a = b\n", "edit": 7}).status_code == 200
        late = asked(address, "suggest", {**place, "text": "a = \n", "edit": 6})
        assert late.status_code == 409
        assert "newer text" in late.json()["problem"]
        assert asked(address, "suggest", {**place, "text": "a = bc\n", "edit": 8}).status_code == 200


_CODE = """
import os, socket, sys
os.setgroups([]); os.setgid({stranger}); os.setuid({stranger})
with socket.socket() as raw:
    raw.connect(("127.0.0.1", int(sys.argv[1])))
    raw.sendall(sys.argv[2].encode())
    print(raw.recv(4000).split()[1].decode())
"""


@pytest.mark.skipif(not CAN_BE_A_STRANGER, reason="only root on Linux can be another user too")
def test_the_token_of_the_browsers_command_line_is_worthless_to_another_user(tmp_path: Path, runtime: Path) -> None:
    with started(tmp_path) as (address, _):
        url, _, token = address.partition("/play#")
        host = url.removeprefix("http://")
        head = (
            f"POST /play/api/hello HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: 2\r\n"
        )
        code = [sys.executable, "-c", _CODE.format(stranger=STRANGER), host.partition(":")[2], f"{head}\r\n{{}}"]
        done = subprocess.run(code, capture_output=True, text=True, cwd="/", timeout=60)
        assert done.stdout == "403\n", done.stderr
        assert asked(address, "hello", {}).status_code == 200
