"""Runs a kernel that was built with sanitizers over all its paths: `python sanitized_kernel.py KERNEL`.

A process of its own, because the sanitizers must be loaded before Python. See test_kernel_sanitized.py and run_neon.py.
"""

import mmap
import sys

import numpy as np
import pytest
from support.given_kernel import use_kernel

HOLES = [(0, 1, 0), (3, 2, 4), (64, 1, 8), (130, 9, 0), (63, 0, 5), (100, 40, 3), (0, 70, 0)]


def main() -> None:
    module = use_kernel(sys.argv[1])
    from support.file_blocks import LARGE, SIZES, BlockWeights
    from support.kernel_passes import EQUAL, ODD, STORAGES, random_adapter, random_rows, random_weights, run_holes

    from engine.models.embedded import runner
    from engine.models.embedded.shape import Shape
    from engine.models.embedded.slabs import Hole, SlabContext
    from engine.models.embedded.weights import Weights, shapes_of

    def matrices_of(shape: Shape) -> list[str]:
        return [name for name, size in shapes_of(shape).items() if len(size) == 2]

    class Borrowed(Weights):
        """Weights that a kernel packed, each matrix in pages of its own."""

        def __init__(self, weights: Weights, packed: runner.KernelPass, names: list[str], room: int) -> None:
            super().__init__({name: weights.dense(name) for name in weights.names if name not in names})
            self._pages = {}
            for name, pieces in zip(names, packed.packed(), strict=True):
                data = b"".join(pieces)
                self._pages[name] = memoryview(mmap.mmap(-1, len(data) + room))[: len(data) + room]
                self._pages[name][: len(data)] = data

        def taken(self, name: str) -> memoryview:
            return self._pages[name].toreadonly()

    assert vars(runner)["_kernel"] is module
    for kind in SIZES:
        for bits in (4, 8):
            packed = runner.KernelPass(BlockWeights((kind, "F16"), bits), LARGE, threads=2)
            assert np.isfinite(run_holes(packed, LARGE, HOLES[:2])[0]).all()
    for path in runner.kernel_paths():
        for shape in (ODD, EQUAL):
            for storage in STORAGES:
                kernel = runner.KernelPass(random_weights(shape, storage), shape, path, threads=2)
                result, _ = run_holes(kernel, shape, HOLES)
                assert np.isfinite(result).all()
                weights, names = random_weights(shape, storage), matrices_of(shape)
                borrowing = runner.KernelPass(Borrowed(weights, kernel, names, 0), shape, path, threads=2)
                assert np.array_equal(run_holes(borrowing, shape, HOLES)[0], result)
                with pytest.raises(ValueError, match="is no packed matrix"):
                    runner.KernelPass(Borrowed(weights, kernel, names, 64), shape, path)
                kernel.adapt(random_adapter(shape))
                assert np.isfinite(run_holes(kernel, shape, HOLES)[0]).all()
            full = SlabContext(shape, np.float16)
            full.reserve(shape.positions)
            rows = random_rows(shape, shape.positions, 0)
            kernel.run(rows, [Hole(shape.positions, 9, 0, full.slabs)], np.array([0, shape.positions - 1]))
            try:
                kernel.run(rows + 1, [Hole(shape.positions, 9, 0, full.slabs)], np.array([0]))
            except ValueError:
                print(path, "ran and refused")


if __name__ == "__main__":
    main()
