"""The Dream family: Qwen2.5-Coder turned into a diffusion model. Its logits stay shifted.

In all three releases config.json has model_type "Dream", architectures ["DreamModel"], an auto_map to
modeling_dream.DreamModel and mask_token_id 151666; the tensors have Qwen2's names.
"""

import attrs

from engine.models.stock.family import JsonObject, MaskedTokens, ModelFamily, Stock


def qwen2(config: JsonObject) -> Stock:
    """Return config.json as a Qwen2 config."""
    return Stock("Qwen2", config)


DREAM = ModelFamily(
    name="dream",
    model_types=("Dream", "qwen2"),
    licence="Apache-2.0",
    shifted=True,
    special_tokens=MaskedTokens(mask=151666, end=151643),
    stock=qwen2,
)
DIFFUCODER = attrs.evolve(
    DREAM, name="diffucoder", licence="apple-amlr", special_tokens=MaskedTokens(151666, 151643, (151667,))
)
DREAMON = attrs.evolve(
    DREAM,
    name="dreamon",
    special_tokens=MaskedTokens(mask=151666, end=151643, begin=151665, expand=151667),
    context_tokens=2048,
)
