"""Loads a model that others trained into our kernel: a GGUF, or a folder of safetensors of a shape that it runs.

Torch is imported for a GPU only, or where fp32 or bf16 is asked for.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.library.device_memory import gigabytes, machine_memory
from engine.library.gguf_file import GgufHeader, read_header
from engine.library.packed_weights import PackedWeights
from engine.library.precision_names import TORCH_PRECISIONS, PrecisionSetting
from engine.library.weights_header import weight_files
from engine.models.edit_formats import format_of
from engine.models.embedded.adapter import ADAPTER_FILE, Adapter, AdapterKey
from engine.models.embedded.runner import HostRunner, KernelPass, Runner, host_pass, kernel_digest, kernel_paths
from engine.models.embedded.shape import Shape
from engine.models.embedded.slabs import HostPass
from engine.models.embedded.weights import Weights
from engine.models.kind import device_of
from engine.models.left_to_right.doubt import doubt_of
from engine.models.left_to_right.family import family_of_header, shape_of_config, shape_of_header
from engine.models.left_to_right.file_weights import FileWeights
from engine.models.left_to_right.fim import Specials, specials_of
from engine.models.left_to_right.frequent import frequent_tokens
from engine.models.left_to_right.gguf_tokenizer import texts_of_header, tokenizer_of_header
from engine.models.left_to_right.model import FAMILY, LeftToRightModel
from engine.models.left_to_right.tensor_files import GgufTensors, SafetensorsFolder
from engine.models.stock.checkpoint import Checkpoint, OnStage
from engine.models.stock.token_bytes import TokenBytes, token_texts
from engine.models.stock.tokenizer import token_bytes_of, tokenizer_of
from engine.protocol.messages import ModelInfo

CONTEXT_TOKENS, READING_TOKENS = 2048, 1024
"""The most tokens of a context, and how many of them are read while somebody types: each costs time on a CPU."""
KERNEL_PRECISIONS: dict[str, bool | None] = {"auto": None, "int4": True, "int8": False}
"""What the kernel runs in, and FileWeights.in_four_bits for it."""
_log = logging.getLogger(__name__)
_OTHER_BYTES = 200_000_000
"""What is needed besides the weights: rows, contexts, the tokenizer, and a matrix while it is packed."""


def load_gguf(
    path: Path,
    threads: int,
    device: str = "cpu",
    precision: PrecisionSetting = "auto",
    on_stage: OnStage = lambda stage: None,
) -> LeftToRightModel:
    """Load the model in a GGUF for device "cpu" or "cuda". Raises ModelError with one line."""
    way = _Way(threads, device, precision)
    packed = way.packed_of(path)
    header = read_header(path)
    shape, family = shape_of_header(header, CONTEXT_TOKENS), family_of_header(header)
    tokenizer = tokenizer_of_header(header)
    specials, texts = gguf_specials(header, tokenizer), texts_of_header(header)
    head = None
    if not way.in_torch:
        shape, head = _with_head(shape, texts, specials)
    if not way.in_torch and precision not in KERNEL_PRECISIONS:
        raise ModelError(f"{precision} is not what the kernel runs a GGUF in; it can be {', '.join(KERNEL_PRECISIONS)}")

    weights = FileWeights(
        GgufTensors(header),
        shape,
        lambda names: names.gguf,
        family.pairs_halves,
        KERNEL_PRECISIONS.get(precision),
        _shares(path, on_stage),
        head,
    )
    try:
        weights.check(shape)
        if not way.in_torch:
            _check_memory(path, weights.bytes)
        token_bytes = TokenBytes(tokenizer, texts)
        if (tokens := len(token_bytes.bytes)) > shape.vocabulary:
            raise ModelError(f"it has {tokens} tokens, and its network {shape.vocabulary}")
    except ModelError as error:
        raise ModelError(f"{path} cannot be run: {error}") from None
    except KeyError:
        raise ModelError(f"{path} cannot be run: its tokenizer is not a byte-level BPE") from None
    licence, name, beside = header.text("general.license", "unknown"), _name(header), path.with_name(ADAPTER_FILE)
    return _model(path, packed, weights, shape, tokenizer, token_bytes, specials, name, licence, way, head, beside)


def _with_head(shape: Shape, texts: list[str], specials: Specials) -> tuple[Shape, NDArray[np.int64] | None]:
    """Return the shape as the kernel runs it, and the tokens of its head; None for all."""
    head = frequent_tokens(texts, specials.ends, shape.vocabulary)
    return (shape if head is None else attrs.evolve(shape, tied=False, head_tokens=len(head))), head


def _shares(path: Path, on_stage: OnStage) -> Callable[[float], None]:
    def on_share(share: float) -> None:
        on_stage(f"Loading {path.name}, {share:.0%}")

    return on_share


@attrs.frozen
class _Way:
    """What runs a network."""

    threads: int
    device: str
    precision: PrecisionSetting

    @property
    def in_torch(self) -> bool:
        return self.device == "cuda" or self.precision in TORCH_PRECISIONS

    def packed_of(self, source: Path) -> PackedWeights | None:
        """Begin to look for the packed weights of a file or a folder; None where no kernel runs them."""
        return None if self.in_torch or not kernel_paths() else PackedWeights(source, self.precision)


def _model(
    source: Path,
    packed: PackedWeights | None,
    weights: FileWeights,
    shape: Shape,
    tokenizer: Tokenizer,
    token_bytes: TokenBytes,
    specials: Specials,
    name: str,
    licence: str,
    way: _Way,
    head: NDArray[np.int64] | None,
    beside: Path,
) -> LeftToRightModel:
    """beside: where an adapter may be."""
    nothing = (token for token, text in enumerate(token_bytes.bytes) if not text)
    beyond = range(len(token_bytes.bytes), shape.vocabulary)
    never = sorted({*nothing, *beyond}.difference(specials.ends))
    # It hashes parts of the weights, so only where somebody needs it.
    key = adapter_key(shape, token_bytes, weights) if way.in_torch or beside.is_file() else None
    keep, adapter = None, None if key is None else _adapter(beside, shape, key)
    if way.in_torch:
        runner = _torch_runner(weights, shape, way, never, token_bytes.continuing_words(), adapter)
    else:
        host, keep = _host(packed, weights, shape, way.threads)
        if adapter is not None:
            host.adapt(adapter)
        runner = HostRunner(host, weights, shape, never, token_bytes.continuing_words(), head)
    edits = format_of(f"{name} {source.name}", tokenizer)
    info = ModelInfo(
        name=name,
        family=FAMILY,
        licence=licence,
        parameters=weights.count,
        context_tokens=shape.context_tokens,
        canvas_tokens=0,
        noise="none",
        device=runner.device,
        dtype=runner.dtype,
        reading_tokens=min(READING_TOKENS, shape.context_tokens),
        doubt=doubt_of(source),
        edits="" if edits is None else edits.name,
    )
    canvas = 0 if adapter is None else adapter.canvas_tokens
    return LeftToRightModel(info, runner, tokenizer, token_bytes, specials, way.threads, shape, canvas, keep, key)


def adapter_key(shape: Shape, token_bytes: TokenBytes, weights: FileWeights) -> AdapterKey:
    """Return what an adapter of a model is kept for."""
    tokens = hashlib.sha256(b"\0".join(token_bytes.bytes)).hexdigest()
    return AdapterKey(AdapterKey.sizes(shape), tokens, weights.digest())


def _adapter(path: Path, shape: Shape, key: AdapterKey) -> Adapter | None:
    """Return the adapter of a model; None without one. The log says in a line why a file is not used."""
    if not path.is_file():
        return None
    try:
        return Adapter.load(path, shape, key)
    except ModelError as error:
        _log.warning("%s", error)
        return None


def _host(
    packed: PackedWeights | None, weights: FileWeights, shape: Shape, threads: int
) -> tuple[HostPass, Callable[[], None] | None]:
    """Return a pass with mapped weights, or one that packs them and a function that keeps them for the next start."""
    if packed is None:
        return host_pass(weights, shape, threads), None
    key, size = weights.key(kernel_digest()), weights.bytes
    if (matrices := packed.matrices(key)) is not None:
        weights.use_packed(matrices)
    host = host_pass(weights, shape, threads)
    if matrices is not None or not isinstance(host, KernelPass):
        return host, None
    return host, lambda: packed.keep(key, host.packed(), size)


def folder_obstacle(checkpoint: Checkpoint) -> str:
    """Return why the kernel does not run a folder's network; "" if it does."""
    try:
        shape_of_config(checkpoint.config, CONTEXT_TOKENS)
    except ModelError as error:
        return str(error)
    return "" if _weight_files(checkpoint) else "there are no safetensors"


