"""Tiny released checkpoints in every precision: their fills, their memory, and the errors if they do not fit."""

import json
import logging
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import torch
from scheduler_client import answer
from support.masked_checkpoints import save_checkpoint, write_json
from tiny_gemma import save_tiny_gemma

from engine.cli.model_sheet import sheet_of
from engine.client import launcher as lifecycle
from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start, connect_running, stop_running
from engine.client.lock import ERROR, ERROR_MARK
from engine.errors import ModelError
from engine.library.device_memory import DeviceMemory, bytes_needed
from engine.library.precision_names import Precision
from engine.library.weights_header import SIDE, is_image_tensor, is_quantized, read_folder
from engine.models.load import load
from engine.models.quantization.experts import StackedExperts
from engine.models.quantization.quantizer import QuantizedLinear, choose
from engine.models.stock.network import read_tensors, weight_files
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler

HOLE = Fill(id=1, prefix="def area(width, height):\n    total = ", suffix="\n", max_tokens=8, budget_ms=60_000.0)
CPU = torch.device("cpu")
LARGE = 1 << 40


@pytest.fixture(scope="module")
def dream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint("dream", tmp_path_factory.mktemp("released") / "dream").folder


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gemma(tmp_path_factory.mktemp("released") / "gemma")


@pytest.fixture(params=["dream", "gemma"])
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(str(request.param)))


