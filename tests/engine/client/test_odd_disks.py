"""Disks that cannot lock a file or hold a Unix socket, as some network drives and mounts of virtual machines."""

import errno
import fcntl
from pathlib import Path

import pytest

from engine.client.address import RuntimePaths, make_private
from engine.client.lock import EngineLock, is_held
from engine.errors import EngineUnavailable
from engine.server.listener import Listener


@pytest.fixture
def paths(tmp_path: Path) -> RuntimePaths:
    paths = RuntimePaths(tmp_path / "runtime", tmp_path / "runtime", "engine-1")
    make_private(paths.directory)
    return paths


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL])
def test_where_no_file_can_be_locked_the_engine_says_so_and_nobody_waits(
    paths: RuntimePaths, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "not here")

    # No disk of a test's machine refuses locks.
    monkeypatch.setattr(fcntl, "flock", refuse)
    paths.lock.touch()

    with pytest.raises(EngineUnavailable, match="cannot be locked: not here; set MIDSPAN_RUNTIME_DIR"):
        EngineLock.acquire(paths.lock)
    assert not is_held(paths.lock)


def test_where_no_unix_socket_can_be_made_the_engine_listens_on_loopback_with_a_token(paths: RuntimePaths) -> None:
    (paths.socket / "in the way").mkdir(parents=True)

    listener = Listener(paths, "unix")

    assert listener.address.port
    assert listener.address.token == paths.token.read_text()
    assert paths.token.stat().st_mode & 0o077 == 0
    listener.socket.close()
    listener.remove()
