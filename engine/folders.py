"""The folders for data, configuration and models. An environment variable can move each of them."""

import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

from engine.errors import MidspanError

OWN_NAME = "midspan"
"""The name of each folder, where no variable moves it."""


def data_folder() -> Path:
    """Return $MIDSPAN_DATA_DIR, or else the system's folder for user data. Raises MidspanError without a home."""
    return _from_environment("MIDSPAN_DATA_DIR") or _in_home(platformdirs.user_data_path, "MIDSPAN_DATA_DIR")


def config_folder() -> Path:
    """Return $MIDSPAN_CONFIG_DIR, or else the system's one for configuration. Raises MidspanError without a home."""
    return _from_environment("MIDSPAN_CONFIG_DIR") or _in_home(platformdirs.user_config_path, "MIDSPAN_CONFIG_DIR")


def models_folder() -> Path:
    """Return the folder of pulled models: $MIDSPAN_MODELS_DIR, or else `models` in the data folder."""
    return _from_environment("MIDSPAN_MODELS_DIR") or data_folder() / "models"


def home() -> Path | None:
    """Return the user's home directory; None for a user without one, as in a container with a number for a user."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _in_home(find: Callable[[str], Path], variable: str) -> Path:
    try:
        return find(OWN_NAME)
    except RuntimeError:
        message = f"this user has no home directory; set HOME, or set {variable} to a directory of yours"
        raise MidspanError(message) from None


def _from_environment(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser().resolve() if value else None
