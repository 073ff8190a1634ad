"""Loads a masked model from the folder of a released checkpoint."""

import torch
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.library.precision_names import PrecisionSetting
from engine.models.embedded.runner import host_pass, kernel_paths
from engine.models.left_to_right.load import KERNEL_PRECISIONS, folder_shape, folder_weights
from engine.models.masked.families import family_of
from engine.models.masked.filling import LENGTHS, MaskedTraits
from engine.models.masked.model import MaskedModel
from engine.models.masked.network import KernelMaskedNetwork, MaskedNetwork
from engine.models.quantization.quantizer import choose
from engine.models.stock.checkpoint import Checkpoint, MaskedTokens, ModelFamily, OnStage, memory_use_of
from engine.models.stock.network import stock_network, weight_files
from engine.models.stock.tokenizer import token_bytes_of, tokenizer_of
from engine.protocol.messages import ModelInfo


def special_tokens_of(checkpoint: Checkpoint, family: ModelFamily, tokenizer: Tokenizer) -> MaskedTokens:
    """Return the ids of a checkpoint's special tokens.

    They come from midspan.json, else config.json or generation_config.json, else the names in the tokenizer, else the
    family. Raises ModelError for an id that the tokenizer does not have.
    """
    notes, known = checkpoint.notes, family.special_tokens
    ends = _configured_ids(checkpoint, "eos_token_id")
    end = _first(notes.end_id, *ends, _named_id(checkpoint, tokenizer, "eos_token"))
    end = known.end if end is None else end
    configured_mask = _configured_ids(checkpoint, "mask_token_id")
    mask = _first(notes.mask_id, *configured_mask, _named_id(checkpoint, tokenizer, "mask_token"))
    padding = {*ends, *_configured_ids(checkpoint, "pad_token_id"), *known.padding}
    # DiffuCoder pads with its tokenizer's <|dlm_pad|>; its config.json names another token.
    padding |= {number for number in [_named_id(checkpoint, tokenizer, "pad_token")] if number is not None}
    begin = expand = None
    if known.begin is not None:
        # In Dream's releases config.json has a wrong bos_token_id (151643); the tokenizer has the right one.
        begin = _first(notes.begin_id, _named_id(checkpoint, tokenizer, "bos_token"), known.begin)
    if known.expand is not None:
        configured_expand = _configured_ids(checkpoint, "expand_token_id")
        expand = _first(notes.expand_id, *configured_expand, tokenizer.token_to_id("<|expand|>"), known.expand)
    mask = known.mask if mask is None else mask
    for name, number in {"mask": mask, "end": end, "begin": begin, "expand": expand}.items():
        if number is not None and tokenizer.id_to_token(number) is None:
            raise ModelError(
                f"the {name} token {number} of the model in {checkpoint.folder} is unknown to its tokenizer; "
                f'put the right one into midspan.json there as "{name}_id"'
            )
    present = tuple(sorted(number for number in padding - {end, mask} if tokenizer.id_to_token(number) is not None))
    return MaskedTokens(mask, end, present, begin, expand)


def _configured_ids(checkpoint: Checkpoint, key: str) -> list[int]:
    """Return the ids that config.json, or else generation_config.json, has for `key`: none, one, or a list."""
    ids = checkpoint.config.get(key)
    ids = checkpoint.generation.get(key) if ids is None else ids
    return [number for number in (ids if isinstance(ids, list) else [ids]) if type(number) is int]


def _named_id(checkpoint: Checkpoint, tokenizer: Tokenizer, key: str) -> int | None:
    """Return the id of a special token that tokenizer_config.json names by its text."""
    text = checkpoint.tokenizer.get(key)
    text = text.get("content") if isinstance(text, dict) else text
    return tokenizer.token_to_id(text) if isinstance(text, str) else None


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


READING_TOKENS = {"cuda": 2048, "cpu": 512}
"""Every key press reads prefix and suffix again. 2,048 tokens take a 7B model 40 ms on a GPU with 800 TFLOP/s, and 512
tokens take a 0.5B model half a second on a CPU."""


def load(
    checkpoint: Checkpoint,
    threads: int,
    device: torch.device,
    precision: PrecisionSetting = "auto",
    on_stage: OnStage = lambda stage: None,
) -> MaskedModel:
    """Load the model in a folder. Raises ModelError with one line."""
    tokenizer = tokenizer_of(checkpoint)
    family = family_of(checkpoint, tokenizer)
    special_tokens = special_tokens_of(checkpoint, family, tokenizer)
    network, dtype = _network(checkpoint, family, threads, device, precision, on_stage)
    token_bytes = token_bytes_of(checkpoint, tokenizer, network.vocabulary)
    window = checkpoint.window(network.window, family.context_tokens)
    name, licence = checkpoint.named(family.licence)
    info = ModelInfo(
        name=name,
        family=family.name,
        licence=licence,
        parameters=network.parameters,
        context_tokens=window,
        canvas_tokens=max(LENGTHS["line"]),
        noise="absorbing",
        device=device.type,
        dtype=dtype,
        reading_tokens=min(window, READING_TOKENS[device.type]),
    )
    traits = MaskedTraits(special_tokens, family.shifted, window)
    return MaskedModel(info, traits, network, tokenizer, token_bytes, threads, memory_use_of(checkpoint))


def _network(
    checkpoint: Checkpoint,
    family: ModelFamily,
    threads: int,
    device: torch.device,
    precision: PrecisionSetting,
    on_stage: OnStage,
) -> tuple[MaskedNetwork | KernelMaskedNetwork, str]:
    """Return a checkpoint's network, and what it computes in: our kernel, on a processor and for a shape that it runs.

    Raises ModelError.
    """
    in_kernel = device.type == "cpu" and precision in KERNEL_PRECISIONS and bool(kernel_paths())
    if in_kernel and (shape := folder_shape(checkpoint)) is not None:
        weights = folder_weights(checkpoint, shape, precision, on_stage)
        host = host_pass(weights, shape, threads)
        return KernelMaskedNetwork(host, shape, weights.count), f"int{weights.bits}, {host.name}"
    choice = choose(weight_files(checkpoint.folder), precision, device)
    stock = stock_network(checkpoint, family, device, choice.dtype, choice.precision)
    return MaskedNetwork(stock), choice.name
