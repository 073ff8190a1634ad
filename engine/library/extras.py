"""What a plain installation lacks: torch for larger models, GPUs, training and teams. Does not import torch."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import ModelError

MODELS = "models"
TRAIN = "train"
CLUSTER = "cluster"
_PACKAGES = ("torch", "transformers", "ray")


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import packages of an extra inside. Raises ModelError with one line if one of them is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        raise ModelError(f"{what} needs {error.name}; {how_to_install(extra)}") from None


def how_to_install(extra: str) -> str:
    """Return what to do for an extra, as a phrase."""
    return f'install Midspan with its extra "{extra}": pip install ".[{extra}]" in its clone'
