"""The Dream family: Qwen2.5-Coder made a diffusion model, with its shifted logits.

The released config.json of all three says model_type "Dream", architectures ["DreamModel"], an auto_map to
modeling_dream.DreamModel and mask_token_id 151666; the tensors have Qwen2's names.
"""

import attrs

from engine.models.stock.kind import JsonObject, Kind, MaskedTokens, Stock


def qwen2(config: JsonObject) -> Stock:
    """Return what config.json says, as a Qwen2."""
    return Stock("Qwen2", config)


DREAM = Kind(
    name="dream",
    model_types=("Dream", "qwen2"),
    licence="Apache-2.0",
    shifted=True,
    marks=MaskedTokens(mask=151666, end=151643),
    stock=qwen2,
)
DIFFUCODER = attrs.evolve(DREAM, name="diffucoder", licence="apple-amlr", marks=MaskedTokens(151666, 151643, (151667,)))
DREAMON = attrs.evolve(
    DREAM,
    name="dreamon",
    marks=MaskedTokens(mask=151666, end=151643, begin=151665, expand=151667),
    context_tokens=2048,
)