def kernel_obstacle(checkpoint: Checkpoint, device: str) -> str:
    """Return why the kernel does not run a folder's network on a device of this machine; "" if it does."""
    if not kernel_paths():
        return "no kernel was built"
    return folder_obstacle(checkpoint) or ("" if device_of(device) == "cpu" else "there is a GPU")


def folder_shape(checkpoint: Checkpoint) -> Shape | None:
    """Return the shape of a folder's network; None if the kernel does not run it."""
    if folder_obstacle(checkpoint):
        return None
    shape = shape_of_config(checkpoint.config, CONTEXT_TOKENS)
    # Some files have a head of their own where config.json says that it is the embedding.
    return attrs.evolve(shape, tied=_tensors(checkpoint).sides("lm_head.weight") is None)


def folder_weights(
    checkpoint: Checkpoint,
    shape: Shape,
    precision: PrecisionSetting,
    on_stage: OnStage,
    head: NDArray[np.int64] | None = None,
) -> FileWeights:
    """Return the weights of a folder, of which the headers are checked, and the memory. Raises ModelError."""
    weights = FileWeights(
        _tensors(checkpoint),
        shape,
        lambda names: names.safetensors,
        in_four_bits=KERNEL_PRECISIONS.get(precision),
        on_share=_shares(checkpoint.folder, on_stage),
        head=head,
    )
    try:
        weights.check(shape)
    except ModelError as error:
        problem = f"the model in {checkpoint.folder} cannot be run: {error}"
        raise ModelError(f"{problem}; install it again, or use another") from None
    _check_memory(checkpoint.folder, weights.bytes)
    return weights


