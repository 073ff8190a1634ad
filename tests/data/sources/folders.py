"""Where Midspan keeps what outlives a process: each folder has an environment variable, else the system's own place."""

import os
from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """Return $MIDSPAN_DATA_DIR, else the system's place for a user's data."""
    return _chosen("MIDSPAN_DATA_DIR") or platformdirs.user_data_path("midspan")


def config_folder() -> Path:
    """Return $MIDSPAN_CONFIG_DIR, else the system's place for a user's configuration."""
    return _chosen("MIDSPAN_CONFIG_DIR") or platformdirs.user_config_path("midspan")


def models_folder() -> Path:
    """Return where pulled models lie: in $MIDSPAN_MODELS_DIR, which may be another disk, else beside the data."""
    return _chosen("MIDSPAN_MODELS_DIR") or data_folder() / "models"


def _chosen(variable: str) -> Path | None:
    chosen = os.environ.get(variable)
    return Path(chosen).expanduser().resolve() if chosen else None
