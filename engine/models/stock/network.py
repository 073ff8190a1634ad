"""A stock transformers network, filled with a checkpoint's tensors. No code of the checkpoint's is ever run."""

from typing import Any

import torch
from torch import Tensor

from engine.errors import ModelError
from engine.library.precision_names import Precision
from engine.models.quantization.holder import Holder
from engine.models.stock.checkpoint import Checkpoint
from engine.models.stock.kind import JsonObject, Kind
from engine.models.stock.tensors import read_tensors, weight_files

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
    checkpoint: Checkpoint, kind: Kind, device: torch.device, dtype: torch.dtype, precision: Precision = "bf16"
) -> Any:
    """Return a *ForCausalLM of transformers on `device`, in `dtype`; the matrices of its layers in `precision`, if that
    is one of few bits. Raises ModelError where config.json or tensors do not fit."""
    config, network = _empty(checkpoint, kind)
    wanted = {name: tuple(weight.shape) for name, weight in network.state_dict().items()}
    found: dict[str, Tensor] = {}
    holder = Holder(network, precision)
    for released, tensor in read_tensors(weight_files(checkpoint.folder)):
        name = kind.rename(released)
        if wanted.get(name) != tuple(tensor.shape):
            needed = f"and {list(wanted[name])} is needed" if name in wanted else "and no such tensor is known"
            raise ModelError(
                f"the weights in {checkpoint.folder} do not fit its config.json: "
                f"{released} is {list(tensor.shape)}, {needed}"
            )
        if not holder.take(name, tensor.to(device)):
            found[name] = tensor.to(device, dtype)
    if _HEAD not in found and _EMBEDDING in found and config.tie_word_embeddings:
        found[_HEAD] = found[_EMBEDDING]
    if missing := [name for name in wanted if name not in found and name not in holder.taken]:
        others = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
        raise ModelError(f"the weights in {checkpoint.folder} lack {missing[0]}{others}; install the model again")
    holder.place()
    network.load_state_dict(found, assign=True)
    network.model.rotary_emb = type(network.model.rotary_emb)(config).to(device)  # its tables are in no checkpoint
    return network.eval().requires_grad_(False)


def _empty(checkpoint: Checkpoint, kind: Kind) -> tuple[Any, Any]:
    """Return a stock config and its network without weights."""
    import transformers

    path = checkpoint.folder / "config.json"
    try:
        stock = kind.stock(checkpoint.config)
        fields: JsonObject = {key: value for key, value in stock.fields.items() if key not in _NOT_CONFIG}
        config = getattr(transformers, stock.architecture + "Config")(**fields)
        config.is_causal = False
        with torch.device("meta"):
            network = getattr(transformers, stock.architecture + "ForCausalLM")(config)
    except ModelError as error:
        raise ModelError(f"{error} ({path})") from None
    except Exception as error:  # whatever a wrong value makes of transformers' constructors
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelError(f"{path} cannot be made a network: {reason}") from None
    if {"full_attention"} != set(getattr(config, "layer_types", None) or {"full_attention"}):
        raise ModelError(f"{path} asks for sliding windows, through which a middle cannot see all of its sides")
    return config, network
