"""Networks of a released shape with random weights, made on the machine that runs them, so nothing must be copied."""

from typing import Any

import attrs
import torch
from torch import Tensor, nn

from benchmarks.gpu.gpu_floor import DenseShape, GemmaShape
from engine.library.precision_names import Precision
from engine.models.diffusion_gemma.loading import HALVES
from engine.models.quantization.quantizer import Quantizer

TINY_GEMMA = GemmaShape(2048, 64, 128, 6, 4, 2, 1, 16, 32, 64, 8, 2, 32)
FULL_GEMMA = GemmaShape(262_144, 2816, 2112, 30, 16, 8, 2, 256, 512, 1024, 128, 8, 704)
TINY_DREAM = DenseShape(2048, 64, 128, 4, 4, 2)
FULL_DREAM = DenseShape(152_064, 3584, 18_944, 28, 28, 4)


def gemma_of(shape: GemmaShape, device: torch.device, precision: Precision) -> Any:
    """Return a DiffusionGemmaForBlockDiffusion whose layers' matrices are in `precision`; both halves share them."""
    from transformers.models.diffusion_gemma import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    configuration = DiffusionGemmaConfig(
        text_config=attrs.asdict(shape), vision_config={**vision, "num_key_value_heads": 2, "head_dim": 8}
    )
    with torch.device("meta"):
        model = DiffusionGemmaForBlockDiffusion(configuration)
    for name in ("vision_tower", "embed_vision"):
        delattr(model.model.encoder, name)
    _fill_in(model, device, precision)
    for half in (model.model.decoder, model.model.encoder.language_model):
        half.rotary_emb = type(half.rotary_emb)(half.rotary_emb.config).to(device)
        half.embed_tokens.embed_scale = torch.tensor(half.embed_tokens.scalar_embed_scale, device=device)
    return model.requires_grad_(False).eval()  # type: ignore[no-untyped-call]


def dream_of(shape: DenseShape, device: torch.device, precision: Precision, window: int) -> Any:
    """Return a bidirectional Qwen2ForCausalLM, as Dream's and DreamOn's checkpoints are loaded."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    configuration = Qwen2Config(**attrs.asdict(shape), max_position_embeddings=window, tie_word_embeddings=False)
    configuration.is_causal = False
    with torch.device("meta"):
        model = Qwen2ForCausalLM(configuration)
    _fill_in(model, device, precision)
    model.model.rotary_emb = type(model.model.rotary_emb)(configuration).to(device)
    return model.requires_grad_(False).eval()  # type: ignore[no-untyped-call]


def _fill_in(model: nn.Module, device: torch.device, precision: Precision) -> None:
    """Give a network on the meta device random weights; weights that two halves share are made once."""
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    holder = Quantizer(model, precision, device)
    made: dict[str, Tensor] = {}
    torch.manual_seed(0)
    for name, weight in model.state_dict().items():
        twins = [name.replace(half, other, 1) for half, other in (HALVES, HALVES[::-1]) if name.startswith(half)]
        shared = next((made[twin] for twin in twins if twin in made), None)
        if shared is not None or any(twin in holder.taken for twin in twins):
            if shared is not None:
                made[name] = shared
            continue
        random = torch.ones(weight.shape, dtype=dtype, device=device)
        if weight.dim() > 1:
            random.normal_(std=0.02)
        if not holder.take(name, random, *twins):
            made[name] = random
    model.load_state_dict(made, strict=False, assign=True)
    holder.place()
    model.tie_weights()  # type: ignore[operator]
