"""Refuses checkpoints that were released quantized. Their config.json says so."""

from collections.abc import Mapping
from pathlib import Path

from engine.errors import ModelError

_KEYS = ("quantization_config", "compression_config")


def refuse_quantized(folder: Path, config: Mapping[str, object]) -> None:
    """Raise ModelError if config.json says that the weights in `folder` are quantized (GPTQ, AWQ, ...)."""
    text = config.get("text_config")
    for fields in (config, text if isinstance(text, Mapping) else {}):
        for key in _KEYS:
            if fields.get(key):
                raise ModelError(
                    f"the weights in {folder} are quantized with {_method(fields[key])}, which is not read; "
                    "pull the model that is not quantized and choose a precision: --precision int8, or int4"
                )


def _method(config: object) -> str:
    fields = config if isinstance(config, Mapping) else {}
    if method := fields.get("quant_method"):
        return str(method)
    flags = [flag for flag in ("load_in_4bit", "load_in_8bit") if fields.get(flag)]
    return f"bitsandbytes ({flags[0]})" if flags else "a method that config.json does not name"