def _tensors(checkpoint: Checkpoint) -> SafetensorsFolder:
    return SafetensorsFolder(_weight_files(checkpoint))


def _weight_files(checkpoint: Checkpoint) -> list[Path]:
    return [path for path in weight_files(checkpoint.folder) if path.name != checkpoint.notes.adapter]


def load_folder(
    checkpoint: Checkpoint, shape: Shape, threads: int, precision: PrecisionSetting, on_stage: OnStage
) -> LeftToRightModel:
    """Load the left-to-right model in a folder of safetensors on the CPU. Raises ModelError with one line."""
    way = _Way(threads, "cpu", precision)
    packed = way.packed_of(checkpoint.folder)
    tokenizer = tokenizer_of(checkpoint)
    texts = token_texts(tokenizer)
    token_bytes = token_bytes_of(checkpoint, tokenizer, shape.vocabulary, texts)
    specials = folder_specials(checkpoint, tokenizer)
    notes, head = checkpoint.notes, None
    if not way.in_torch:
        shape, head = _with_head(shape, texts, specials)
    return _model(
        checkpoint.folder,
        packed,
        folder_weights(checkpoint, shape, precision, on_stage, head),
        attrs.evolve(shape, context_tokens=min(shape.context_tokens, notes.context_tokens or CONTEXT_TOKENS)),
        tokenizer,
        token_bytes,
        specials,
        *checkpoint.named("unknown"),
        way,
        head,
        checkpoint.folder / (notes.adapter or ADAPTER_FILE),
    )


