"""Every path of the kernel computes the pass of numpy_pass.py.

These tests need few packages, so that an emulated ARM processor can run them: tests/engine/run_neon.py.
"""

import sys
import threading
from collections.abc import Callable

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray
from support.kernel_passes import (
    KERNELS,
    ODD,
    SAME_VECTORS,
    SHAPES,
    STORAGES,
    RoundedPass,
    Storage,
    random_rows,
    random_weights,
    run_holes,
    skip_without,
)

from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import KernelPass
from engine.models.embedded.shape import GROUP, Floats, Shape
from engine.models.embedded.slabs import SLAB, Hole, SlabContext
from engine.models.embedded.weights import HALF, OFFSET, SCALE, Weights, shapes_of

HOLES = [(0, 1, 0), (3, 2, 4), (64, 1, 8), (130, 9, 0), (63, 0, 5), (100, 40, 3), (0, 70, 0)]
"""(context, appended rows, canvas rows): with edges of slabs, and more and fewer rows than are computed at once."""


@pytest.fixture(params=KERNELS)
def path(request: pytest.FixtureRequest) -> str:
    skip_without(request.param)
    return str(request.param)


def difference(found: Floats, expected: Floats) -> NDArray[np.float32]:
    """Return the largest difference of each row's logits, as a part of the largest logit."""
    each: NDArray[np.float32] = np.abs(found - expected).max(1) / np.abs(expected).max()
    return each


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_path_computes_what_numpy_computes(path: str, shape: Shape, storage: Storage) -> None:
    weights = random_weights(shape, storage)
    weights.check(shape)
    expected, read = run_holes(NumpyPass(weights, shape, np.float16), shape, HOLES)
    found, written = run_holes(KernelPass(weights, shape, path), shape, HOLES)
    # The rows of products are rounded to 255 levels, and attention multiplies the difference.
    assert np.median(difference(found, expected)) < 0.05
    assert difference(found, expected).max() < 0.15
    for one, other in zip(read, written, strict=True):
        first, also = (np.array(context.slabs, np.float32)[:, 0] for context in (one, other))
        np.testing.assert_allclose(first, also, atol=0.08)  # of the first layer, before differences are multiplied


@pytest.mark.parametrize("storage", STORAGES)
def test_every_path_computes_what_numpy_computes_with_rounded_rows(path: str, storage: Storage) -> None:
    shape, holes = attrs.evolve(ODD, layers=1), HOLES[:5]
    weights = random_weights(shape, storage)
    expected, _ = run_holes(RoundedPass(weights, shape, np.float16), shape, holes)
    found, _ = run_holes(KernelPass(weights, shape, path), shape, holes)
    # A number in the middle between two levels may go to the other one: such rows differ by a level's share.
    assert np.median(difference(found, expected)) < 1e-5
    assert difference(found, expected).max() < 0.03


