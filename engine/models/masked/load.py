"""Load a masked family from a released checkpoint's folder."""

from pathlib import Path

import torch

from engine.errors import ModelError
from engine.library.precision_names import PrecisionSetting
from engine.library.resolve import known_model
from engine.models.masked.filling import LENGTHS
from engine.models.masked.marks import marks_of
from engine.models.masked.model import MaskedModel
from engine.models.masked.passes import MaskedNetwork
from engine.models.masked.recognise import kind_of
from engine.models.masked.traits import MaskedTraits
from engine.models.quantization.choice import choose
from engine.models.stock.checkpoint import Checkpoint
from engine.models.stock.network import stock_network
from engine.models.stock.tokens import pieces_of, tokenizer_of
from engine.protocol.messages import ModelInfo

LEAST_WINDOW = 64
READING_TOKENS = {"cuda": 2048, "cpu": 512}
"""Both sides are read anew with every key: for 7B parameters 2,048 tokens are 40 ms of a GPU that does 800 TFLOP/s, and
512 are half a second of a processor for half a billion."""


def load(
    folder: Path, config: object, threads: int, device: torch.device, precision: PrecisionSetting = "auto"
) -> MaskedModel:
    """Load the model in `folder`, whose config.json says `config`, in the precision that is wished for.

    Raises ModelError with one line.
    """
    checkpoint = Checkpoint.of(folder, config)
    tokenizer = tokenizer_of(checkpoint)
    kind = kind_of(checkpoint, tokenizer)
    marks = marks_of(checkpoint, kind, tokenizer)
    choice = choose(folder, precision, device)
    stock = stock_network(checkpoint, kind, device, choice.dtype, choice.precision)
    network = MaskedNetwork(stock)
    pieces = pieces_of(checkpoint, tokenizer, network.vocabulary)
    notes, known = checkpoint.notes, known_model(folder)
    window = min(stock.config.max_position_embeddings, notes.context_tokens or kind.context_tokens or 1 << 30)
    if window < LEAST_WINDOW:
        raise ModelError(f"the model in {folder} has a window of {window} tokens; at least {LEAST_WINDOW} are needed")
    info = ModelInfo(
        name=notes.name or (folder.name if known is None else known.name),
        family=kind.name,
        licence=notes.licence or (kind.licence if known is None else known.licence),
        parameters=network.parameters,
        context_tokens=window,
        canvas_tokens=max(LENGTHS["line"]),
        noise="absorbing",
        device=device.type,
        dtype=choice.name,
        reading_tokens=min(window, READING_TOKENS[device.type]),
    )
    return MaskedModel(info, MaskedTraits(marks, kind.shifted, window), network, tokenizer, pieces, threads)
