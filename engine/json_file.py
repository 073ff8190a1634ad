"""JSON files. One that is read may be anything: a device, a pipe without a writer, 100,000 nested brackets."""

import json
import stat
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.whole_files import write_whole

MOST_BYTES = 64 * 1024 * 1024


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """Return the values in a JSON file. Raises OSError, and ValueError in a few words for what is no such file."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a file")  # to read it might take for ever
    if status.st_size > most_bytes:
        raise ValueError(f"it has more than {most_bytes} bytes")
    return parse_json(path.read_bytes())


def parse_json(text: bytes | str) -> Any:
    """Return the values of a JSON text. Raises ValueError, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_config(path: Path, values: object) -> None:
    """Write a JSON file of the configuration folder, whole or not at all. Raises ModelError in one line."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, f"{json.dumps(values)}\n".encode())
    except OSError as error:
        raise ModelError(
            f"cannot write {path}: {error.strerror}; set MIDSPAN_CONFIG_DIR to a folder that you can write"
        ) from None
