"""Embedded models by what runs them: torch in a precision of the test's choice, NumPy, or a path of the kernel."""

import json
from pathlib import Path

import pytest

from engine.library.device_memory import processor_has_bf16
from engine.library.resolve import folder_of
from engine.models.embedded.load import load as load_folder
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import KernelPass
from engine.models.embedded.shape import Shape
from engine.models.embedded.slabs import HostPass
from engine.models.embedded.torch_runner import TorchRunner
from engine.models.embedded.weights import Weights
from engine.models.load import load
from support.kernel_passes import KERNELS, skip_without

PRECISIONS = ("fp32", "bf16")
RUNNERS = (*PRECISIONS, "numpy", *KERNELS)


def load_embedded(folder: str | Path, runner: str = "auto") -> EmbeddedModel:
    """Load an embedded model with one of RUNNERS, or "auto" for the product's choice. Skips the test where this
    processor or build does not have it."""
    if runner == "bf16" and not processor_has_bf16():
        pytest.skip("this processor has no bf16 instructions; run the tests on one that has to check bf16")
    if runner in ("auto", *PRECISIONS):
        model = load(str(folder), threads=1, device="cpu", precision=runner)
        assert isinstance(model, EmbeddedModel)
        return model
    skip_without(runner)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "engine.models.embedded.load.host_pass", lambda weights, shape, threads: host(runner, weights, shape)
        )
        found = folder_of(str(folder))
        return load_folder(found, json.loads((found / "config.json").read_text()), 1, "cpu")


def host(runner: str, weights: Weights, shape: Shape) -> HostPass:
    """Return a pass without torch: "numpy" or one of KERNELS."""
    return NumpyPass(weights, shape) if runner == "numpy" else KernelPass(weights, shape, runner)


def torch_runner_of(model: EmbeddedModel) -> TorchRunner:
    """Return what runs a model that was loaded in fp32 or bf16."""
    assert isinstance(model.runner, TorchRunner)
    return model.runner
