"""Networks that others trained compute in our passes what transformers computes, from a GGUF and from safetensors."""

import os
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import dequantize
from numpy.typing import NDArray
from safetensors.torch import save_file
from support.gguf_files import SHAPES, TEXT_TOKENS, TinyNetwork, tiny_network
from support.kernel_passes import skip_without
from support.masked_checkpoints import tiny_tokenizer

from engine.errors import ModelError
from engine.json_file import read_json
from engine.library.gguf_file import read_header
from engine.models.embedded.network import Network
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import KernelPass, host_pass
from engine.models.embedded.shape import Shape
from engine.models.embedded.slabs import Hole, HostPass, SlabContext
from engine.models.left_to_right.family import family_of_config, family_of_header, shape_of_config, shape_of_header
from engine.models.left_to_right.file_weights import FileWeights
from engine.models.left_to_right.gguf_tokenizer import tokenizer_of_header
from engine.models.left_to_right.tensor_files import GgufTensors, SafetensorsFolder

ROWS = 1000
TOKENS: list[int] = np.random.default_rng(5).integers(0, TEXT_TOKENS, ROWS).tolist()


def of_gguf(path: Path, in_four_bits: bool | None = None) -> tuple[FileWeights, Shape]:
    header = read_header(path)
    shape, family = shape_of_header(header, 2048), family_of_header(header)
    weights = FileWeights(GgufTensors(header), shape, lambda names: names.gguf, family.pairs_halves, in_four_bits)
    weights.check(shape)
    return weights, shape


def of_folder(folder: Path) -> tuple[FileWeights, Shape]:
    config = read_json(folder / "config.json")
    assert family_of_config(config) is not None
    shape = shape_of_config(config, 2048)
    weights = FileWeights(SafetensorsFolder([folder / "model.safetensors"]), shape, lambda names: names.safetensors)
    weights.check(shape)
    return weights, shape


def logits_of(host: HostPass, shape: Shape) -> NDArray[np.float32]:
    context = SlabContext(shape, host.dtype)
    context.reserve(ROWS)
    return host.run(np.array((TOKENS, range(ROWS))), [Hole(ROWS, ROWS, 0, context.slabs)], np.arange(ROWS))


@pytest.fixture(scope="module", params=SHAPES)
def tiny(request: pytest.FixtureRequest) -> TinyNetwork:
    return tiny_network(request.param)


@pytest.mark.parametrize("form", ["gguf", "safetensors"])
def test_a_file_computes_what_transformers_computes(tiny: TinyNetwork, tmp_path: Path, form: str) -> None:
    if form == "gguf":
        weights, shape = of_gguf(tiny.save_gguf(tmp_path / "tiny.gguf"))
    else:
        weights, shape = of_folder(tiny.save_folder(tmp_path / "tiny"))
    expected, found = tiny.logits(TOKENS), logits_of(NumpyPass(weights, shape), shape)
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()
    assert (found.argmax(1) == expected.argmax(1)).mean() >= 0.999
    skip_without("plain")
    kernel = logits_of(KernelPass(weights, shape), shape)
    assert np.corrcoef(kernel.ravel(), expected.ravel())[0, 1] > 0.995


def test_our_network_in_torch_computes_the_same(tiny: TinyNetwork, tmp_path: Path) -> None:
    weights, shape = of_gguf(tiny.save_gguf(tmp_path / "tiny.gguf"))
    network = Network(shape)
    network.load_state_dict({name: torch.from_numpy(weights.dense(name)) for name in weights.names})
    shared = shape.heads // shape.key_heads

    def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        keys, values = (part.repeat_interleave(shared, 1).transpose(0, 1)[None] for part in (key, value))
        mixed = torch.nn.functional.scaled_dot_product_attention(
            query.transpose(0, 1)[None], keys, values, is_causal=True
        )
        return mixed[0].transpose(0, 1)

    with torch.inference_mode():
        rows = network.trunk(torch.tensor(TOKENS), torch.arange(ROWS), attend)
        found = network.logits(rows).numpy()
    expected = tiny.logits(TOKENS)
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_read_as_they_are(tmp_path: Path, dtype: torch.dtype) -> None:
    tiny = tiny_network("qwen2")
    weights, _ = of_folder(tiny.save_folder(tmp_path / "tiny", dtype))
    expected = torch.from_numpy(tiny.weights["model.layers.1.mlp.down_proj.weight"]).to(dtype).float().numpy()
    assert np.array_equal(weights.dense("blocks.1.down.weight"), expected)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_each_type_is_the_weights_that_gguf_says(tmp_path: Path, kind: str) -> None:
    tiny = tiny_network("llama")
    weights, _ = of_gguf(tiny.save_gguf(tmp_path / "tiny.gguf", kind))
    reader = gguf.GGUFReader(tmp_path / "tiny.gguf")
    tensor = next(each for each in reader.tensors if each.name == "blk.1.ffn_down.weight")
    expected = dequantize(tensor.data, tensor.tensor_type)
    np.testing.assert_allclose(weights.dense("blocks.1.down.weight"), expected, atol=1e-6)
    assert weights.bits == (4 if kind.startswith(("Q4", "Q5")) else 8)


