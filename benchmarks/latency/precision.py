"""What quantized weights cost and save on this processor, one JSON line a result.

Layers have released sizes and Gaussian weights. Errors are the relative RMS of a layer's output against fp32; times are
ratios to the same product in fp32 in the same run, measured in turns. Whole models are tiny and random, made of stock
classes: KL divergence of their next-token distributions from fp32, and how often the most likely token is the same.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.library.precision_names import Precision
from engine.library.weights_header import is_image_tensor
from engine.models.diffusion_gemma.layers import ContextSegment, DiffusionNetwork
from engine.models.diffusion_gemma.loading import HALVES
from engine.models.quantization.quantizer import Quantizer, quantized

LAYERS = {"7B down": (3584, 18944), "expert gate, up": (1408, 2816), "expert down": (2816, 704)}
ROWS = (1, 16, 64)
QUANTIZED: tuple[Precision, ...] = ("int8", "int4", "fp8")
_TIMED = ("fp32", "bf16", "int8", "int4")
"""fp8 is for GPUs; its kernel for processors is a plain loop."""
_TURNS = 3
_TOKENS, _VOCABULARY = 256, 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="What quantized weights cost and save on this processor.")
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    torch.manual_seed(0)
    with torch.inference_mode():
        for name, (outputs, inputs) in LAYERS.items():
            _layer(name, torch.randn(outputs, inputs) / inputs**0.5)
        _models("masked", _qwen, lambda model, tokens: model(tokens[None]).logits[0])
        _models("DiffusionGemma", _gemma, _denoised)


def _layer(name: str, weights: Tensor) -> None:
    narrow = weights.bfloat16()
    started = time.perf_counter()
    held = {}
    for precision in QUANTIZED:
        held[precision] = quantized(weights, precision)
        _print_result(layer=name, precision=precision, million_weights_a_second=_speed(weights, started))
        started = time.perf_counter()
    products: dict[str, Callable[[Tensor], Tensor]] = {
        "fp32": lambda rows: rows @ weights.t(),
        "bf16": lambda rows: (rows.bfloat16() @ narrow.t()).float(),
        **{precision: matrix.product for precision, matrix in held.items()},
    }
    for count in ROWS:
        rows = torch.randn(count, weights.shape[1])
        exact = products["fp32"](rows)
        milliseconds = _in_turns({name: products[name] for name in _TIMED}, rows)
        for number_format, product in products.items():
            error = float((product(rows) - exact).norm() / exact.norm())
            time_ratio = (
                f"{milliseconds[number_format] / milliseconds['fp32']:.2f}" if number_format in _TIMED else "not timed"
            )
            _print_result(layer=name, rows=count, precision=number_format, error=f"{error:.4f}", time=time_ratio)


def _in_turns(products: dict[str, Callable[[Tensor], Tensor]], rows: Tensor) -> dict[str, float]:
    """Return the median milliseconds of each product; they take turns, and the first turn is not counted."""
    measured: dict[str, list[float]] = {name: [] for name in products}
    for _ in range(_TURNS + 1):
        for name, product in products.items():
            started = time.perf_counter()
            product(rows)
            measured[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(times[1:]) for name, times in measured.items()}


def _models(label: str, build: Callable[[], Any], logits_of: Callable[[Any, Tensor], Tensor]) -> None:
    tokens = torch.randint(0, _VOCABULARY, (_TOKENS,))
    exact = logits_of(build(), tokens).float().log_softmax(-1)
    for precision in get_args(Precision)[1:]:
        model = build().bfloat16() if precision == "bf16" else _held(build(), precision)
        logits = logits_of(model, tokens).float().log_softmax(-1)
        kl = F.kl_div(logits, exact, log_target=True, reduction="none").sum(-1).mean()
        same = (logits.argmax(-1) == exact.argmax(-1)).float().mean()
        _print_result(model=label, precision=precision, kl=f"{kl:.2e}", same_token=f"{same:.3f}")


def _held(model: nn.Module, precision: Precision) -> nn.Module:
    holder = Quantizer(model, precision, torch.device("cpu"))
    for name, weight in model.named_parameters():
        if not is_image_tensor(name):
            holder.take(name, weight, name.replace(*HALVES))
    holder.place()
    return model


def _qwen() -> Any:
    import transformers

    sizes: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 8}
    config = transformers.Qwen2Config(**sizes, vocab_size=_VOCABULARY, num_attention_heads=4, num_key_value_heads=4)
    config.is_causal = False
    return _drawn(transformers.Qwen2ForCausalLM(config))


def _gemma() -> Any:
    from transformers.models.diffusion_gemma import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    text = {"vocab_size": _VOCABULARY, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 6}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_global_key_value_heads": 1, "head_dim": 64}
    experts = {"num_experts": 16, "top_k_experts": 4, "moe_intermediate_size": 64, "global_head_dim": 64}
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = DiffusionGemmaConfig(
        text_config={**text, **heads, **experts}, vision_config={**vision, "num_key_value_heads": 2, "head_dim": 8}
    )
    return _drawn(DiffusionGemmaForBlockDiffusion(config))


def _drawn(model: Any) -> Any:
    """Give every matrix Gaussian weights that keep the size of its input."""
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            weight.normal_(std=0.06 if "embed_tokens" in name else weight.shape[-1] ** -0.5)
    return model.eval()


def _denoised(model: Any, tokens: Tensor) -> Tensor:
    """Return the logits of a canvas of `tokens` after a context of the same tokens."""
    network = DiffusionNetwork(model)
    context, count = network.new_context(), len(tokens)
    context.reserve(2 * count)
    positions = torch.arange(count)
    network.read(tokens, positions, [ContextSegment(context, 0, 0, count)])
    nothing = torch.zeros(count, network.width, dtype=network.dtype)
    return network.logits(
        network.denoise(tokens, nothing, positions + count, [ContextSegment(context, count, 0, count)])
    )


def _speed(weights: Tensor, started: float) -> int:
    return round(weights.numel() / 1e6 / (time.perf_counter() - started))


def _print_result(**result: object) -> None:
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