def test_the_largest_sums_of_a_group_are_exact(path: str) -> None:
    # Each number of a row is the largest that it is quantized to, and so is each weight.
    shape = attrs.evolve(ODD, heads=2, head_width=64, key_heads=2)
    for value, dtype in ((0, np.uint8), (255, np.uint8), (-127, np.int8), (127, np.int8)):
        stored: dict[str, NDArray[np.generic]] = {}
        for name, size in shapes_of(shape).items():
            if len(size) == 1:
                stored[name] = np.ones(size, np.float32)
                continue
            columns, group = (size[1] // 2, HALF) if dtype == np.uint8 else (size[1], GROUP)
            stored[name] = np.full((size[0], columns), value, dtype)
            stored[name + SCALE] = np.full((size[0], size[1] // group), 1e-3, np.float16)
            if dtype == np.uint8:
                stored[name + OFFSET] = np.full((size[0], size[1] // group), -8e-3, np.float16)
        weights = Weights(stored)
        weights.check(shape)
        expected, _ = run_holes(NumpyPass(weights, shape), shape, HOLES[:3])
        found, _ = run_holes(KernelPass(weights, shape, path), shape, HOLES[:3])
        np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("paths", SAME_VECTORS, ids=" ".join)
def test_paths_that_differ_in_their_products_alone_compute_the_same_bits(paths: tuple[str, str]) -> None:
    for path in paths:
        skip_without(path)
    one, other = (run_holes(KernelPass(random_weights(ODD), ODD, path), ODD, HOLES)[0] for path in paths)
    assert np.array_equal(one, other)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_hole_gets_the_same_numbers_alone_and_with_others(path: str, shape: Shape) -> None:
    kernel = KernelPass(random_weights(shape), shape, path)
    together, _ = run_holes(kernel, shape, HOLES)
    first = 0
    for number, (read, append, canvas) in enumerate(HOLES):
        context = SlabContext(shape, np.float16)
        context.reserve(read + append + canvas)
        if read:
            kernel.run(random_rows(shape, read, 0, number), [Hole(read, read, 0, context.slabs)], np.zeros(0, np.int64))
        count = append + canvas
        hole = Hole(count, append, read, context.slabs)
        alone = kernel.run(random_rows(shape, count, read, 100 + number), [hole], np.arange(count))
        assert np.array_equal(alone, together[first : first + count])
        first += count


def test_logits_lie_in_memory_of_their_own_until_it_is_given_back(path: str) -> None:
    kernel, rows = KernelPass(random_weights(ODD), ODD, path), random_rows(ODD, 3, 0)

    def run(wanted: int) -> Floats:
        context = SlabContext(ODD, np.float16)
        context.reserve(3)
        return kernel.run(rows, [Hole(3, 3, 0, context.slabs)], np.arange(wanted))

    kept, given = run(3), run(3)
    assert not np.shares_memory(kept, given)
    kernel.reuse(given)
    fewer, other = run(2), run(3)
    assert np.shares_memory(fewer, given)
    assert not np.shares_memory(other, fewer)
    assert np.array_equal(kept, other)
    assert np.array_equal(kept[:2], fewer)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_context_read_token_by_token_is_the_one_read_at_once(path: str, storage: Storage) -> None:
    kernel, rows = KernelPass(random_weights(ODD, storage), ODD, path), random_rows(ODD, 201, 0)
    whole, single = SlabContext(ODD, np.float16), SlabContext(ODD, np.float16)
    for context in (whole, single):
        context.reserve(201)
    at_once = kernel.run(rows, [Hole(201, 201, 0, whole.slabs)], np.arange(201))
    for at in range(201):
        row = kernel.run(rows[:, at : at + 1].copy(), [Hole(1, 1, at, single.slabs)], np.arange(1))
        assert np.array_equal(row[0], at_once[at])
    assert np.array_equal(whole.slabs, single.slabs)


@pytest.mark.parametrize("threads", [2, 3])
def test_more_threads_compute_the_same_bits(path: str, threads: int) -> None:
    expected, read = run_holes(KernelPass(random_weights(ODD), ODD, path), ODD, HOLES)
    kernel = KernelPass(random_weights(ODD), ODD, path, threads)
    for _ in range(20):
        found, written = run_holes(kernel, ODD, HOLES)
        assert np.array_equal(found, expected)
        assert all(np.array_equal(one.slabs, other.slabs) for one, other in zip(read, written, strict=True))


@pytest.mark.parametrize("helpers", [1, 3])
def test_several_callers_may_run_one_network(path: str, helpers: int) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path, helpers)
    expected, _ = run_holes(kernel, ODD, HOLES)
    found: list[NDArray[np.float32]] = []
    threads = [threading.Thread(target=lambda: found.append(run_holes(kernel, ODD, HOLES)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(logits, expected) for logits in found)


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
        (with_number(0, 1 << 40), "a token"),
        (with_hole(2, 2, 0), "fewer rows than the batch"),
        (with_hole(4, 4, 0), "more rows than the batch"),
        (with_hole(3, 4, 0), "wrong numbers of rows"),
        (with_hole(3, 3, SLAB - 2), "too few slabs"),
        (with_hole(3, 3, ODD.positions - 2, 9), "more positions"),
        (with_hole(3, 3, sys.maxsize, 9), "more positions"),
        (with_other_slab(np.float64), "bytes"),
        (lambda: (*a_batch()[:2], np.array([3])), "a wanted row"),
        (lambda: (a_batch()[0][:1], *a_batch()[1:]), "wrong size"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(batch: Callable[[], tuple], says: str) -> None:  # type: ignore[type-arg]
    skip_without("plain")
    kernel = KernelPass(random_weights(ODD), ODD)
    with pytest.raises(ValueError, match=says):
        kernel.run(*batch())
    assert np.isfinite(kernel.run(*a_batch())).all()


def test_an_unknown_path_and_a_shape_that_does_not_fit_are_refused() -> None:
    skip_without("plain")
    with pytest.raises(ValueError, match="no path quantum"):
        KernelPass(random_weights(ODD), ODD, "quantum")
    with pytest.raises(ValueError, match=r"array 5 has 9856 bytes; the sizes say 9984"):
        KernelPass(random_weights(ODD), attrs.evolve(ODD, vocabulary=78))


def test_a_pass_without_wanted_rows_only_reads(path: str) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path)
    numbers, holes, _ = a_batch()
    assert kernel.run(numbers, holes, np.zeros(0, np.int64)).shape == (0, 77)
    assert np.abs(holes[0].slabs[0]).max() > 0
    assert kernel.run(numbers[:, :0], [], np.zeros(0, np.int64)).shape == (0, 77)


def test_a_value_beyond_fp16_is_stored_as_the_largest(path: str) -> None:
    weights = random_weights(ODD)
    name = "blocks.0.norm.weight"
    large = Weights({**weights._stored, name: weights.dense(name) * np.float32(1e6)})
    result, contexts = run_holes(KernelPass(large, ODD, path), ODD, [(0, 3, 0)])
    assert np.isfinite(np.array(contexts[0].slabs)).all()
    assert np.isfinite(result).all()