def test_int8_and_int4_are_what_is_asked_for(tmp_path: Path) -> None:
    path = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf", "Q4_0")
    assert [of_gguf(path, choice)[0].bits for choice in (None, True, False)] == [4, 4, 8]
    path = tiny_network("qwen2").save_gguf(tmp_path / "plain.gguf", "F16")
    assert [of_gguf(path, choice)[0].bits for choice in (None, True, False)] == [8, 4, 8]


def test_the_tokenizer_of_a_gguf_is_the_one_it_was_made_of(tmp_path: Path) -> None:
    tokenizer = tokenizer_of_header(read_header(tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf")))
    original = tiny_tokenizer()
    text = Path(__file__).read_text() + "\n\n\tx = 12345  # naïve, 日本\r\n  <|endoftext|> it's"
    assert tokenizer.encode(text).ids == original.encode(text).ids
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_a_llama_with_biases_as_granite_code_has_them_is_refused_in_one_line(tmp_path: Path) -> None:
    tiny = tiny_network("llama", attention_bias=True, mlp_bias=True)
    with pytest.raises(ModelError, match=r"it has the tensor blk\.0\.\w+\.bias, which the kernel does not know$"):
        of_gguf(tiny.save_gguf(tmp_path / "tiny.gguf"))
    with pytest.raises(ModelError, match="does not run a network with attention_bias"):
        of_folder(tiny.save_folder(tmp_path / "tiny"))


def test_a_table_of_an_old_checkpoint_is_left_alone(tmp_path: Path) -> None:
    tiny = tiny_network("llama")
    folder = tiny.save_folder(tmp_path / "tiny")
    weights = {name: torch.from_numpy(weight) for name, weight in tiny.weights.items()}
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(16)
    save_file(weights, folder / "model.safetensors")
    ours, shape = of_folder(folder)
    found = logits_of(NumpyPass(ours, shape), shape)
    assert (found.argmax(1) == tiny.logits(TOKENS).argmax(1)).mean() >= 0.999


@pytest.mark.parametrize("form", ["gguf", "safetensors"])
def test_a_file_that_is_cut_while_it_is_loaded_is_one_line(tmp_path: Path, form: str) -> None:
    tiny = tiny_network("qwen2")
    if form == "gguf":
        path = tiny.save_gguf(tmp_path / "tiny.gguf")
        weights, shape = of_gguf(path)
    else:
        path = tiny.save_folder(tmp_path / "tiny") / "model.safetensors"
        weights, shape = of_folder(path.parent)
    os.truncate(path, path.stat().st_size // 2)  # to read what is gone would end this process
    with pytest.raises(ModelError, match=r"was cut short while it was loaded; get the model again"):
        NumpyPass(weights, shape)


def test_a_tensor_that_is_missing_or_not_finite_is_named_in_one_line(tmp_path: Path) -> None:
    tiny = tiny_network("qwen2")
    with torch.no_grad():
        tiny.network.model.layers[1].mlp.up_proj.weight[3, 5] = float("nan")
    weights, shape = of_gguf(tiny.save_gguf(tmp_path / "tiny.gguf"))
    skip_without("plain")
    with pytest.raises(ModelError, match=r"blk\.1\.ffn_up\.weight holds numbers that are not finite"):
        host_pass(weights, shape)
    header = read_header(tmp_path / "tiny.gguf")
    del header.tensors["blk.0.attn_k.bias"]
    with pytest.raises(ModelError, match=r"blk\.0\.attn_k\.bias is missing"):
        FileWeights(GgufTensors(header), shape, lambda names: names.gguf).check(shape)
