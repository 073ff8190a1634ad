"""Qwen2.5-Coder as others made it a diffusion model: Open-dCoder, and dLLM's conversion (a2d).

Open-dCoder's own loading code names a plain Qwen2ForCausalLM, and its mask is the tokenizer's mask_token. dLLM's
config.json says model_type "a2d-qwen2" (or a2d-qwen3, a2d-llama); its lm_head is not tied, whatever config.json says.
"""

from engine.models.masked.dream import qwen2
from engine.models.stock.kind import JsonObject, Kind, MaskedTokens, Stock

_CONVERTED = {"a2d-qwen2": "Qwen2", "a2d-qwen3": "Qwen3", "a2d-llama": "Llama"}


def converted(config: JsonObject) -> Stock:
    """Return what config.json says, as the architecture that was converted."""
    return Stock(_CONVERTED[config["model_type"]], config)


OPEN_DCODER = Kind(
    name="open-dcoder",
    model_types=("qwen2",),
    licence="Apache-2.0",
    shifted=True,
    marks=MaskedTokens(mask=151665, end=151643),
    stock=qwen2,
)
DLLM_QWEN = Kind(
    name="dllm-qwen",
    model_types=tuple(_CONVERTED),
    licence="unknown",
    shifted=False,
    marks=MaskedTokens(mask=151665, end=151643),
    stock=converted,
)
