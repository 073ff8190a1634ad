"""Tiny random checkpoints of the masked families: how they are recognised, and that their logits are right."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from support.masked_checkpoints import (
    BEGIN,
    CODA_END,
    END,
    EXPAND,
    FAMILIES,
    MASK,
    PAD,
    TinyCheckpoint,
    save_checkpoint,
    write_json,
)
from support.sources import DATA
from transformers import Qwen2Tokenizer

from engine.errors import ModelError
from engine.library.catalog import catalog
from engine.library.precision_names import PrecisionSetting
from engine.models.load import load
from engine.models.masked.families import MASKED_FAMILIES
from engine.models.masked.model import MaskedModel
from engine.models.masked.rows import MaskedPass
from engine.models.stock.checkpoint import ModelFamily
from engine.protocol.messages import Fill

HOLE = Fill(id=1, prefix="def area(width, height):\n    return ", suffix="\n\nprint(area(2, 3))\n")
MIDDLE = [MASK, MASK, 70, MASK, 71]


@pytest.fixture(scope="module")
def dream(tmp_path_factory: pytest.TempPathFactory) -> TinyCheckpoint:
    return save_checkpoint("dream", tmp_path_factory.mktemp("released") / "dream")


def family_of(checkpoint: TinyCheckpoint, precision: PrecisionSetting = "fp32") -> MaskedModel:
    family = load(str(checkpoint.folder), threads=1, device="cpu", precision=precision)
    assert isinstance(family, MaskedModel)
    return family


def difference(family: MaskedModel, checkpoint: TinyCheckpoint) -> float:
    """Return the largest difference of the model's logits of a middle from those of the stock network."""
    layout = family.lay_out(HOLE)
    sides = family.traits.surroundings(layout, 8)
    rows = range(len(MIDDLE) + len(sides.anchor))
    (found,) = family.logits([MaskedPass(sides, [MIDDLE], rows, True)])
    start = len(layout.before) - len(sides.anchor)
    expected = checkpoint.logits([*layout.before, *MIDDLE, *layout.after])[start : start + len(rows)]
    return float((found - expected).abs().max())


@pytest.mark.parametrize("name", FAMILIES)
def test_a_released_checkpoint_has_the_logits_of_the_stock_network_without_a_causal_mask(
    name: str, tmp_path: Path
) -> None:
    checkpoint = save_checkpoint(name, tmp_path / name)
    family = family_of(checkpoint)
    assert family.info.family == name
    assert family.info.name == name
    assert family.info.noise == "absorbing"
    assert family.info.context_tokens == 256
    assert family.traits.shifted == (name not in ("dllm-qwen", "llada"))
    assert difference(family, checkpoint) < 1e-4


def test_a_causal_forward_would_have_other_logits(dream: TinyCheckpoint) -> None:
    tokens = [10, 20, 30, 40]
    with torch.inference_mode():
        causal = dream.network(torch.tensor([tokens])).logits[0]
    assert float((causal[0] - dream.logits(tokens)[0]).abs().max()) > 0.01


def test_a_converted_qwen3_has_its_norms_of_queries_and_keys(tmp_path: Path) -> None:
    checkpoint = save_checkpoint("dllm-qwen", tmp_path / "q", model_type="a2d-qwen3", architectures=["A2DQwen3LMHead"])
    with pytest.raises(ModelError, match="do not fit"):  # its heads are wider than config.json says
        family_of(checkpoint)
    config = json.loads((checkpoint.folder / "config.json").read_text())
    write_json(checkpoint.folder / "config.json", {**config, "head_dim": 16})
    assert difference(family_of(checkpoint), checkpoint) < 1e-4


def test_the_base_of_the_rotary_embedding_comes_from_config_json(tmp_path: Path) -> None:
    checkpoint = save_checkpoint("dream", tmp_path / "dream")
    config = json.loads((checkpoint.folder / "config.json").read_text())
    write_json(checkpoint.folder / "config.json", {**config, "rope_theta": 100.0})
    assert difference(family_of(checkpoint), checkpoint) > 0.01


