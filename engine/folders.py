"""The folders for data, configuration and models. An environment variable can move each of them."""

import os
from pathlib import Path

import platformdirs

OWN_NAME = "midspan"
"""The name of each folder, where no variable moves it."""


def data_folder() -> Path:
    """Return $MIDSPAN_DATA_DIR, or else the system's folder for user data."""
    return _from_environment("MIDSPAN_DATA_DIR") or platformdirs.user_data_path(OWN_NAME)


def config_folder() -> Path:
    """Return $MIDSPAN_CONFIG_DIR, or else the system's folder for user configuration."""
    return _from_environment("MIDSPAN_CONFIG_DIR") or platformdirs.user_config_path(OWN_NAME)


def models_folder() -> Path:
    """Return the folder of pulled models: $MIDSPAN_MODELS_DIR, or else `models` in the data folder."""
    return _from_environment("MIDSPAN_MODELS_DIR") or data_folder() / "models"


def _from_environment(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser().resolve() if value else None
