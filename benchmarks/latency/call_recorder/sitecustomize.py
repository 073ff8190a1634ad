"""Records every call of a function in our files; key_press_files.py puts this folder first in PYTHONPATH.

Python imports this module at the start of each process. At its end the process writes PID.json into the folder
MIDSPAN_CALLS: its package, and an array [Unix time in seconds, file relative to the repository] for each call.
"""

import atexit
import json
import os
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType

_ROOT = Path(__file__).resolve().parents[3]
_PACKAGES = tuple(f"{_ROOT / package}{os.sep}" for package in ("engine", "lsp_server"))
_files: dict[CodeType, str | None] = {}
_calls: list[tuple[float, str]] = []


def _record(frame: FrameType, event: str, _: object) -> None:
    if event != "call":
        return
    code = frame.f_code
    if code not in _files:
        ours = code.co_filename.startswith(_PACKAGES) and code.co_name != "<module>"
        _files[code] = Path(code.co_filename).relative_to(_ROOT).as_posix() if ours else None
    file = _files[code]
    if file is not None:
        _calls.append((time.time(), file))


def _write(folder: Path) -> None:
    sys.setprofile(None)
    threading.setprofile(None)
    main = getattr(sys.modules["__main__"], "__spec__", None)
    document = {"package": main.parent if main else "", "calls": _calls}
    part = folder / f"{os.getpid()}.part"
    part.write_text(json.dumps(document), "utf-8")
    part.replace(part.with_suffix(".json"))


if "MIDSPAN_CALLS" in os.environ:
    atexit.register(_write, Path(os.environ["MIDSPAN_CALLS"]))
    threading.setprofile(_record)
    sys.setprofile(_record)
