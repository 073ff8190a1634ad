"""The default model: the embedded one, until the user chooses another with `midspan models use`."""

from pathlib import Path

import attrs

from engine.folders import config_folder
from engine.json_file import read_json, write_config
from engine.library import store
from engine.library.gguf_file import is_gguf

EMBEDDED = "embedded"
DEFAULT = "default"
"""The name of the chosen model in settings and options."""
_FILE = "model.json"


@attrs.frozen
class ChosenModel:
    """The model to use: a name or the path of a folder.

    If the user's choice is not available, `problem` says why in one line.
    """

    model: str
    problem: str = ""


def chosen_model() -> ChosenModel:
    """Return the chosen model, or the embedded one if the chosen one is gone. Never raises."""
    path = _path()
    try:
        model = read_json(path)["model"]
    except FileNotFoundError:
        return ChosenModel(EMBEDDED)
    except (OSError, ValueError, TypeError, KeyError):
        return ChosenModel(EMBEDDED, f"{path} cannot be read; {_REMEDY}")
    if model == EMBEDDED or (isinstance(model, str) and _is_available(model)):
        return ChosenModel(model)
    return ChosenModel(EMBEDDED, f"the chosen model {model} is not here any more; {_REMEDY}")


def choose(model: str) -> None:
    """Make `model` the default: "embedded", a pulled model's name or an absolute path. Raises ModelError."""
    write_config(_path(), {"model": model})


def _is_available(model: str) -> bool:
    if store.is_pulled(model):
        return True
    path = Path(model)
    return path.is_absolute() and ((path / "config.json").is_file() or is_gguf(path))


def _path() -> Path:
    return config_folder() / _FILE


_REMEDY = "the embedded model is used; choose again with: midspan models use NAME"
