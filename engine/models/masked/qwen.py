"""Diffusion models that others made from Qwen2.5-Coder: Open-dCoder, and dLLM's conversions (a2d).

Open-dCoder's own code loads it as a Qwen2ForCausalLM, and its mask is the tokenizer's mask_token. In dLLM's releases
config.json has model_type "a2d-qwen2" (or a2d-qwen3, a2d-llama). Their lm_head is not tied, even if config.json claims
so.
"""

from engine.models.masked.dream import qwen2
from engine.models.stock.family import JsonObject, MaskedTokens, ModelFamily, Stock

_CONVERTED = {"a2d-qwen2": "Qwen2", "a2d-qwen3": "Qwen3", "a2d-llama": "Llama"}


def converted(config: JsonObject) -> Stock:
    """Return config.json as the config of the converted architecture."""
    return Stock(_CONVERTED[config["model_type"]], config)


OPEN_DCODER = ModelFamily(
    name="open-dcoder",
    model_types=("qwen2",),
    licence="Apache-2.0",
    shifted=True,
    special_tokens=MaskedTokens(mask=151665, end=151643),
    stock=qwen2,
)
DLLM_QWEN = ModelFamily(
    name="dllm-qwen",
    model_types=tuple(_CONVERTED),
    licence="unknown",
    shifted=False,
    special_tokens=MaskedTokens(mask=151665, end=151643),
    stock=converted,
)
