"""An adapter acts on canvas rows alone: in the kernel, in NumPy and in torch."""

from collections.abc import Callable

import attrs
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.kernel_passes import (
    KERNELS,
    ODD,
    QWEN2,
    SHAPES,
    RoundedPass,
    random_adapter,
    random_rows,
    random_weights,
    run_holes,
    skip_without,
)

from engine.fill.stream import StreamPass
from engine.models.embedded.network import CanvasAdapter, Network
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import HostRunner, KernelPass
from engine.models.embedded.shape import Floats, Shape
from engine.models.embedded.slabs import Hole, HostPass, SlabContext
from engine.models.embedded.torch_runner import TorchRunner

HOLES = [(0, 3, 4), (70, 1, 0), (5, 2, 8), (130, 0, 3), (20, 9, 1)]
"""Context, stream rows and canvas rows of each."""


@pytest.fixture(params=["numpy", *KERNELS])
def adapted(request: pytest.FixtureRequest) -> Callable[[Shape], tuple[HostPass, HostPass]]:
    """Return a function that makes a pass without an adapter and one with it."""
    skip_without(request.param)

    def make(shape: Shape) -> tuple[HostPass, HostPass]:
        weights = random_weights(shape)
        made = [
            RoundedPass(weights, shape, np.float16)
            if request.param == "numpy"
            else KernelPass(weights, shape, request.param, threads=2)
            for _ in range(2)
        ]
        made[1].adapt(random_adapter(shape))
        return made[0], made[1]

    return make


def on_canvas() -> NDArray[np.bool_]:
    return np.concatenate([np.arange(append + canvas) >= append for _, append, canvas in HOLES])


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_stream_rows_are_the_same_bits_with_and_without_it(
    adapted: Callable[[Shape], tuple[HostPass, HostPass]], shape: Shape
) -> None:
    without, with_it = (run_holes(each, shape, HOLES)[0] for each in adapted(shape))
    assert np.array_equal(without[~on_canvas()], with_it[~on_canvas()])
    assert (np.abs(without - with_it)[on_canvas()].max(1) > 0.1).all()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_the_kernel_computes_what_numpy_computes(
    adapted: Callable[[Shape], tuple[HostPass, HostPass]], shape: Shape
) -> None:
    expected_pass = RoundedPass(random_weights(shape), shape, np.float16)
    expected_pass.adapt(random_adapter(shape))
    found, expected = (run_holes(each, shape, HOLES)[0] for each in (adapted(shape)[1], expected_pass))
    # A number in the middle between two levels may go to the other one, in each product.
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


def test_a_canvas_row_is_the_same_bits_alone_and_in_a_batch(
    adapted: Callable[[Shape], tuple[HostPass, HostPass]],
) -> None:
    host = adapted(ODD)[1]
    if host.name == "numpy":
        pytest.skip("NumPy's products round by their number of rows")
    together, _ = run_holes(host, ODD, HOLES)
    alone, _ = run_holes(host, ODD, HOLES[:1])
    assert np.array_equal(together[: len(alone)], alone)


def test_the_mask_is_the_token_after_the_last_and_no_token_without_an_adapter(
    adapted: Callable[[Shape], tuple[HostPass, HostPass]],
) -> None:
    without, with_it = adapted(ODD)
    rows = random_rows(ODD, 3, 0)
    rows[0, 2] = ODD.vocabulary
    context = SlabContext(ODD, with_it.dtype)
    context.reserve(3)
    hole, wanted = [Hole(3, 1, 0, context.slabs)], np.arange(3)
    masked = with_it.run(rows, hole, wanted).copy()
    rows[0, 2] = 0
    assert not np.array_equal(masked[2], with_it.run(rows, hole, wanted)[2])
    rows[0, 2] = ODD.vocabulary
    with pytest.raises((ValueError, IndexError), match=r"a token is 77; it must be from 0 to 76|out of bounds"):
        without.run(rows, hole, wanted)


def test_the_kernel_takes_one_adapter_of_its_own_sizes() -> None:
    skip_without("plain")
    kernel = KernelPass(random_weights(ODD), ODD)
    with pytest.raises(ValueError, match="other arrays"):
        kernel.adapt(random_adapter(QWEN2))
    with pytest.raises(ValueError, match="bytes; the sizes say"):
        kernel.adapt(random_adapter(attrs.evolve(ODD, hidden=256)))
    kernel.adapt(random_adapter(ODD))
    with pytest.raises(ValueError, match="has an adapter"):
        kernel.adapt(random_adapter(ODD))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_torch_computes_what_numpy_computes(shape: Shape) -> None:
    weights, adapter = random_weights(shape), random_adapter(shape)
    network = Network(shape)
    network.load_state_dict({name: torch.from_numpy(weights.dense(name)) for name in weights.names})
    in_torch, plain = (TorchRunner(network, torch.device("cpu"), [], []) for _ in range(2))
    host = NumpyPass(weights, shape)
    host.adapt(adapter)
    in_numpy = HostRunner(host, weights, shape, [], [])

    def logits(runner: TorchRunner | HostRunner, mask: int) -> Floats:
        context = runner.new_context()
        runner.logits([StreamPass(context, list(range(20)), [], [19])])
        context.tokens += range(20)
        return runner.logits([StreamPass(context, [5, 6], [mask] * 4, range(6))])

    before = logits(plain, 0)
    in_torch.adapt(adapter)
    found, expected = (logits(runner, shape.vocabulary) for runner in (in_torch, in_numpy))
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert np.array_equal(before[:2], found[:2])


def test_what_torch_has_is_rounded_to_what_it_was_given() -> None:
    module = CanvasAdapter(ODD, 8)
    module.take(random_adapter(ODD, 8))
    found, expected = module.rounded(4), random_adapter(ODD, 8)
    assert (found.rank, found.canvas_tokens) == (8, 4)
    np.testing.assert_array_equal(found.mask, expected.mask)
    for one, other in zip(found.layers, expected.layers, strict=True):
        for name, low in one.items():
            np.testing.assert_array_equal(low.a.values, other[name].a.values)
            np.testing.assert_allclose(low.b.dense(), other[name].b.dense())