def test_weights_in_bf16_predict_nearly_the_same(dream: TinyCheckpoint) -> None:
    family = family_of(dream, "bf16")
    assert family.info.dtype == "bfloat16"
    assert difference(family, dream) < 0.3


def test_midspan_json_overrides_the_other_files(tmp_path: Path) -> None:
    checkpoint = save_checkpoint("dream", tmp_path / "mine")
    notes = {"family": "diffucoder", "name": "my coder", "licence": "mine", "context_tokens": 64, "mask_id": 385}
    write_json(checkpoint.folder / "midspan.json", notes)
    family = family_of(checkpoint)
    assert (family.info.family, family.info.name, family.info.licence) == ("diffucoder", "my coder", "mine")
    assert (family.info.context_tokens, family.traits.special.mask) == (64, 385)


def test_marks_are_those_that_the_files_name(tmp_path: Path) -> None:
    marks = family_of(save_checkpoint("dreamon", tmp_path / "dreamon")).traits.special
    assert (marks.begin, marks.end, marks.mask, marks.expand) == (BEGIN, END, MASK, EXPAND)
    assert family_of(save_checkpoint("diffucoder", tmp_path / "diffucoder")).traits.special.padding == (PAD,)


def test_the_end_of_a_coda_is_that_of_its_tokenizer_and_its_padding_ends_too(tmp_path: Path) -> None:
    special = family_of(save_checkpoint("coda", tmp_path / "coda")).traits.special
    assert (special.mask, special.end, special.padding) == (MASK, CODA_END, (END,))


