"""Weights on disk: what is read, what is refused, and how closely int4 and int8 follow fp32."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file
from support.kernel_passes import ODD, STORAGES, Storage, random_weights

from engine.models.embedded.shape import GROUP, Floats, Shape
from engine.models.embedded.weights import (
    CENTRE,
    HALF,
    OFFSET,
    SCALE,
    STEPS,
    Packed,
    Weights,
    in_steps,
    quantize_int4,
    quantize_int8,
)

Stored = dict[str, NDArray[np.generic]]
MATRIX = "blocks.0.out.weight"


def dense(rows: int = 40, inputs: int = 192) -> Floats:
    return np.random.default_rng(5).normal(0, 0.1, (rows, inputs)).astype(np.float32)


def test_int8_is_half_a_level_away_at_most() -> None:
    weights = dense()
    packed = Packed(*quantize_int8(weights))
    levels = np.repeat(np.abs(packed.scales.astype(np.float32)), GROUP, 1)
    assert (np.abs(packed.dense() - weights) <= 0.56 * levels).all()  # The scale itself is rounded to fp16.


def test_int4_is_half_a_level_away_at_most() -> None:
    weights = dense()
    packed = Packed(*quantize_int4(weights))
    levels = np.repeat(packed.scales.astype(np.float32), HALF, 1)
    assert (np.abs(packed.dense() - weights) <= 0.6 * levels).all()  # Scales and offsets are rounded to fp16.


def test_int4_holds_whole_numbers_exactly_in_the_order_of_the_inputs() -> None:
    whole = np.random.default_rng(1).integers(0, 16, (3, 128)).astype(np.float32)
    whole[:, ::HALF], whole[:, 1::HALF] = 0, 15
    packed = Packed(*quantize_int4(whole - 4))
    assert packed.values[0, 3] == int(whole[0, 6]) | int(whole[0, 7]) << 4
    assert np.array_equal(packed.dense(), whole - 4)


@pytest.mark.parametrize("factor", [0.0, 1e-12, 1e6])
def test_groups_of_zeros_and_of_extreme_numbers_keep_finite_scales(factor: float) -> None:
    for packed in (Packed(*quantize_int4(dense() * np.float32(factor))), Packed(*quantize_int8(dense() * 0))):
        assert np.isfinite(packed.scales).all()
        assert np.isfinite(packed.dense()).all()


@pytest.mark.parametrize("storage", STORAGES)
def test_each_weight_counts_as_one_parameter(storage: Storage) -> None:
    shape = ODD
    assert random_weights(shape, storage).count == 77 * 128 + 128 + 2 * 128 + 128 * (320 + 192 + 384 + 192)
    assert random_weights(shape, storage).bits == (4 if storage == "int4" else 8)


def without(name: str) -> Callable[[Stored], None]:
    return lambda stored: stored.__delitem__(name)


def with_array(name: str, change: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Callable[[Stored], None]:
    return lambda stored: stored.update({name: change(stored[name])})


def not_finite(array: NDArray[np.generic]) -> NDArray[np.generic]:
    changed = array.copy()
    changed.flat[3] = np.inf
    return changed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without(MATRIX), f"{MATRIX} is missing"),
        (without(MATRIX + SCALE), f"{MATRIX} is in uint8"),
        (lambda stored: stored.update({"hint.weight": np.zeros(3, np.float32)}), "hint.weight is not known"),
        (lambda stored: stored.update({"hint.weight.scale": np.zeros(3, np.float16)}), "hint.weight.scale is not"),
        (with_array(MATRIX, lambda array: array[:-1]), r"blocks.0.out.weight is \[127, 96\], not \[128, 96\]"),
        (with_array(MATRIX, lambda array: array.astype(np.int8)), r"is \[128, 96\], not \[128, 192\]"),
        (with_array(MATRIX, lambda array: array.astype(np.float64)), "in float64"),
        (with_array(MATRIX + SCALE, lambda array: array.astype(np.float32)), "in float32"),
        (with_array(MATRIX + SCALE, lambda array: array[:, :1]), r"scale is \[128, 1\]"),
        (with_array(MATRIX + SCALE, not_finite), "not finite"),
        (without(MATRIX + OFFSET), f"{MATRIX} in uint8 has no offset"),
        (with_array(MATRIX + OFFSET, lambda array: array[:, :1]), r"offset is \[128, 1\]"),
        (with_array(MATRIX + OFFSET, not_finite), "not finite"),
        (with_array("norm.weight", not_finite), "not finite"),
        (with_array("norm.weight", lambda array: array.astype(np.float16)), "norm.weight is in float16"),
    ],
)
def test_weights_that_do_not_fit_are_refused_in_one_line(change: Callable[[Stored], None], says: str) -> None:
    stored = dict(random_weights(ODD)._stored)
    change(stored)
    with pytest.raises(ValueError, match=says) as refusal:
        Weights(stored).check(ODD)
    assert "\n" not in str(refusal.value)


def stored_in_steps(folder: Path, change: Callable[[Stored], None] = lambda stored: None) -> Path:
    """Write weights whose scales and offsets are in 8 bits, as an export does, with a change."""
    stored = dict(random_weights(ODD)._stored)
    for name in [name.removesuffix(OFFSET) for name in stored if name.endswith(OFFSET)]:
        scales, offsets = (stored.pop(name + part).astype(np.float32) for part in (SCALE, OFFSET))
        parts = in_steps(scales, offsets + np.float32(7.5) * scales)
        stored.update(zip((name + SCALE, name + CENTRE, name + STEPS), parts, strict=True))
    change(stored)
    save_file(stored, folder / "model.safetensors")
    return folder / "model.safetensors"


def test_scales_and_centres_in_8_bits_are_nearly_those_in_fp16(tmp_path: Path) -> None:
    exact, loaded = random_weights(ODD), Weights.load(stored_in_steps(tmp_path))
    loaded.check(ODD)
    for name in exact.names:
        difference = np.abs(loaded.dense(name) - exact.dense(name)).max()
        assert difference <= 0.01 * np.abs(exact.dense(name)).max(), name


def test_large_centres_of_some_outputs_leave_those_of_the_others_as_they_are() -> None:
    centres = np.tile(np.array([0.002, -0.001, 0.0005], np.float32), (12, 1))
    centres[:8] *= 2000
    _, codes, steps = in_steps(np.full_like(centres, 0.01), centres)
    found = codes[8:] * steps[13].astype(np.float32)
    assert len(steps) == 12 + 2
    assert (np.abs(found - centres[8:]) <= 0.002 / 100).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without(MATRIX + CENTRE), "of blocks.0.out.weight do not fit"),
        (with_array(MATRIX + CENTRE, lambda array: array[:, :1]), "of blocks.0.out.weight do not fit"),
        (with_array(MATRIX + STEPS, lambda array: array[:-1]), "of blocks.0.out.weight do not fit"),
        (with_array(MATRIX + STEPS, lambda array: array.astype(np.float32)), "of blocks.0.out.weight do not fit"),
        (with_array(MATRIX + STEPS, not_finite), "not finite"),
        (with_array(MATRIX + STEPS, lambda array: np.full_like(array, 60_000)), "not finite"),
    ],
)
def test_steps_that_do_not_fit_are_refused_in_one_line(
    change: Callable[[Stored], None], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=says) as refusal:
        Weights.load(stored_in_steps(tmp_path, change)).check(ODD)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"width": 100}, "width gives 100 inputs"),
        ({"hidden": 96}, "hidden gives 96 inputs"),
        ({"heads": 4, "head_width": 16, "key_heads": 3}, "4 heads cannot share 3"),
        ({"head_width": 24}, "head_width is 24"),
        ({"layers": 0}, "layers is 0"),
        ({"norm_epsilon": 0.0}, "norm_epsilon"),
        ({"rope_base": 0.5}, "rope_base"),
    ],
)
def test_sizes_that_no_network_has_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        attrs.evolve(ODD, **changes)
    assert isinstance(ODD, Shape)
