"""Checkpoints that were released in few bits: told apart by their config.json, and not read."""

from collections.abc import Mapping
from pathlib import Path

from engine.errors import ModelError

_KEYS = ("quantization_config", "compression_config")


def refuse_quantized(folder: Path, config: Mapping[str, object]) -> None:
    """Raise ModelError where config.json says that the weights beside it are quantized (GPTQ, AWQ, ...)."""
    text = config.get("text_config")
    for fields in (config, text if isinstance(text, Mapping) else {}):
        for key in _KEYS:
            if fields.get(key):
                raise ModelError(
                    f"the weights in {folder} are quantized with {_method(fields[key])}, which is not read; "
                    "pull the model that is not quantized and choose a precision: --precision int8, or int4"
                )


def _method(found: object) -> str:
    fields = found if isinstance(found, Mapping) else {}
    if method := fields.get("quant_method"):
        return str(method)
    kinds = [kind for kind in ("load_in_4bit", "load_in_8bit") if fields.get(kind)]
    return f"bitsandbytes ({kinds[0]})" if kinds else "a method that config.json does not name"
