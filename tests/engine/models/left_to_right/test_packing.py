"""The kernel packs the blocks of a file into the weights that they hold, rounded as everywhere else."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import Q4_K, dequantize
from numpy.typing import NDArray
from support.file_blocks import LARGE, SIZES, BlockWeights
from support.kernel_passes import run_holes, skip_without

from engine.models.embedded.runner import KernelPass
from engine.models.embedded.shape import Floats
from engine.models.embedded.weights import (
    HALF,
    OFFSET,
    SCALE,
    Weights,
    packed_pairs,
    quantize_int4,
    quantize_int8,
    shapes_of,
)

FOUR_BITS = ("Q4_0", "Q4_1", "Q4_K")
HOLES = [(0, 3, 0), (5, 2, 0)]
Stored = dict[str, NDArray[np.generic]]


def logits_of(weights: Weights, threads: int = 1) -> Floats:
    return run_holes(KernelPass(weights, LARGE, threads=threads), LARGE, HOLES)[0]


def dense_of(weights: BlockWeights, name: str) -> Floats:
    parts = [dequantize(blocks, GGMLQuantizationType[kind]) for kind, blocks in weights.parts[name]]
    return np.concatenate(parts).astype(np.float32)


def vectors_of(weights: BlockWeights) -> Stored:
    return {name: weights.dense(name) for name, size in shapes_of(LARGE).items() if len(size) == 1}


def rounded(weights: BlockWeights, bits: int) -> Weights:
    """Return the weights as embedded/weights.py rounds what the package gguf reads."""
    stored = vectors_of(weights)
    for name in weights.parts:
        if bits == 8:
            stored[name], stored[name + SCALE] = quantize_int8(dense_of(weights, name))
        else:
            stored[name], stored[name + SCALE], stored[name + OFFSET] = quantize_int4(dense_of(weights, name))
    return Weights(stored)


def halves(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate((blocks & 15, blocks >> 4), 1)


def kept(weights: BlockWeights) -> Weights:
    """Return the weights with the numbers of their own blocks."""
    stored = vectors_of(weights)
    for name, [(kind, rows)] in weights.parts.items():
        outputs, size = len(rows), SIZES[kind][1]
        blocks = rows.reshape(-1, size)
        if kind == "Q4_K":
            both = blocks[:, :4].copy().view(np.float16).astype(np.float32)
            scale, least = Q4_K.get_scale_min(blocks[:, 4:16])
            numbers = halves(blocks[:, 16:].reshape(-1, HALF))
            scales, offsets = both[:, :1] * scale, -both[:, 1:] * least
        else:
            scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
            offsets = blocks[:, 2:4].copy().view(np.float16).astype(np.float32) if kind == "Q4_1" else -8 * scales
            numbers = halves(blocks[:, size - 16 :])
        stored[name] = packed_pairs(numbers.reshape(outputs, -1))
        stored[name + SCALE] = scales.reshape(outputs, -1).astype(np.float16)
        stored[name + OFFSET] = offsets.reshape(outputs, -1).astype(np.float16)
    return Weights(stored)


@pytest.mark.parametrize("kind", SIZES)
def test_every_type_is_rounded_to_int8_as_numpy_rounds_it(kind: str) -> None:
    skip_without("plain")
    weights = BlockWeights((kind,), 8)
    assert np.array_equal(logits_of(weights), logits_of(rounded(weights, 8)))


@pytest.mark.parametrize("kind", [kind for kind in SIZES if kind not in FOUR_BITS])
def test_every_other_type_is_rounded_to_int4_with_offsets_as_numpy_rounds_it(kind: str) -> None:
    skip_without("plain")
    weights = BlockWeights((kind,), 4)
    assert np.array_equal(logits_of(weights), logits_of(rounded(weights, 4)))


@pytest.mark.parametrize("kind", FOUR_BITS)
def test_types_of_4_bits_stay_as_they_are(kind: str) -> None:
    skip_without("plain")
    weights = BlockWeights((kind,), 4)
    assert np.array_equal(logits_of(weights), logits_of(kept(weights)))


def test_the_parts_of_a_matrix_may_be_of_different_types_and_threads_change_nothing() -> None:
    skip_without("plain")
    weights = BlockWeights(("Q6_K", "F16", "Q4_0"), 8)
    expected = logits_of(rounded(weights, 8))
    assert np.array_equal(logits_of(weights), expected)
    assert np.array_equal(logits_of(weights, threads=4), expected)


def test_halves_of_heads_that_are_side_by_side_are_put_one_after_the_other() -> None:
    skip_without("plain")
    width, name = LARGE.head_width, "blocks.0.qkv.weight"
    weights, straight = BlockWeights(("Q8_0",), 8, width), BlockWeights(("Q8_0",), 8)
    [(kind, blocks)] = straight.parts[name]
    order = np.arange(len(blocks)).reshape(-1, width // 2, 2).swapaxes(1, 2).reshape(-1)
    straight.parts[name] = [(kind, blocks[order])]
    assert np.array_equal(logits_of(weights), logits_of(straight))


def spoiled(kind: str, bits: int, at: int, half: int) -> BlockWeights:
    weights = BlockWeights((kind,), bits)
    weights.parts["blocks.0.down.weight"][0][1][7, at : at + 2] = np.array([half], np.uint16).view(np.uint8)
    return weights


@pytest.mark.parametrize(
    ("kind", "bits", "at"),
    [("Q4_0", 4, 0), ("Q4_1", 4, 2), ("Q4_K", 4, 2), ("Q6_K", 8, 208), ("F16", 8, 6), ("F16", 4, 6)],
)
@pytest.mark.parametrize("half", [0x7C00, 0xFC00, 0x7E00], ids=["infinite", "negative", "none"])
def test_numbers_that_are_not_finite_are_refused_by_the_tensors_name(kind: str, bits: int, at: int, half: int) -> None:
    skip_without("plain")
    with pytest.raises(ValueError, match=r"the tensor blocks\.0\.down\.weight holds numbers that are not finite"):
        KernelPass(spoiled(kind, bits, at, half), LARGE)


def test_parts_that_do_not_fit_are_refused_in_one_line() -> None:
    skip_without("plain")
    weights, name = BlockWeights(("Q8_0",), 8), "blocks.0.out.weight"
    [(_, blocks)] = weights.parts[name]
    for parts, says in (
        ([("Q8_0", blocks[:-1])], "does not fit"),
        ([("Q8_1", blocks)], "is of type Q8_1"),
        ([("Q5_0", blocks)], r"has \d+ bytes"),
        ([], "1 to 3 parts"),
        ([("Q8_0", blocks[:64])] * 4, "1 to 3 parts"),
    ):
        weights.parts[name] = parts
        with pytest.raises(ValueError, match=says):
            KernelPass(weights, LARGE)
