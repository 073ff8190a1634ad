"""Step times of DiffusionGemma beside their floors: `python -m benchmarks.gpu [--full]`, one JSON line a step.

`--full` makes the released 26B shape with random weights, for a GPU; without it a tiny shape runs anywhere. A floor is
the larger of two times: reading once all weights that a step touches, and its multiplications, at the speeds that this
machine has just shown on a large copy and a large product.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import attrs
import torch

from engine.models.diffusion_gemma.acceptance import by_entropy
from engine.models.diffusion_gemma.attention import Segment
from engine.models.diffusion_gemma.canvas import Canvas, CanvasPass
from engine.models.diffusion_gemma.denoiser import Denoiser
from engine.models.diffusion_gemma.network import DiffusionNetwork
from engine.models.diffusion_gemma.noise import SeededNoise

CANVASES = (16, 64, 256)


@attrs.frozen
class Shape:
    """The text half of a DiffusionGemma; the fields are config.json's."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    num_global_key_value_heads: int
    head_dim: int
    global_head_dim: int
    sliding_window: int
    num_experts: int
    top_k_experts: int
    moe_intermediate_size: int


TINY = Shape(2048, 64, 128, 6, 4, 2, 1, 16, 32, 64, 8, 2, 32)
FULL = Shape(262_144, 2816, 2112, 30, 16, 8, 2, 256, 512, 1024, 128, 8, 704)


def network_of(shape: Shape, device: torch.device) -> DiffusionNetwork:
    """Return a network with random weights, bf16 on a GPU and fp32 elsewhere."""
    from transformers.models.diffusion_gemma import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    configuration = DiffusionGemmaConfig(
        text_config=attrs.asdict(shape), vision_config={**vision, "num_key_value_heads": 2, "head_dim": 8}
    )
    torch.set_default_dtype(torch.bfloat16 if device.type == "cuda" else torch.float32)
    try:
        with device:
            return DiffusionNetwork(DiffusionGemmaForBlockDiffusion(configuration).eval())
    finally:
        torch.set_default_dtype(torch.float32)


def milliseconds(work: Callable[[], object], device: torch.device, times: int = 7) -> float:
    """Return the median time of `work`, after two runs to warm up."""
    taken = []
    for turn in range(times + 2):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if turn > 1:
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def speeds(device: torch.device) -> tuple[float, float]:
    """Return bytes and floating point operations a millisecond."""
    large, side, dtype = (1 << 28, 8192, torch.bfloat16) if device.type == "cuda" else (1 << 24, 1024, torch.float32)
    source, target = torch.ones(large, device=device), torch.empty(large, device=device)
    matrix = torch.ones(side, side, device=device, dtype=dtype)
    moved = 2 * source.nbytes / milliseconds(lambda: target.copy_(source), device)
    return moved, 2 * side**3 / milliseconds(lambda: matrix @ matrix, device)


def floor_ms(shape: Shape, rows: int, size: int, per_ms: tuple[float, float]) -> float:
    """Return the least a step over `rows` rows can take, `size` bytes a weight, without its keys and values."""
    width, full_layers = shape.hidden_size, shape.num_hidden_layers // 6
    heads, inner = shape.num_attention_heads, shape.intermediate_size
    sliding = width * shape.head_dim * (2 * heads + 2 * shape.num_key_value_heads)
    full = width * shape.global_head_dim * (2 * heads + shape.num_global_key_value_heads)
    dense = (shape.num_hidden_layers - full_layers) * sliding + full_layers * full
    dense += shape.num_hidden_layers * 3 * width * inner + 3 * width * inner + 2 * shape.vocab_size * width
    expert = 3 * width * shape.moe_intermediate_size * shape.num_hidden_layers
    missed = (1 - shape.top_k_experts / shape.num_experts) ** rows
    touched = dense + expert * shape.num_experts * (1 - missed)
    used = dense + expert * shape.top_k_experts
    return max(touched * size / per_ms[0], 2 * rows * used / per_ms[1])


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description="Step times of DiffusionGemma beside their floors.")
    parser.add_argument("--full", action="store_true", help="the 26B shape, random weights; needs 60 GB of GPU memory")
    parser.add_argument("--context", type=int, default=2048, help="tokens that are read before")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = FULL if arguments.full else TINY
    network, per_ms = network_of(shape, device), speeds(device)
    context = network.new_context()
    context.reserve(arguments.context)
    tokens = torch.arange(arguments.context, device=device)
    read = milliseconds(
        lambda: network.read(tokens, tokens, [Segment(context, 0, 0, arguments.context)]), device, times=3
    )
    print(json.dumps({"read": arguments.context, "ms": round(read, 2)}))
    denoiser = Denoiser(network, SeededNoise(network.vocabulary, device), confident=0.0)
    for rows in CANVASES:
        made = CanvasPass(context, [], [Canvas(rows, [], by_entropy(0.1))], [0.6])
        (canvas,) = made.canvases
        ((canvas.state,),) = denoiser.run([made], [arguments.context])
        step = milliseconds(partial(denoiser.run, [made], [arguments.context]), device)
        least = floor_ms(shape, rows, network.dtype.itemsize, per_ms)
        print(json.dumps({"canvas": rows, "ms": round(step, 2), "floor": round(least, 3), "x": round(step / least, 2)}))
    if device.type == "cuda":
        print(json.dumps({"device": torch.cuda.get_device_name(), "peak_gib": torch.cuda.max_memory_allocated() >> 30}))


if __name__ == "__main__":
    main()
