"""Model names to loaded families."""

import json
import os
from pathlib import Path

import torch

from engine.errors import ModelError
from engine.models import embedded
from engine.models.base import Family

EMBEDDED = Path(__file__).parent.parent / "weights"


def folder_of(model: str) -> Path:
    """Return where a model lies: the embedded one's folder, or the folder that was named. Raises ModelError."""
    folder = EMBEDDED if model == "embedded" else Path(model).expanduser()
    if not folder.is_dir():
        raise ModelError(f'no model {model!r}: it is neither "embedded" nor a folder')
    return folder


def load(model: str, *, threads: int = 0, device: str = "auto") -> Family:
    """Load a model by name or folder. `threads` 0 takes every core; `device` is "auto", "cpu" or "cuda".

    Raises ModelError with one line that a user can act on.
    """
    folder = folder_of(model)
    try:
        config = json.loads((folder / "config.json").read_text())
    except FileNotFoundError:
        raise ModelError(f"no config.json in {folder}; is it a model's folder?") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{folder / 'config.json'} is not valid JSON: {error}") from None
    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f'unknown device {device!r}; use "auto", "cpu" or "cuda"')
    if device == "cuda" and not torch.cuda.is_available():
        raise ModelError('device "cuda" was asked for, but torch sees no GPU; use "auto" or "cpu"')
    place = torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    family = config.get("family") if isinstance(config, dict) else None
    if family == embedded.FAMILY:
        return embedded.load(folder, config, count, place)
    raise ModelError(f"the model in {folder} is of family {family!r}; this version knows: {embedded.FAMILY}")
