"""How a checkpoint uses what is known of the workspace."""

from typing import get_args

from engine.errors import ModelError
from engine.fill.interface import MemoryUse
from engine.models.stock.checkpoint import NOTES, Checkpoint


def memory_use_of(checkpoint: Checkpoint) -> MemoryUse:
    """Return what midspan.json of the checkpoint says as "memory"; by default "windows". Raises ModelError.

    The mixture is not the default: its mixing network was trained with the embedded model's predictions.
    """
    for use in get_args(MemoryUse):
        if use == (checkpoint.notes.memory or "windows"):
            found: MemoryUse = use
            return found
    raise ModelError(
        f"{checkpoint.folder / NOTES} says memory {checkpoint.notes.memory!r}; it can be "
        f"{', '.join(get_args(MemoryUse))}"
    )