def enlarged(folder: Path, parameters: int, to: Path) -> Path:
    """Return a copy whose weights are one matrix of `parameters` weights, in a sparse file that takes no disk space."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("model*"))
    rows = parameters // 4096 // SIDE * SIDE
    size = 2 * rows * 4096
    layer = {"dtype": "BF16", "shape": [rows, 4096], "data_offsets": [0, size]}
    header = json.dumps({"model.layers.0.mlp.up_proj.weight": layer}).encode()
    (to / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(to / "model.safetensors", 8 + len(header) + size)
    return to


@pytest.mark.parametrize("precision", ["int8", "int4"])
async def test_quantized_models_fill_holes(folder: Path, precision: Precision) -> None:
    family, exact = (load(str(folder), threads=1, device="cpu", precision=each) for each in (precision, "fp32"))
    assert (family.info.dtype, exact.info.dtype) == (precision, "float32")
    assert family.info.parameters == exact.info.parameters
    scheduler = Scheduler(family)
    await scheduler.start()
    filled = await answer(scheduler, HOLE)
    await scheduler.stop()
    (candidate,) = filled.candidates
    assert candidate.tokens
    assert filled.steps >= 1


def test_encoder_and_decoder_of_diffusion_gemma_share_the_matrices_of_their_layers(gemma: Path) -> None:
    network = load(str(gemma), threads=1, device="cpu", precision="int8")._network  # type: ignore[attr-defined]
    stored = {name: tuple(tensor.shape) for name, tensor in read_tensors(weight_files(gemma))}
    shapes = [shape for name, shape in stored.items() if not is_image_tensor(name) and is_quantized(name, shape)]
    held = [
        [module.matrix for module in half.modules() if isinstance(module, QuantizedLinear)]
        + [stack for module in half.modules() if isinstance(module, StackedExperts) for stack in module.stacks]
        for half in (network._decoder, network._encoder)
    ]
    assert [id(matrix) for matrix in held[0]] == [id(matrix) for matrix in held[1]]
    assert sorted(matrix.shape for matrix in held[0]) == sorted(shapes)


def test_auto_takes_bf16_if_it_fits_else_int8_else_int4(tmp_path: Path, dream: Path) -> None:
    large = enlarged(dream, 10_000_000_000, tmp_path / "large")
    precisions: tuple[Precision, ...] = ("bf16", "fp8", "int8", "int4")
    for free, expected in ((24e9, "bf16"), (22e9, "int8"), (11e9, "int4")):
        choice = choose(weight_files(large), "auto", CPU, DeviceMemory("card", int(30e9), int(free), precisions))
        assert (choice.precision, choice.dtype) == (expected, torch.bfloat16)


def test_a_processor_without_bf16_computes_in_fp32(tmp_path: Path, dream: Path) -> None:
    large = enlarged(dream, 10_000_000_000, tmp_path / "large")
    precisions: tuple[Precision, ...] = ("fp32", "bf16", "int8", "int4")
    for free, expected in ((50e9, "fp32"), (24e9, "bf16"), (22e9, "int8")):
        choice = choose(weight_files(large), "auto", CPU, DeviceMemory("memory", LARGE, int(free), precisions, 4))
        assert choice.precision == expected
        assert choice.dtype == (torch.bfloat16 if expected == "bf16" else torch.float32)


def test_a_lower_precision_for_lack_of_memory_is_logged(
    tmp_path: Path, dream: Path, caplog: pytest.LogCaptureFixture
) -> None:
    large = enlarged(dream, 10_000_000_000, tmp_path / "large")
    with caplog.at_level(logging.WARNING):
        choose(weight_files(large), "auto", CPU, DeviceMemory("card", LARGE, int(22e9), ("bf16", "int8", "int4")))
    assert "is held in int8: bf16 needs 23.0 GB, and card has 22.0 GB free" in caplog.text


@pytest.mark.parametrize(
    ("precision", "free", "says"),
    [
        ("bf16", 15e9, "needs 23.0 GB in bf16, and card has 15.0 GB free; use --precision int8, or the setting"),
        ("int8", 8e9, "needs 12.0 GB in int8, and card has 8.0 GB free; use --precision int4, or the setting"),
        ("int4", 5e9, "needs 7.2 GB in int4, and card has 5.0 GB free; no precision fits"),
        ("auto", 5e9, "needs 7.2 GB in int4, and card has 5.0 GB free; no precision fits: close other programs"),
        ("fp8", 50e9, "fp8 needs a GPU of compute capability 8.9 or newer; use int8"),
    ],
)
def test_too_little_memory_gives_an_error_that_names_what_would_fit(
    tmp_path: Path, dream: Path, precision: str, free: float, says: str
) -> None:
    large = enlarged(dream, 10_000_000_000, tmp_path / "large")
    with pytest.raises(ModelError) as caught:
        choose(weight_files(large), precision, CPU, DeviceMemory("card", LARGE, int(free), ("bf16", "int8", "int4")))  # type: ignore[arg-type]
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_models_info_estimates_memory_as_loading_does(folder: Path) -> None:
    header = read_folder(folder)
    assert 0 < header.plain < header.loaded <= header.parameters
    sheet = sheet_of(str(folder))
    for precision in ("bf16", "int8", "int4"):
        assert sheet.bytes_needed(precision) == bytes_needed(header.loaded, precision, header.plain)


def test_the_image_part_is_not_counted(gemma: Path) -> None:
    header = read_folder(gemma)
    assert header.loaded < header.parameters
    assert header.loaded == load(str(gemma), threads=1, device="cpu").info.parameters + 8  # a scale of each layer


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"quant_method": "gptq", "bits": 4}, "quantized with gptq"),
        ({"quant_method": "awq"}, "quantized with awq"),
        ({"load_in_4bit": True}, "quantized with bitsandbytes (load_in_4bit)"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "quantized with fp8"),
        ({"bits": 4}, "quantized with a method that config.json does not name"),
    ],
)
def test_a_checkpoint_released_in_few_bits_is_refused_with_the_name_of_its_method(
    folder: Path, tmp_path: Path, found: dict[str, object], says: str
) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "model"))
    config = json.loads((copy / "config.json").read_text())
    write_json(copy / "config.json", {**config, "quantization_config": found})
    with pytest.raises(ModelError) as caught:
        load(str(copy), threads=1, device="cpu")
    assert says in str(caught.value)
    assert "choose a precision: --precision int8" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_embedded_model_ignores_a_known_precision_and_refuses_an_unknown_one(tiny_model: Path) -> None:
    computed_in = [
        load(str(tiny_model), threads=1, device="cpu", precision=each).info.dtype for each in ("auto", "int4")
    ]
    assert computed_in[0] == computed_in[1]
    with pytest.raises(ModelError, match="unknown precision 'int5'"):
        load(str(tiny_model), threads=1, device="cpu", precision="int5")


@pytest.fixture
def options(dream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineOptions:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setattr(lifecycle, "HEARTBEAT_TIMEOUT_S", 200.0)  # on a busy machine transformers takes long to import
    return EngineOptions(model=str(dream), threads=1, precision="int4")


@pytest.mark.timeout(300)
async def test_an_engine_in_int4_serves_no_client_that_asks_for_another_precision(options: EngineOptions) -> None:
    client = await connect_or_start(options, "test")
    try:
        assert (await client.fill(HOLE)).candidates[0].tokens
        assert (await client.status()).model.dtype == "int4"
        assert "in int4, at" in options.paths.log.read_text()
        for other in ("auto", "int8"):
            assert await connect_running(attrs.evolve(options, precision=other), "test") is None
    finally:
        await client.close()
        await stop_running(options, "test")


def test_engines_of_two_precisions_have_different_runtime_paths(dream: Path) -> None:
    assert runtime_paths_of(str(dream)) == runtime_paths_of(str(dream), "auto") != runtime_paths_of(str(dream), "int8")


def last_words(model: Path, precision: str) -> str:
    """Start an engine that cannot run, and return the one line that it ends with."""
    command = [sys.executable, "-m", "engine", "--model", str(model), "--precision", precision, "--device", "cpu"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == ERROR
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith(ERROR_MARK)]
    return line


@pytest.mark.usefixtures("options")
@pytest.mark.slow
def test_an_engine_that_cannot_run_ends_with_one_line(gemma: Path, tmp_path: Path) -> None:
    assert last_words(gemma, "int5").endswith("unknown precision 'int5'; use one of auto, bf16, int8, int4, fp8, fp32")
    large = enlarged(gemma, 1 << 41, tmp_path / "large")
    said = last_words(large, "auto")
    assert re.search(r"needs \d+\.\d GB in int4, and memory has \d+\.\d GB free; no precision fits", said)
