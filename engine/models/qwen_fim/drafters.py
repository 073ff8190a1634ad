"""Chooses the drafter of a checkpoint."""

from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.library.chosen_model import EMBEDDED
from engine.library.resolve import folder_of
from engine.models.embedded.model import EmbeddedModel
from engine.models.masked.model import MaskedModel
from engine.models.masked.recognise import reads_left_to_right
from engine.models.qwen_fim.drafter import Drafter
from engine.models.qwen_fim.masked_drafter import MaskedDrafter
from engine.models.qwen_fim.stream_drafter import StreamDrafter
from engine.models.stock.checkpoint import NOTES, Checkpoint, read_object

NONE = "none"
LoadModel = Callable[[Path], Model]
"""Loads the model in a folder."""


def drafter_of(checkpoint: Checkpoint, load_model: LoadModel) -> Drafter | None:
    """Load the drafter that midspan.json of the checkpoint names as "drafter"; by default the embedded model.

    Raises ModelError if that is not a model, or is a model that does not denoise.
    """
    name = checkpoint.notes.drafter or EMBEDDED
    if name == NONE:
        return None
    folder = folder_of(name)
    # Checked before loading: a left-to-right model would load its own drafter, which may be this same model again.
    if not reads_left_to_right(Checkpoint.of(folder, read_object(folder / "config.json"))):
        model = load_model(folder)
        if isinstance(model, EmbeddedModel):
            return StreamDrafter(model)
        if isinstance(model, MaskedModel):
            return MaskedDrafter(model)
    raise ModelError(
        f"{checkpoint.folder / NOTES} names the drafter {name!r}, which cannot draft: "
        f'take a masked diffusion model, "{EMBEDDED}" or "{NONE}"'
    )
