"""Embedded models in a precision of the test's choice. The product takes bf16 where the processor has it, else fp32."""

from pathlib import Path

import pytest

from engine.library.device_memory import processor_has_bf16
from engine.models.embedded.model import EmbeddedModel
from engine.models.load import load

PRECISIONS = ("fp32", "bf16")


def load_embedded(folder: str | Path, precision: str) -> EmbeddedModel:
    """Load an embedded model. Skips the test for bf16 on a processor without it: the product uses fp32 there."""
    if precision == "bf16" and not processor_has_bf16():
        pytest.skip("this processor has no bf16 instructions; run the tests on one that has to check bf16")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.models.embedded.load.processor_has_bf16", lambda: precision == "bf16")
        model = load(str(folder), threads=1, device="cpu")
    assert isinstance(model, EmbeddedModel)
    return model
