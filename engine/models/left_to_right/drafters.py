"""Which drafter goes with a checkpoint."""

import torch

from engine.chosen_model import EMBEDDED
from engine.errors import ModelError
from engine.models import registry
from engine.models.embedded import EmbeddedFamily
from engine.models.left_to_right.drafter import Drafter
from engine.models.left_to_right.masked_drafter import MaskedDrafter
from engine.models.left_to_right.stream_drafter import StreamDrafter
from engine.models.masked.checkpoint import NOTES, Checkpoint, read_object
from engine.models.masked.family import MaskedFamily
from engine.models.masked.recognise import reads_left_to_right
from engine.models.precision.name import Wish
from engine.models.resolve import folder_of

NONE = "none"


def drafter_of(checkpoint: Checkpoint, threads: int, device: torch.device, wish: Wish) -> Drafter | None:
    """Load what midspan.json beside the checkpoint calls "drafter": the embedded model unless it says something else.

    Raises ModelError where that is no model, or one that does not denoise.
    """
    named = checkpoint.notes.drafter or EMBEDDED
    if named == NONE:
        return None
    folder = folder_of(named)
    # Looked at before it is loaded: a left-to-right model would load a drafter of its own, and that might be this one.
    if not reads_left_to_right(Checkpoint.of(folder, read_object(folder / "config.json"))):
        family = registry.load(str(folder), threads=threads, device=device.type, precision=wish)
        if isinstance(family, EmbeddedFamily):
            return StreamDrafter(family)
        if isinstance(family, MaskedFamily):
            return MaskedDrafter(family)
    raise ModelError(
        f"{checkpoint.folder / NOTES} names the drafter {named!r}, which cannot draft: "
        f'take a masked diffusion model, "{EMBEDDED}" or "{NONE}"'
    )
