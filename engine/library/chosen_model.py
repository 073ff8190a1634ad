"""The default model: the embedded one, until the user chooses another with `midspan models use`."""

import json
from pathlib import Path

import attrs

from engine.errors import ModelError
from engine.folders import config_folder
from engine.json_file import read_json
from engine.library import store

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
    path = config_folder() / _FILE
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
    folder = config_folder()
    new = folder / f"{_FILE}.new"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.write_text(json.dumps({"model": model}) + "\n", "utf-8")
        new.replace(folder / _FILE)
    except OSError as error:
        raise ModelError(
            f"cannot write {folder / _FILE}: {error.strerror}; set MIDSPAN_CONFIG_DIR to a folder that you can write"
        ) from None


def _is_available(model: str) -> bool:
    return store.is_pulled(model) or (Path(model).is_absolute() and (Path(model) / "config.json").is_file())


_REMEDY = "the embedded model is used; choose again with: midspan models use NAME"
