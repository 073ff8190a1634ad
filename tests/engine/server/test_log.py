"""The log says what happened, stays small, and never contains the user's code."""

import asyncio
import logging
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import msgpack
import pytest

from engine.client.address import RuntimePaths
from engine.client.connection import EngineFailure
from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import read_record
from engine.errors import ProtocolError
from engine.protocol.framing import pack, read_frame
from engine.protocol.messages import PROTOCOL_VERSION, Fill, Hello, Snippet
from engine.server.log import log_loop_exception, open_log

MARKER = "s3cr3t_marker_of_the_user"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A log file that the `engine` loggers write to during a test."""
    root, logger = logging.getLogger(), logging.getLogger("engine")
    before = [(changed, list(changed.handlers), changed.level) for changed in (root, logger)]
    path = tmp_path / "engine.log"
    assert open_log(path, "debug") is None
    yield path
    for changed, handlers, level in before:
        for handler in set(changed.handlers) - set(handlers):
            changed.removeHandler(handler)
            handler.close()
        changed.setLevel(level)


async def test_the_files_of_a_real_engine_contain_nothing_of_the_users_code(
    options: EngineOptions, paths: RuntimePaths, tmp_path: Path
) -> None:
    client = await connect_or_start(attrs.evolve(options, log_level="debug"), "test")
    hole = Fill(
        0,
        prefix=f"{MARKER} = ",
        suffix=f"print({MARKER})",
        path=f"{MARKER}.py",
        language=MARKER,
        snippets=[Snippet(f"{MARKER}.py", MARKER)],
        max_tokens=8,
    )
    await client.fill(hole)
    with pytest.raises(EngineFailure):
        await client.fill(attrs.evolve(hole, max_tokens=0))
    cancelled = asyncio.create_task(client.fill(attrs.evolve(hole, extent="lines", max_tokens=2048)))
    await client.status()
    cancelled.cancel()
    await send_nonsense(paths)
    await client.shutdown()
    await client.close()
    written = contents(tmp_path)
    assert b"client 1 is 'test'" in b"".join(written.values())
    assert b"sent a bad frame: malformed" in b"".join(written.values())
    assert [path for path, body in written.items() if MARKER.encode() in body] == []


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


async def send_nonsense(paths: RuntimePaths) -> None:
    record = read_record(paths.lock)
    assert record is not None
    reader, writer = await asyncio.open_unix_connection(record.socket)
    writer.write(pack(Hello(PROTOCOL_VERSION, "test")))
    for fields in ({"type": MARKER}, {"type": "fill", "id": MARKER}, {"type": "fill", "id": 1, "rule": MARKER}):
        body = msgpack.packb(fields)
        writer.write(struct.pack(">I", len(body)) + body)
    writer.write(MARKER.encode())  # read as a length, it exceeds the limit
    try:
        while await read_frame(reader) is not None:
            pass
    except (OSError, ProtocolError):  # the engine closed the connection with some of our bytes unread
        pass
    writer.close()


def test_an_exception_is_logged_with_its_type_and_lines_and_without_its_message(log: Path) -> None:
    try:
        raise ValueError(f"cannot tokenize {MARKER}")
    except ValueError as error:
        logging.getLogger("engine.test").error("a fill failed", exc_info=error)
        log_loop_exception(asyncio.new_event_loop(), {"message": f"in callback({MARKER})", "exception": error})
    written = log.read_text()
    assert "a fill failed" in written
    assert written.count("ValueError at test_log.py:") == 2
    assert MARKER not in written


def test_records_of_other_libraries_are_not_logged(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("tokenizers").error("bad input %s", MARKER)
    assert MARKER not in log.read_text()
    assert MARKER not in capfd.readouterr().err


def test_the_log_keeps_three_files_of_a_megabyte(log: Path) -> None:
    line = "x" * 1000
    for _ in range(4500):
        logging.getLogger("engine.test").info(line)
    files = sorted(log.parent.iterdir())
    assert [file.name for file in files] == ["engine.log", "engine.log.1", "engine.log.2"]
    assert all(file.stat().st_size <= 1_000_000 for file in files)


def test_a_log_that_cannot_be_written_is_one_line_and_not_an_error() -> None:
    assert open_log(Path("/dev/null/logs/engine.log"), "info") == (
        "there will be no log: cannot write /dev/null/logs/engine.log: Not a directory"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
def test_only_its_user_can_read_the_log(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    assert open_log(path, "info") is None
    (handler,) = [
        each for each in logging.getLogger("engine").handlers if getattr(each, "baseFilename", "") == str(path)
    ]
    logging.getLogger("engine").removeHandler(handler)
    handler.close()
    assert path.stat().st_mode & 0o777 == 0o600
