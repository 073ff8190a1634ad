"""Another user of this machine gets nothing. What a client believes is in tests/engine/client/test_access.py."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardening.strangers import CAN_BE_A_STRANGER, attempts, try_all

pytestmark = pytest.mark.skipif(not CAN_BE_A_STRANGER, reason="only root on Linux can be another user too")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder inside one that the other user can enter, unlike pytest's."""
    public = Path(tempfile.mkdtemp(prefix="midspan-test-"))
    public.chmod(0o755)
    folder = public / "runtime"
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(public, ignore_errors=True)


@pytest.mark.parametrize("transport", ["unix", "tcp"])
async def test_another_user_gets_nothing(transport: str, folder: Path) -> None:
    tried, succeeded = await try_all(folder, transport)
    assert tried > 10
    assert succeeded == []


def test_what_the_other_user_tries_can_succeed(folder: Path) -> None:
    """Else the test above could not fail."""
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    folder.chmod(0o700)
    (folder / "lock").write_text("x")
    (folder / "lock").chmod(0o666)
    _, succeeded = attempts(folder, folder / "lock", folder / "lock", "", 0, 2**22 + 1, b"")
    assert {"list the folder", "plant a file in the folder", "read the lock", "write the lock"} <= set(succeeded)
