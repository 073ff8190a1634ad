"""`midspan models info` says what runs a model here and why, and whether it reads what is below the cursor."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gguf_files import SPECIALS, tiny_network
from support.kernel_passes import skip_without
from support.masked_checkpoints import save_checkpoint
from support.models_command import ModelsCommand

from engine.errors import ModelError
from engine.models.left_to_right.doubt import keep_doubt
from engine.models.load import load

LEFT_TO_RIGHT = "the kernel, on the processor, without torch, as int8: it runs networks like a"
SAVED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "left to right": (f"{LEFT_TO_RIGHT} 'qwen2'", lambda folder: tiny_network("qwen2").save_folder(folder)),
    "without FIM": (
        f"{LEFT_TO_RIGHT} 'llama'",
        lambda folder: tiny_network("llama").save_folder(folder, specials=SPECIALS[:1]),
    ),
    "masked": (
        "the kernel, on the processor, as int8, with torch around it: it runs networks like a 'CoDA'",
        lambda folder: save_checkpoint("coda", folder, hidden_size=64, intermediate_size=128),
    ),
    "LLaDA": (
        "torch, on the processor: the kernel does not run a 'llada'",
        lambda folder: save_checkpoint("llada", folder),
    ),
    "narrow heads": (
        "torch, on the processor: config.json says sizes that the kernel does not run: "
        "head_width is 8; it must be a multiple of 16",
        lambda folder: save_checkpoint("dream", folder),
    ),
    "biases": (
        "nothing here, but a server may: the kernel does not run a network with attention_bias",
        lambda folder: tiny_network("llama", attention_bias=True).save_folder(folder),
    ),
}


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.parametrize("kind", SAVED)
def test_a_folder_loads_as_its_info_says(models: ModelsCommand, tmp_path: Path, kind: str) -> None:
    skip_without("plain")
    expected, save = SAVED[kind]
    folder = tmp_path / "model"
    save(folder)
    fields = json.loads(models.run("info", str(folder), "--json").out)
    assert fields["runs_in"] == expected
    assert fields["reads_suffix"] is {"without FIM": False, "biases": None}.get(kind, True)
    output = " ".join(models.run("info", str(folder)).out.split())
    assert expected in output
    assert ("What is below helps through the memory" in output) is (kind == "without FIM")
    assert ("code above and below the cursor" in output) is bool(fields["reads_suffix"])
    if expected.startswith("nothing"):
        with pytest.raises(ModelError):
            load(str(folder), threads=1)
    else:
        loaded = load(str(folder), threads=1).info
        assert (loaded.device, loaded.dtype.startswith("int8, ")) == ("cpu", expected.startswith("the kernel"))
        assert ("doubt 4, as for Qwen2.5-Coder 0.5B" in output) is (loaded.doubt > 1)


@pytest.mark.parametrize("specials", [SPECIALS, SPECIALS[:1]], ids=["with FIM", "without FIM"])
def test_a_gguf_loads_as_its_info_says(models: ModelsCommand, tmp_path: Path, specials: tuple[str, ...]) -> None:
    skip_without("plain")
    path = tiny_network("qwen3").save_gguf(tmp_path / "tiny.gguf", "Q4_0", specials)
    output = " ".join(models.run("info", str(path)).out.split())
    assert "the kernel, on the processor, without torch, as int4: it runs networks like a 'qwen3'" in output
    assert ("code above and below the cursor" in output) is (specials == SPECIALS)
    assert ("What is below helps through the memory" in output) is (specials != SPECIALS)
    assert "doubt 4, as for Qwen2.5-Coder 0.5B" in output
    assert load(str(path), threads=1).info.dtype.startswith("int4, ")
    keep_doubt(path, 2.0)
    assert "doubt 2, as `midspan train fit` has fitted it" in " ".join(models.run("info", str(path)).out.split())


def test_a_gguf_with_tensors_that_the_kernel_does_not_know_is_refused(models: ModelsCommand, tmp_path: Path) -> None:
    path = tiny_network("llama", mlp_bias=True).save_gguf(tmp_path / "granite.gguf")
    assert f"{path} cannot be run: it has the tensor blk.0.ffn_gate.bias" in models.fails("info", str(path))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smollm2-360m-q8", "the kernel, on the processor, without torch"),
        ("coda-1.7b", "the kernel on a processor, torch on a GPU"),
        ("llada-8b", "torch"),
    ],
)
def test_what_will_run_a_model_is_known_before_its_pull(models: ModelsCommand, name: str, says: str) -> None:
    lines = [line.split(maxsplit=2) for line in models.run("info", name).out.splitlines()]
    assert ["runs", "in", says] in [[word.strip() for word in words] for words in lines]


def test_info_of_a_damaged_folder_is_no_error(models: ModelsCommand, tmp_path: Path) -> None:
    folder = tiny_network("llama").save_folder(tmp_path / "model")
    (folder / "tokenizer.json").write_text("{")
    assert "nothing here: the tokenizer in" in json.loads(models.run("info", str(folder), "--json").out)["runs_in"]
