"""Load a masked family from a released checkpoint's folder."""

from pathlib import Path

import torch

from engine.errors import ModelError
from engine.models.embedded import processor_has_bf16
from engine.models.masked.checkpoint import Checkpoint
from engine.models.masked.family import MaskedFamily, Trait
from engine.models.masked.fixed import LENGTHS
from engine.models.masked.marks import marks_of
from engine.models.masked.network import MaskedNetwork
from engine.models.masked.recognise import kind_of
from engine.models.masked.stock import stock_network
from engine.models.masked.tokens import tokenizer_of
from engine.models.pieces import Pieces
from engine.models.resolve import known_model
from engine.protocol import ModelInfo

LEAST_WINDOW = 64


def load(folder: Path, config: object, threads: int, device: torch.device) -> MaskedFamily:
    """Load the model in `folder`, whose config.json says `config`; raises ModelError with one line."""
    checkpoint = Checkpoint.of(folder, config)
    tokenizer = tokenizer_of(checkpoint)
    kind = kind_of(checkpoint, tokenizer)
    marks = marks_of(checkpoint, kind, tokenizer)
    native = device.type == "cuda" or processor_has_bf16()
    stock = stock_network(checkpoint, kind, device, torch.bfloat16 if native else torch.float32)
    network = MaskedNetwork(stock)
    if (tokens := 1 + max(tokenizer.get_vocab().values())) > network.vocabulary:
        raise ModelError(
            f"the tokenizer in {folder} has {tokens} tokens, its network {network.vocabulary}; install the model again"
        )
    try:
        pieces = Pieces(tokenizer)
    except KeyError:
        raise ModelError(f"the tokenizer in {folder} is no byte-level BPE, which all families here have") from None
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
        dtype=str(network.dtype).removeprefix("torch."),
    )
    return MaskedFamily(info, Trait(marks, kind.shifted, window), network, tokenizer, pieces, threads)
