"""Loads a left-to-right model from the folder of a released checkpoint."""

from collections.abc import Callable
from pathlib import Path

import attrs
import torch
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.library.precision_names import PrecisionSetting
from engine.library.resolve import folder_of
from engine.library.store import EMBEDDED
from engine.models.embedded.model import EmbeddedModel
from engine.models.left_to_right.drafters import MaskedDrafter, StreamDrafter
from engine.models.left_to_right.drafting import Drafter
from engine.models.left_to_right.fim import QWEN, FimTokens
from engine.models.left_to_right.load import folder_specials
from engine.models.left_to_right.torch_model import CausalNetwork, QwenFimModel
from engine.models.masked.families import OPEN_DCODER, QWEN_FIM, reads_left_to_right
from engine.models.masked.model import MaskedModel
from engine.models.quantization.quantizer import choose
from engine.models.stock.checkpoint import NOTES, Checkpoint, memory_use_of, read_object
from engine.models.stock.network import stock_network, weight_files
from engine.models.stock.tokenizer import token_bytes_of, tokenizer_of
from engine.protocol.messages import ModelInfo

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


READING_TOKENS = {"cuda": 4096, "cpu": 1024}
"""How much of a file is read. It takes time before the first fill, and memory for keys and values: 230 MB for 4,096
tokens with 7B parameters."""
_QWEN2 = attrs.evolve(OPEN_DCODER, name=QWEN_FIM)
"""Open-dCoder is the same network with more training, so its tensors have the same names."""


def _fim_tokens(checkpoint: Checkpoint, tokenizer: Tokenizer) -> FimTokens:
    """Return a checkpoint's special tokens. Raises ModelError if it has none for filling in the middle."""
    if (found := folder_specials(checkpoint, tokenizer).fim) is not None:
        return found
    raise ModelError(
        f"the model in {checkpoint.folder} is a Qwen2 without a mask token and without {QWEN.prefix}, {QWEN.suffix} "
        f"and {QWEN.middle}, so it cannot fill holes; use one that was trained for that, such as Qwen2.5-Coder, "
        f'or set "family" in {NOTES} there'
    )


def load(
    checkpoint: Checkpoint,
    threads: int,
    device: torch.device,
    load_drafter: LoadModel,
    precision: PrecisionSetting = "auto",
) -> QwenFimModel:
    """Load the model in a folder, and its drafter with `load_drafter`. Raises ModelError with one line."""
    folder = checkpoint.folder
    if (model_type := checkpoint.config.get("model_type")) not in _QWEN2.model_types:
        raise ModelError(
            f"the model in {folder} is said to be of family {QWEN_FIM}, but its config.json has "
            f"model_type {model_type!r} and not {' or '.join(_QWEN2.model_types)}"
        )
    tokenizer = tokenizer_of(checkpoint)
    special_tokens = _fim_tokens(checkpoint, tokenizer)
    choice = choose(weight_files(folder), precision, device)
    stock = stock_network(checkpoint, _QWEN2, device, choice.dtype, choice.precision)
    network = CausalNetwork(stock)
    token_bytes = token_bytes_of(checkpoint, tokenizer, network.vocabulary)
    window = checkpoint.window(stock.config.max_position_embeddings)
    name, licence = checkpoint.named(_QWEN2.licence)
    info = ModelInfo(
        name=name,
        family=QWEN_FIM,
        licence=licence,
        parameters=network.parameters,
        context_tokens=window,
        canvas_tokens=0,
        noise="none",
        device=device.type,
        dtype=choice.name,
        reading_tokens=min(window, READING_TOKENS[device.type]),
    )
    memory_use = memory_use_of(checkpoint)
    drafter = drafter_of(checkpoint, load_drafter)
    return QwenFimModel(info, special_tokens, network, tokenizer, token_bytes, drafter, threads, memory_use)
