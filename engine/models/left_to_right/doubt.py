"""How much the sureness of a model that writes left to right is believed: its doubt (ModelInfo), kept beside it.

`midspan train fit` fits it for one model, with one command. Where nobody did, it is DOUBT.
"""

import json
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.json_file import read_json
from engine.memory.mixing_network import own_file, own_place
from engine.whole_files import write_whole

DOUBT = 4.0
"""Qwen2.5-Coder 0.5B shows too many wrong texts at 1; chosen by benchmarks/quality/prices.py (docs/training.md)."""
MOST = 64.0
_IN_FOLDER, _BESIDE, _FIELD = "midspan-doubt.json", ".doubt.json", "doubt"


def fitted_doubt_of(path: Path) -> float | None:
    """Return what was fitted for the model at `path`, a folder or a GGUF; None if nothing was.

    Raises ModelError in one line for a file that says no such number.
    """
    place = own_file(path, _IN_FOLDER, _BESIDE)
    if place is None:
        return None
    try:
        content = read_json(place)
    except (OSError, ValueError) as error:
        raise ModelError(f"{place} cannot be read: {error}; remove it, or run `midspan train fit` again") from None
    doubt: Any = content.get(_FIELD) if isinstance(content, dict) else None
    if type(doubt) not in (int, float) or not 1 <= doubt <= MOST:
        raise ModelError(f"{place} says no doubt from 1 to {MOST:g}; remove it, or run `midspan train fit` again")
    return float(doubt)


def doubt_of(path: Path) -> float:
    """Return the doubt of the model at `path`. Raises ModelError as `fitted_doubt_of`."""
    fitted = fitted_doubt_of(path)
    return DOUBT if fitted is None else fitted


def keep_doubt(path: Path, doubt: float) -> Path:
    """Keep a model's doubt, and return where. Raises OSError."""
    place = own_place(path, _IN_FOLDER, _BESIDE)
    write_whole(place, json.dumps({_FIELD: doubt}).encode() + b"\n")
    return place
