"""Every path of the kernel computes the pass of numpy_pass.py.

These tests need few packages, so that an emulated ARM processor can run them: tests/engine/run_neon.py.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import pytest
from kernel_passes import KERNELS, ODD, SAME_VECTORS, WIDE, random_rows, random_weights, run_holes, skip_without
from numpy.typing import NDArray

from engine.models.embedded.kernel_pass import KernelPass
from engine.models.embedded.numpy_pass import Hole, NumpyPass
from engine.models.embedded.shape import Shape
from engine.models.embedded.slabs import SLAB, SlabContext
from engine.models.embedded.weights import SCALE, Weights, shapes_of

SHIPPED = Path(__file__).parents[4] / "engine" / "weights"
HOLES = [(0, 1, 0), (3, 2, 4), (64, 1, 8), (130, 9, 0), (63, 0, 5), (100, 40, 3), (0, 70, 0)]
"""(context, appended rows, canvas rows): with edges of slabs, and more and fewer rows than are computed at once."""


@pytest.fixture(params=KERNELS)
def path(request: pytest.FixtureRequest) -> str:
    skip_without(request.param)
    return str(request.param)


def shipped() -> tuple[Weights, Shape]:
    config = json.loads((SHIPPED / "config.json").read_text())
    return Weights.load(SHIPPED / "model.safetensors"), Shape(**config["shape"])


@pytest.mark.parametrize("shape", [ODD, WIDE], ids=["odd", "wide"])
def test_every_path_computes_what_numpy_computes(path: str, shape: Shape) -> None:
    weights = random_weights(shape)
    expected, read = run_holes(NumpyPass(weights, shape, np.float16), shape, HOLES)
    found, written = run_holes(KernelPass(weights, shape, path), shape, HOLES)
    np.testing.assert_allclose(found.logits, expected.logits, atol=0.02)
    np.testing.assert_allclose(found.rows, expected.rows, atol=0.02)
    for one, other in zip(read, written, strict=True):
        np.testing.assert_allclose(np.array(one.slabs, np.float32), np.array(other.slabs, np.float32), atol=0.02)


def test_every_path_computes_the_shipped_weights_as_numpy_does(path: str) -> None:
    weights, shape = shipped()
    expected, _ = run_holes(NumpyPass(weights, shape, np.float16), shape, HOLES[1:3])
    found, _ = run_holes(KernelPass(weights, shape, path), shape, HOLES[1:3])
    np.testing.assert_allclose(found.logits, expected.logits, atol=0.05)


def test_a_sum_at_the_edge_of_int32_does_not_wrap(path: str) -> None:
    shape = attrs.evolve(WIDE, width=256, heads=4)
    # Each number of the hidden row is the largest whole number that it is quantized to, and each weight is the lowest.
    values = {"embed.weight": 1, "blocks.0.up.weight": 1, "blocks.0.down.weight": -128}
    stored: dict[str, NDArray[np.generic]] = {}
    for name, size in shapes_of(shape).items():
        stored[name] = np.full(size, values.get(name, 0), np.int8)
        stored[name + SCALE] = np.ones(size[0], np.float32)
    stored["head.weight"] = random_weights(shape).int8("head.weight").values
    stored["blocks.0.down.weight" + SCALE] = np.linspace(0, 2, 256, dtype=np.float32) / (128 * 1024 * 256**2)
    weights = Weights(stored)
    (expected, _), (found, _) = (
        run_holes(host, shape, HOLES[:2]) for host in (NumpyPass(weights, shape), KernelPass(weights, shape, path))
    )
    assert (expected.rows[:, 0] > 0).all()
    assert (expected.rows[:, -1] < 0).all()
    np.testing.assert_allclose(found.rows, expected.rows, atol=1e-3)


@pytest.mark.parametrize("paths", SAME_VECTORS, ids=" ".join)
def test_paths_that_differ_in_their_products_alone_compute_the_same_bits(paths: tuple[str, str]) -> None:
    for path in paths:
        skip_without(path)
    one, other = (run_holes(KernelPass(random_weights(WIDE), WIDE, path), WIDE, HOLES)[0] for path in paths)
    assert np.array_equal(one.logits, other.logits)


def test_a_hole_gets_the_same_numbers_alone_and_with_others(path: str) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path)
    together, _ = run_holes(kernel, ODD, HOLES)
    first = 0
    for number, (read, append, canvas) in enumerate(HOLES):
        context = SlabContext(ODD, np.float16)
        context.reserve(read + append + canvas)
        if read:
            kernel.run(random_rows(ODD, read, 0, number), [Hole(read, read, 0, context.slabs)], np.zeros(0, np.int64))
        count = append + canvas
        hole = Hole(count, append, read, context.slabs)
        alone = kernel.run(random_rows(ODD, count, read, 100 + number), [hole], np.arange(count))
        assert np.array_equal(alone.logits, together.logits[first : first + count])
        first += count


def test_two_threads_may_run_one_network(path: str) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path)
    expected, _ = run_holes(kernel, ODD, HOLES)
    found: list[NDArray[np.float32]] = []
    threads = [threading.Thread(target=lambda: found.append(run_holes(kernel, ODD, HOLES)[0].logits)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(logits, expected.logits) for logits in found)


def a_batch(rows: int = 3) -> tuple[NDArray[np.int64], list[Hole], NDArray[np.int64]]:
    context = SlabContext(ODD, np.float16)
    context.reserve(rows)
    return random_rows(ODD, rows, 0), [Hole(rows, rows, 0, context.slabs)], np.arange(rows)


def with_number(field: int, value: int) -> Callable[[], tuple[NDArray[np.int64], list[Hole], NDArray[np.int64]]]:
    def changed() -> tuple[NDArray[np.int64], list[Hole], NDArray[np.int64]]:
        numbers, holes, wanted = a_batch()
        numbers[field, 1] = value
        return numbers, holes, wanted

    return changed


def with_hole(rows: int, append: int, start: int, slabs: int = 1) -> Callable[[], object]:
    def changed() -> object:
        numbers, holes, wanted = a_batch()
        return numbers, [Hole(rows, append, start, holes[0].slabs * slabs)], wanted

    return changed


def with_other_slab(dtype: type[np.generic]) -> Callable[[], object]:
    def changed() -> object:
        numbers, holes, wanted = a_batch()
        return numbers, [Hole(3, 3, 0, [holes[0].slabs[0].astype(dtype)])], wanted

    return changed


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (with_number(0, 77), "a token is 77; it must be from 0 to 76"),
        (with_number(0, -1), "a token is -1"),
        (with_number(1, ODD.positions), "a position"),
        (with_number(2, 1 << 40), "a hint"),
        (with_number(3, 28), "a strength"),
        (with_number(5, 9), "a gram"),
        (with_hole(2, 2, 0), "fewer rows than the batch"),
        (with_hole(4, 4, 0), "more rows than the batch"),
        (with_hole(3, 4, 0), "wrong numbers of rows"),
        (with_hole(3, 3, SLAB - 2), "too few slabs"),
        (with_hole(3, 3, ODD.positions - 2, 9), "more positions"),
        (with_hole(3, 3, sys.maxsize, 9), "more positions"),
        (with_other_slab(np.float64), "bytes"),
        (lambda: (*a_batch()[:2], np.array([3])), "a wanted row"),
        (lambda: (a_batch()[0][:5], *a_batch()[1:]), "wrong size"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(batch: Callable[[], tuple], says: str) -> None:  # type: ignore[type-arg]
    skip_without("plain")
    kernel = KernelPass(random_weights(ODD), ODD)
    with pytest.raises(ValueError, match=says):
        kernel.run(*batch())
    assert np.isfinite(kernel.run(*a_batch()).logits).all()


def test_an_unknown_path_and_a_shape_that_does_not_fit_are_refused() -> None:
    skip_without("plain")
    with pytest.raises(ValueError, match="no path quantum"):
        KernelPass(random_weights(ODD), ODD, "quantum")
    with pytest.raises(ValueError, match=r"array 0 has 3696 bytes; the sizes say 3744"):
        KernelPass(random_weights(ODD), attrs.evolve(ODD, vocabulary=78))


def test_a_pass_without_wanted_rows_only_reads(path: str) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path)
    numbers, holes, _ = a_batch()
    assert kernel.run(numbers, holes, np.zeros(0, np.int64)).logits.shape == (0, 77)
    assert np.abs(holes[0].slabs[0]).max() > 0
    assert kernel.run(numbers[:, :0], [], np.zeros(0, np.int64)).logits.shape == (0, 77)


def test_a_value_beyond_fp16_is_stored_as_the_largest(path: str) -> None:
    weights, shape = shipped()
    name = "blocks.0.qkv.weight"
    weights._stored[name + ".scale"] = weights.int8(name).scales * np.float32(1e6)
    result, contexts = run_holes(KernelPass(weights, shape, path), shape, [(0, 3, 0)])
    assert np.isfinite(np.array(contexts[0].slabs)).all()
    assert np.isfinite(result.logits).all()
