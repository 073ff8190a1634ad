"""A network of transformers with the tensors of a checkpoint. No code from the checkpoint ever runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import ModelError
from engine.json_file import read_json
from engine.library.precision_names import Precision
from engine.models.quantization.quantizer import Quantizer
from engine.models.stock.checkpoint import Checkpoint, JsonObject, ModelFamily

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of the weights, in order. Raises ModelError if one is missing."""
    names = _indexed(folder / _INDEX) if (folder / _INDEX).exists() else [_SINGLE]
    for name in names:
        if not (folder / name).is_file():
            if any(folder.glob("*.bin")):
                raise ModelError(f"the weights in {folder} are pickled (.bin); only safetensors are read")
            raise ModelError(f"the model in {folder} lacks {name}; install it again")
    return [folder / name for name in names]


def _indexed(index: Path) -> list[str]:
    try:
        names = set(read_json(index)["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{index} cannot be read; install the model again") from None
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise ModelError(f"{index} names no files in this folder; install the model again")
    return sorted(names)


def read_tensors(paths: Sequence[Path], device: str = "cpu") -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor with its name, loaded onto the device. Raises ModelError for a damaged file."""
    for path in paths:
        try:
            with safe_open(path, framework="pt", device=device) as shard:
                for name in shard.keys():  # noqa: SIM118 - not a dict
                    yield name, shard.get_tensor(name)
        except (SafetensorError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise ModelError(f"the weights in {path} are damaged ({reason}); install the model again") from None


_NOT_CONFIG = {
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "auto_map",
    "dtype",
    "model_type",
    "torch_dtype",
    "transformers_version",
}
_HEAD, _EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def stock_network(
    checkpoint: Checkpoint, family: ModelFamily, device: torch.device, dtype: torch.dtype, precision: Precision = "bf16"
) -> Any:
    """Return a *ForCausalLM of transformers on `device`, in `dtype`.

    If `precision` has few bits, the matrices of the layers are quantized to it. Raises ModelError if config.json or the
    tensors do not fit.
    """
    config, network = _empty(checkpoint, family)
    shapes = {name: tuple(weight.shape) for name, weight in network.state_dict().items()}
    tensors: dict[str, Tensor] = {}
    quantizer = Quantizer(network, precision, device)
    for released_name, tensor in read_tensors(weight_files(checkpoint.folder)):
        name = family.rename(released_name)
        if shapes.get(name) != tuple(tensor.shape):
            needed = f"and {list(shapes[name])} is needed" if name in shapes else "and no such tensor is known"
            raise ModelError(
                f"the weights in {checkpoint.folder} do not fit its config.json: "
                f"{released_name} is {list(tensor.shape)}, {needed}"
            )
        if not quantizer.take(name, tensor.to(device)):
            tensors[name] = tensor.to(device, dtype)
    if _HEAD not in tensors and _EMBEDDING in tensors and config.tie_word_embeddings:
        tensors[_HEAD] = tensors[_EMBEDDING]
    if missing := [name for name in shapes if name not in tensors and name not in quantizer.taken]:
        others = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
        raise ModelError(f"the weights in {checkpoint.folder} lack {missing[0]}{others}; install the model again")
    quantizer.place()
    network.load_state_dict(tensors, assign=True)
    network.model.rotary_emb = type(network.model.rotary_emb)(config).to(device)  # no checkpoint has its tables
    return network.eval().requires_grad_(False)


def _empty(checkpoint: Checkpoint, family: ModelFamily) -> tuple[Any, Any]:
    """Return a transformers config and its network without weights."""
    import transformers

    path = checkpoint.folder / "config.json"
    try:
        stock = family.stock(checkpoint.config)
        fields: JsonObject = {key: value for key, value in stock.fields.items() if key not in _NOT_CONFIG}
        config = getattr(transformers, stock.architecture + "Config")(**fields)
        config.is_causal = False
        with torch.device("meta"):
            network = getattr(transformers, stock.architecture + "ForCausalLM")(config)
    except ModelError as error:
        raise ModelError(f"{error} ({path})") from None
    except Exception as error:  # a wrong value can raise anything in transformers' constructors
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelError(f"{path} does not describe a network: {reason}") from None
    if {"full_attention"} != set(getattr(config, "layer_types", None) or {"full_attention"}):
        raise ModelError(
            f"{path} asks for sliding windows, which are not supported: a middle must see all text around it"
        )
    return config, network
