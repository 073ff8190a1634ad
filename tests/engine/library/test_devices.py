"""What is said of GPUs on machines without one: estimates from a device's figures, a driver without a GPU for torch."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from engine.cli import doctor
from engine.cli.ladder import measured_devices, measured_pass
from engine.library.catalog import DEFAULT_BUDGET_MS, answer_on, answers_on, catalog
from engine.library.device_memory import DeviceMemory, _gpu_speeds, machine_memory, with_measured_speed
from engine.library.ladder import rungs_here
from engine.models.kind import device_of

GB = 1_000_000_000


def gpu(name: str, gigabytes: int, capability: tuple[int, int], units: int, clocks: tuple[int, int], width: int) -> Any:
    """Return the memory of a GPU as torch's properties describe it, 95 % of it free. `clocks` are in kHz."""
    properties = SimpleNamespace(
        major=capability[0],
        minor=capability[1],
        multi_processor_count=units,
        clock_rate=clocks[0],
        memory_clock_rate=clocks[1],
        memory_bus_width=width,
    )
    fp8: Any = ("fp8",) if capability >= (8, 9) else ()
    total = gigabytes * GB
    return DeviceMemory(
        name, total, total * 95 // 100, ("bf16", *fp8, "int8", "int4"), 2, *_gpu_speeds(properties), True
    )


RTX_3090 = gpu("RTX 3090", 24, (8, 6), 82, (1_695_000, 9_751_000), 384)
A100 = gpu("A100 80GB", 80, (8, 0), 108, (1_410_000, 1_593_000), 5120)
H100 = gpu("H100 80GB", 80, (9, 0), 132, (1_830_000, 2_619_000), 5120)


def test_a_gpus_properties_give_the_speeds_that_its_maker_states() -> None:
    for device, bytes_per_s, operations_per_s in (
        (RTX_3090, 936e9, 71e12),
        (A100, 2039e9, 312e12),
        (H100, 3350e9, 989e12),
    ):
        assert device.bytes_per_s == pytest.approx(bytes_per_s, rel=0.01)
        assert device.operations_per_s == pytest.approx(operations_per_s, rel=0.01)


def test_a_precision_that_answers_in_time_goes_before_a_better_one_that_does_not() -> None:
    seven = catalog()["qwen2.5-coder-7b"]
    on_small = answer_on(RTX_3090, seven)
    assert on_small is not None
    assert (on_small.precision, on_small.in_time) == ("bf16", True)
    slow = answer_on(DeviceMemory("slow", 24 * GB, 23 * GB, ("bf16", "int8", "int4"), 2, 400e9, 60e12, True), seven)
    assert slow is not None
    assert (slow.precision, slow.in_time) == ("int8", True)


def test_diffusion_gemma_fits_24_gb_in_int4_only_and_80_gb_in_bf16() -> None:
    model = catalog()["diffusion-gemma-26b"]
    small, large = answer_on(RTX_3090, model), answer_on(H100, model)
    assert small is not None
    assert large is not None
    assert small.precision == "int4"
    assert large.precision == "bf16"
    assert large.in_time
    assert answer_on(DeviceMemory("8 GB", 8 * GB, 8 * GB, ("bf16", "int8", "int4"), 2, 4e11, 5e13, True), model) is None


def test_a_processor_is_measured_and_is_too_slow_for_the_largest_model() -> None:
    machine = machine_memory()
    assert machine is not None
    measured = with_measured_speed(machine)
    assert measured.bytes_per_s > 1e8
    assert measured.operations_per_s > 1e8
    roomy = DeviceMemory("memory", 200 * GB, 200 * GB, ("bf16", "int8", "int4"), 2, 20e9, 1e11)
    answer = answer_on(roomy, catalog()["diffusion-gemma-26b"])
    assert answer is not None
    assert answer.milliseconds is not None
    assert answer.milliseconds > 5 * DEFAULT_BUDGET_MS
    assert not answer.in_time


def test_what_the_kernel_runs_is_faster_on_a_processor() -> None:
    two_cores = DeviceMemory("memory", 20 * GB, 20 * GB, ("bf16", "int8", "int4"), 2, 40e9, 3e11)
    in_kernel = answer_on(two_cores, catalog()["qwen-coder-0.5b-q4"])
    assert in_kernel is not None
    assert in_kernel.in_time
    assert in_kernel.precision == "int8"
    in_torch = answer_on(two_cores, attrs.evolve(catalog()["qwen-coder-0.5b-q4"], family="llada", file=""))
    assert in_torch is not None
    assert not in_torch.in_time
    assert in_torch.precision == "bf16"


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU's driver, as far as anyone looks: torch here is built without CUDA."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("driver")
def test_the_embedded_model_stays_in_the_kernel_beside_a_gpu() -> None:
    script = (
        "import sys; from engine.models.load import load; load('embedded', threads=1); print('torch' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


@pytest.mark.usefixtures("driver")
def test_a_driver_whose_gpu_torch_does_not_see_is_said_in_the_log_and_by_doctor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("torch sees a GPU here")
    with caplog.at_level(logging.WARNING):
        assert device_of("auto") == "cpu"
    assert "torch sees no GPU" not in caplog.text
    assert "sees no GPU, so larger models run on the processor; install the build" in caplog.text
    check = doctor.torch()
    assert check.verdict == "warn"
    assert "sees no GPU" in check.advice


def test_doctor_says_in_one_short_line_how_many_models_answer_in_time() -> None:
    check = doctor.larger_models()
    assert check.verdict == "ok"
    assert f" of {len(catalog()) - 1} answer in time" in check.found
    assert "`midspan models list` has each" in check.found
    assert f"{DEFAULT_BUDGET_MS} ms" in check.found
    assert len(check.found) < 300


def test_the_list_of_models_and_the_offer_of_a_larger_one_say_the_same_time() -> None:
    memory, measured = machine_memory(), measured_pass()
    assert memory is not None
    assert measured is not None
    (device,) = measured_devices([attrs.evolve(memory, total=64 * GB, free=64 * GB)])
    for rung in rungs_here([device], measured):
        answer = answer_on(device, rung.model)
        assert answer is not None
        assert answer.milliseconds == pytest.approx(rung.milliseconds)


def test_the_largest_model_that_is_in_time_and_the_fastest_of_the_others_are_named() -> None:
    said = answers_on(RTX_3090, catalog().values())
    answers = [(model, answer_on(RTX_3090, model)) for model in catalog().values() if model.hub]
    in_time = [model for model, answer in answers if answer is not None and answer.in_time]
    late = [model for model, answer in answers if answer is not None and not answer.in_time]
    assert said.startswith(f"on {RTX_3090.name} {len(in_time)} of {len(answers)} answer in time, the largest ")
    assert max(in_time, key=lambda model: model.parameters).name in said
    assert (f"{len(late)} are slower" in said) == bool(late)
    assert len(said) < 200


def test_the_default_budget_is_that_of_the_setting() -> None:
    from lsp_server.settings import Settings

    assert Settings().budget_ms == DEFAULT_BUDGET_MS
