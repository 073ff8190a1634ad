"""Which drafter goes with a checkpoint."""

import torch

from engine.errors import ModelError
from engine.library.chosen_model import EMBEDDED
from engine.library.precision_names import PrecisionSetting
from engine.library.resolve import folder_of
from engine.models import load as registry
from engine.models.embedded.model import EmbeddedModel
from engine.models.masked.model import MaskedModel
from engine.models.masked.recognise import reads_left_to_right
from engine.models.qwen_fim.drafter import Drafter
from engine.models.qwen_fim.masked_drafter import MaskedDrafter
from engine.models.qwen_fim.stream_drafter import StreamDrafter
from engine.models.stock.checkpoint import NOTES, Checkpoint, read_object

NONE = "none"


def drafter_of(
    checkpoint: Checkpoint, threads: int, device: torch.device, precision: PrecisionSetting
) -> Drafter | None:
    """Load what midspan.json beside the checkpoint calls "drafter": the embedded model unless it says something else.

    Raises ModelError where that is no model, or one that does not denoise.
    """
    named = checkpoint.notes.drafter or EMBEDDED
    if named == NONE:
        return None
    folder = folder_of(named)
    # Looked at before it is loaded: a left-to-right model would load a drafter of its own, and that might be this one.
    if not reads_left_to_right(Checkpoint.of(folder, read_object(folder / "config.json"))):
        family = registry.load(str(folder), threads=threads, device=device.type, precision=precision)
        if isinstance(family, EmbeddedModel):
            return StreamDrafter(family)
        if isinstance(family, MaskedModel):
            return MaskedDrafter(family)
    raise ModelError(
        f"{checkpoint.folder / NOTES} names the drafter {named!r}, which cannot draft: "
        f'take a masked diffusion model, "{EMBEDDED}" or "{NONE}"'
    )
