"""The model that is taken where nobody names one: the embedded one, until `midspan models use` chooses another."""

import json
from pathlib import Path

import attrs

from engine.errors import ModelError
from engine.folders import config_folder
from engine.library import store

EMBEDDED = "embedded"
DEFAULT = "default"
"""What settings and options say for "the chosen one"."""
_FILE = "model.json"


@attrs.frozen
class Choice:
    """The model to take, a name or the path of a folder; `problem` says in one line why it is not the chosen one."""

    model: str
    problem: str = ""


def chosen_model() -> Choice:
    """Return the choice as it can be had now. Never raises: where the chosen one is gone, the embedded one is taken."""
    path = config_folder() / _FILE
    try:
        model = json.loads(path.read_text("utf-8"))["model"]
    except FileNotFoundError:
        return Choice(EMBEDDED)
    except (OSError, ValueError, TypeError, KeyError):
        return Choice(EMBEDDED, f"{path} cannot be read; {_REMEDY}")
    if model == EMBEDDED or (isinstance(model, str) and _is_there(model)):
        return Choice(model)
    return Choice(EMBEDDED, f"the model {model} that was chosen is not here any more; {_REMEDY}")


def choose(model: str) -> None:
    """Take `model` from now on: "embedded", a pulled model's name, or an absolute path. Raises ModelError."""
    folder = config_folder()
    fresh = folder / f"{_FILE}.new"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_text(json.dumps({"model": model}) + "\n", "utf-8")
        fresh.replace(folder / _FILE)
    except OSError as error:
        raise ModelError(
            f"cannot write {folder / _FILE}: {error.strerror}; set MIDSPAN_CONFIG_DIR to a folder that you can write"
        ) from None


def _is_there(model: str) -> bool:
    return store.is_pulled(model) or (Path(model).is_absolute() and (Path(model) / "config.json").is_file())


_REMEDY = "the embedded one is used; choose again with: midspan models use NAME"
