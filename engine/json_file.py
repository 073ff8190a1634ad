"""JSON from a file that may be anything: a device, a pipe without a writer, brackets that are nested 100,000 times."""

import json
import stat
from pathlib import Path
from typing import Any

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