@pytest.mark.parametrize("precision", ["fp32", "auto"])
def test_a_coda_without_a_head_has_its_embedding_as_head(
    tmp_path: Path, precision: PrecisionSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_KERNEL", "numpy")  # in fp32
    checkpoint = save_checkpoint("coda", tmp_path / "coda", hidden_size=64, intermediate_size=128)
    assert difference(family_of(checkpoint, precision), checkpoint) < 1e-3
    weights = dict(checkpoint.network.state_dict())
    del weights["lm_head.weight"]
    for shard in checkpoint.folder.glob("*.safetensors*"):
        shard.unlink()
    save_file(weights, checkpoint.folder / "model.safetensors")
    assert difference(family_of(checkpoint, precision), checkpoint) > 0.01
    checkpoint.network.lm_head.weight = checkpoint.network.model.embed_tokens.weight
    assert difference(family_of(checkpoint, precision), checkpoint) < 1e-3


def test_a_fill_can_hold_only_text_and_what_ends_it(tmp_path: Path) -> None:
    family = family_of(save_checkpoint("dreamon", tmp_path / "dreamon"))
    assert {BEGIN, MASK, *range(388, 400)} == set(family.never)


def test_vocabulary_and_merges_make_the_tokenizer_that_transformers_makes(dream: TinyCheckpoint) -> None:
    family, theirs = family_of(dream), Qwen2Tokenizer.from_pretrained(str(dream.folder))
    source = (DATA / "sources" / "filling.py.txt").read_text() + "naïve = '日本語 🙂'  \n\n\t\treturn don't, 1234\r\n"
    for start in range(0, len(source), 150):
        text = source[start : start + 150].replace("\r", "")
        before = family.lay_out(Fill(id=1, prefix=text, suffix="")).before
        assert before == theirs.encode(text)
        assert "".join(family.texts_of(before)) == text


def test_a_special_token_in_a_users_text_is_text(dream: TinyCheckpoint) -> None:
    family = family_of(dream)
    before = family.lay_out(Fill(id=1, prefix='mark = "<|mask|>', suffix="")).before
    assert MASK not in before
    assert "".join(family.texts_of(before)) == 'mark = "<|mask|>'


def changed(folder: Path, name: str, content: object) -> None:
    """Remove a file, overwrite it, or merge keys into its JSON; a key with the value None is removed."""
    path = folder / name
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        assert isinstance(content, dict)
        old = json.loads(path.read_text()) if path.exists() else {}
        write_json(path, {key: value for key, value in {**old, **content}.items() if value is not None})


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("config.json", {"model_type": "gpt2"}, "of model_type 'gpt2'"),
        ("config.json", {"model_type": "llada"}, "lacks d_model"),
        ("config.json", {"model_type": "qwen2", "mask_token_id": None}, "so it cannot fill holes"),
        ("config.json", {"hidden_size": 48}, "do not fit its config.json"),
        ("config.json", {"num_hidden_layers": 3}, "lack model.layers.2"),
        ("config.json", {"num_hidden_layers": "two"}, "does not describe a network"),
        ("config.json", {"mask_token_id": 151666}, "mask token 151666"),
        ("config.json", {"quantization_config": {"bits": 4}}, "quantized"),
        ("config.json", {"layer_types": ["full_attention", "sliding_attention"]}, "sliding"),
        ("model-00002-of-00002.safetensors", None, "lacks model-00002"),
        ("model-00002-of-00002.safetensors", b"\x00" * 100, "damaged"),
        ("model.safetensors.index.json", {"weight_map": {"a": "../a"}}, "names no files in this folder"),
        ("model.safetensors.index.json", b"[", "cannot be read"),
        ("model.safetensors.index.json", None, "lacks model.safetensors"),
        ("vocab.json", None, "lacks tokenizer.json"),
        ("merges.txt", b"\xff\xfe", "tokenizer"),
        ("added_tokens.json", {"<|mask|>": 390}, "gap"),
        ("tokenizer_config.json", b"{", "not valid JSON"),
        ("midspan.json", {"family": "llada"}, "said to be of family llada"),
        ("midspan.json", {"family": "gpt"}, "of family 'gpt'"),
        ("midspan.json", {"mask": 5}, "unknown key 'mask'"),
        ("midspan.json", {"context_tokens": 8}, "at least 64"),
        ("midspan.json", {"mask_id": "5"}, "mask_id '5'"),
    ],
)
def test_a_wrong_checkpoint_gives_a_one_line_error(
    dream: TinyCheckpoint, tmp_path: Path, name: str, content: object, says: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(dream.folder, folder)
    changed(folder, name, content)
    if name == "config.json" and content == {"model_type": "qwen2", "mask_token_id": None}:
        changed(folder, "tokenizer_config.json", {"mask_token": None})
    with pytest.raises(ModelError) as caught:
        load(str(folder), threads=1, device="cpu")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pickled_weights_are_not_read(dream: TinyCheckpoint, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(dream.folder, folder, ignore=shutil.ignore_patterns("*safetensors*"))
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match="only safetensors"):
        load(str(folder), threads=1, device="cpu")


def test_a_llada_that_is_no_llama_is_refused(tmp_path: Path) -> None:
    checkpoint = save_checkpoint("llada", tmp_path / "llada", include_qkv_bias=True)
    with pytest.raises(ModelError, match="include_qkv_bias True"):
        family_of(checkpoint)


@pytest.mark.parametrize("family", MASKED_FAMILIES.values(), ids=MASKED_FAMILIES)
def test_the_catalog_agrees_with_each_family(family: ModelFamily) -> None:
    (known,) = (model for model in catalog().values() if model.family == family.name)
    ids = known.other_ids
    assert (known.licence, known.shifted, known.mask_id) == (family.licence, family.shifted, family.special_tokens.mask)
    assert (ids.get("begin"), ids.get("expand")) == (family.special_tokens.begin, family.special_tokens.expand)
    assert ids.get("end", family.special_tokens.end) == family.special_tokens.end
    if family.context_tokens is not None:
        assert known.context_tokens == family.context_tokens


def test_the_embedded_model_starts_without_transformers() -> None:
    program = (
        "import sys; from engine.models.load import load; load('embedded', threads=1, device='cpu');"
        "sys.exit('transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
