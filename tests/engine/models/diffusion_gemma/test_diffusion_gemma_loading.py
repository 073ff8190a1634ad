"""Loading DiffusionGemma from the released file layout, and the errors for damaged files."""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny_gemma import END, TURN_END, VOCABULARY, save_tiny_gemma, tokenizer_of_sources

from engine.errors import ModelError
from engine.library.device_memory import DeviceMemory
from engine.models.cuda_graphs.slots import LayerShape
from engine.models.diffusion_gemma import loading
from engine.models.diffusion_gemma.filling import read_settings
from engine.models.diffusion_gemma.layers import RollingContext
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from engine.models.load import load
from engine.protocol.messages import Fill

INDEX = "model.safetensors.index.json"
SHARD = "model-00002-of-00003.safetensors"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gemma(tmp_path_factory.mktemp("gemma"))


@pytest.fixture
def folder(released: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(released, tmp_path / "model"))


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def text_config(folder: Path, **values: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["text_config"] |= values
    (folder / "config.json").write_text(json.dumps(config))


def without_a_shard(folder: Path) -> None:
    """Remove a shard from the index."""
    index = json.loads((folder / INDEX).read_text())
    kept = {name: shard for name, shard in index["weight_map"].items() if shard != SHARD}
    (folder / INDEX).write_text(json.dumps({"weight_map": kept}))


def enormous(folder: Path) -> None:
    """Make the weights larger than any machine's memory, in a sparse file that takes no disk space."""
    size = 4 << 40
    layer = {"dtype": "BF16", "shape": [size // 4096, 2048], "data_offsets": [0, size]}
    header = json.dumps({"model.decoder.layers.0.mlp.gate_proj.weight": layer}).encode()
    (folder / SHARD).write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(folder / SHARD, 8 + len(header) + size)


def larger_tokenizer(folder: Path) -> None:
    tokenizer = tokenizer_of_sources()
    tokenizer.add_tokens([f"word{number}" for number in range(40)])
    tokenizer.save(str(folder / "tokenizer.json"))


def remove_weights(folder: Path) -> None:
    for path in folder.glob("model*"):
        path.unlink()


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / SHARD).unlink(), f"lacks {SHARD}; install it again"),
    (remove_weights, "lacks model.safetensors; install it again"),
    (lambda folder: (folder / INDEX).write_text("{}"), f"{INDEX} cannot be read"),
    (lambda folder: (folder / SHARD).write_bytes(b"\x00" * 99), "are damaged"),
    (lambda folder: (folder / "tokenizer.json").unlink(), "lacks tokenizer.json"),
    (lambda folder: (folder / "tokenizer.json").write_text("nonsense"), "tokenizer.json cannot be read"),
    (lambda folder: (folder / "generation_config.json").write_text("{"), "generation_config.json is not valid JSON"),
    (lambda folder: change(folder / "config.json", text_config=7), "does not describe a DiffusionGemma"),
    (lambda folder: text_config(folder, use_bidirectional_attention="all"), "does not read its context causally"),
    (lambda folder: text_config(folder, hidden_size=64), "do not fit its config.json"),
    (without_a_shard, r"lack \d+ tensors, .* first; install it again"),
    (larger_tokenizer, f"has 720 tokens, config.json {VOCABULARY}; they are not of the same model"),
    (enormous, r"needs \d+\.\d GB in int4, and memory has \d+\.\d GB free; no precision fits: close other programs"),
    (lambda folder: change(folder / "config.json", model_type="no_such_model"), "no_such_model"),
]


@pytest.mark.parametrize(("damage", "says"), DAMAGES)
def test_a_damaged_checkpoint_gives_a_one_line_error(folder: Path, damage: Callable[[Path], object], says: str) -> None:
    damage(folder)
    with pytest.raises(ModelError, match=says) as caught:
        load(str(folder), threads=1, device="cpu")
    assert "\n" not in str(caught.value)


def test_end_tokens_and_sampler_settings_come_from_the_checkpoint(folder: Path) -> None:
    settings = read_settings(folder, [END, TURN_END])
    assert settings.ends == (END, TURN_END)
    assert (settings.entropy_bound, settings.hottest, settings.coolest, settings.most_steps) == (0.1, 0.8, 0.4, 48)
    sampler = {"sampler_config": {"entropy_bound": 0.3, "_cls_name": "EntropyBoundSamplerConfig"}, "t_max": 0.9}
    change(folder / "generation_config.json", eos_token_id=[1, 2], max_denoising_steps=12, **sampler)
    changed = read_settings(folder, END)
    assert changed.ends == (1, 2)
    assert (changed.entropy_bound, changed.hottest, changed.most_steps) == (0.3, 0.9, 12)
    assert changed.temperature(12, 12, 0.9) == pytest.approx(0.9)


def test_a_model_with_a_chat_template_is_instructed(folder: Path) -> None:
    assert load(str(folder), threads=1, device="cpu").prompt.mode == "plain"  # type: ignore[attr-defined]
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert load(str(folder), threads=1, device="cpu").prompt.mode == "instructed"  # type: ignore[attr-defined]


def test_another_model_starts_without_transformers(tiny_model: Path) -> None:
    code = f"import sys; from engine.models.load import load; load({str(tiny_model)!r}); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "engine.models.embedded.load" in found.stdout.split()
    assert not {"transformers", "engine.models.diffusion_gemma.loading"} & set(found.stdout.split())


def test_the_window_is_bounded_by_free_memory_and_the_log_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert load(str(folder), threads=1, device="cpu").info.reading_tokens == 0
    assert not caplog.records
    monkeypatch.setattr(loading, "memory_of", lambda device: DeviceMemory("a small GPU", 1 << 24, 5 << 20, ("bf16",)))
    text_config(folder, max_position_embeddings=262_144)
    model = load(str(folder), threads=1, device="cpu", precision="fp32")
    assert isinstance(model, DiffusionGemmaModel)
    # Four layers, two heads of 8 or one of 16, keys and values in fp32: 512 bytes a token, of a fifth of 5 MiB.
    assert model.info.reading_tokens == model.prompt.window == 2048
    assert model.info.context_tokens == 262_144
    assert len(model.lay_out(Fill(id=1, prefix="x = 1\n" * 30_000, suffix="\n", max_tokens=16)).context) <= 2048
    assert [
        record.getMessage().partition("reads")[2] for record in caplog.records if "reads" in record.getMessage()
    ] == [" at most 2048 tokens, not 262144: a token takes 0.0 MB, and a small GPU has 5.2 MB free"]


def test_a_long_context_is_held_with_little_to_spare() -> None:
    context = RollingContext([LayerShape(8, 256)] * 25 + [LayerShape(2, 512)] * 5, torch.bfloat16, torch.device("meta"))
    copied = 0
    for length in range(4096, 200_000, 4096):
        before = context.bytes
        context.reserve(length)
        copied += before if context.bytes > before else 0
        assert context.bytes <= 1.26 * length * 225_280
    assert copied < 6 * context.bytes  # each token is copied a few times, however long the context