def folder_specials(checkpoint: Checkpoint, tokenizer: Tokenizer) -> Specials:
    """Return the special tokens of a left-to-right folder. Raises ModelError if nothing ends a fill."""
    named = checkpoint.generation.get("eos_token_id", checkpoint.config.get("eos_token_id"))
    end = named[0] if isinstance(named, list) and named else named
    specials = specials_of(tokenizer, end if isinstance(end, int) and _fits(end) else None)
    if specials is None:
        raise ModelError(f"the model in {checkpoint.folder} has no token that ends a text")
    return specials


@attrs.frozen
class GgufFacts:
    """The facts in a GGUF's header about the model made of it.

    `types`: of its tensors. `bytes_needed`: of memory, for weights and all else; `fits` says whether so much is free.
    """

    path: Path
    name: str
    architecture: str
    parameters: int
    types: str
    bits: int
    bytes_needed: int
    reads_suffix: bool
    context_tokens: int
    fits: bool


def gguf_facts(path: Path) -> GgufFacts:
    """Return the facts without reading a weight. Raises ModelError in one line for a model that cannot be run."""
    header = read_header(path)
    specials = gguf_specials(header, tokenizer_of_header(header))
    shape, head = _with_head(shape_of_header(header, CONTEXT_TOKENS), texts_of_header(header), specials)
    weights = FileWeights(GgufTensors(header), shape, lambda names: names.gguf, head=head)
    try:
        weights.check(shape)
    except ModelError as error:
        raise ModelError(f"{path} cannot be run: {error}") from None
    types = Counter(tensor.kind for tensor in header.tensors.values() if len(tensor.sides) > 1)
    needed, memory = weights.bytes + _OTHER_BYTES, machine_memory()
    return GgufFacts(
        path=path,
        name=_name(header),
        architecture=header.architecture,
        parameters=weights.count,
        types=", ".join(f"{kind} ({count})" for kind, count in types.most_common()),
        bits=weights.bits,
        bytes_needed=needed,
        reads_suffix=specials.fim is not None,
        context_tokens=shape.context_tokens,
        fits=memory is None or needed <= memory.free,
    )


def _name(header: GgufHeader) -> str:
    return header.text("general.name", header.path.stem) or header.path.stem


def gguf_specials(header: GgufHeader, tokenizer: Tokenizer) -> Specials:
    """Return the special tokens of a GGUF. Raises ModelError if nothing ends a fill."""
    end = header.fields.get("tokenizer.ggml.eos_token_id")
    begin = header.fields.get("tokenizer.ggml.bos_token_id")
    added = header.fields.get("tokenizer.ggml.add_bos_token") is True
    is_token = type(begin) is int and tokenizer.id_to_token(begin) is not None if _fits(begin) else False
    specials = specials_of(tokenizer, end if _fits(end) else None, begin if added and is_token else None)
    if specials is None:
        raise ModelError(f"{header.path} has no token that ends a text")
    return specials


def _fits(token: object) -> bool:
    return type(token) is int and 0 <= token < 1 << 31


def _torch_runner(
    weights: Weights, shape: Shape, way: _Way, never: list[int], continuing: list[int], adapter: Adapter | None
) -> Runner:
    from engine.models.embedded.torch_runner import TorchRunner

    runner = TorchRunner.load(weights, shape, way.device, way.precision, never, continuing)
    if adapter is not None:
        runner.adapt(adapter)
    return runner


def _check_memory(path: Path, needed: int) -> None:
    memory = machine_memory()
    if memory is not None and (most := needed + _OTHER_BYTES) > memory.free:
        raise ModelError(
            f"{path.name} needs {gigabytes(most)} of memory, and {gigabytes(memory.free)} are free; "
            "close other programs, or choose a smaller model"
        )
