"""What else is in the batch changes no answer, whatever runs the passes."""

import random
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from support.embedded_models import RUNNERS, load_embedded
from support.fill_tasks import run_to_end, started
from support.kernel_passes import KERNELS
from support.sources import source_paths

from engine.fill.interface import FillStrategy
from engine.fill.stream import StreamPass
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Fill

TOKENS = [random.Random(3).randrange(20, 400) for _ in range(150)]
TOLERANCE = {"fp32": 1e-4, "bf16": 0.0, "numpy": 1e-4, **dict.fromkeys(KERNELS, 0.0)}
"""fp32 products of libraries round by their number of rows, some millionths. bf16 attention runs in blocks, and the
kernel computes each row by itself, so nothing may differ."""


@pytest.fixture(scope="module", params=RUNNERS)
def runner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(tiny_model: Path, runner: str) -> EmbeddedModel:
    return load_embedded(tiny_model, runner)


def read(model: EmbeddedModel, rows: int, canvas: int = 0) -> StreamPass:
    """Return a pass of some rows over a context of its own."""
    context = model.new_context()
    model.logits([StreamPass(context, TOKENS[:100], [], [])])
    return StreamPass(context, TOKENS[100 : 100 + rows], [model.mask] * canvas, range(rows + canvas))


def test_the_logits_of_a_pass_do_not_depend_on_the_other_passes(model: EmbeddedModel, runner: str) -> None:
    sizes = [(1, 0), (3, 4), (9, 0), (1, 8), (30, 2)]
    together = model.logits([read(model, *size) for size in sizes])
    for size, logits in zip(sizes, together, strict=True):
        (alone,) = model.logits([read(model, *size)])
        assert np.abs(alone - logits).max() <= TOLERANCE[runner]


def test_a_row_read_with_others_after_it_is_the_row_read_last(model: EmbeddedModel, runner: str) -> None:
    (whole,) = model.logits([read(model, 20)])
    for rows in (1, 2, 5, 17):
        (part,) = model.logits([read(model, rows)])
        assert np.abs(part - whole[:rows]).max() <= TOLERANCE[runner]


@pytest.mark.timeout(400)  # bf16 is emulated where the processor lacks it
def test_draft_and_verify_with_the_shipped_weights_answers_what_left_to_right_answers(runner: str) -> None:
    shipped = load_embedded("embedded", runner)
    draw = random.Random(11)
    holes, most = {"plain": 1, "numpy": 2, "bf16": 2}.get(runner, 3), 24  # the named are slow
    if runner == "bf16" and torch.backends.cpu.get_cpu_capability() == "AVX2":
        holes, most = 1, 10  # a pass takes seconds
    for path in source_paths()[:holes]:
        text = path.read_text()
        cursor = draw.randrange(len(text) // 4, len(text) * 3 // 4)
        fill = Fill(
            id=1,
            prefix=text[:cursor],
            suffix=text[cursor:],
            path=path.stem,
            extent="lines",
            max_tokens=most,
            budget_ms=6e5,
        )
        texts = []
        for rule in ("left-to-right", "verify"):
            filling = run_to_end(shipped, started(shipped, attrs.evolve(fill), FillStrategy(rule)))
            texts.append(filling.answer().text)
        assert texts[0] == texts[1]


def test_masked_keys_that_were_never_written_do_not_spread(model: EmbeddedModel) -> None:
    (logits,) = model.logits([read(model, 3, 2)])
    assert np.isfinite(logits).all()
