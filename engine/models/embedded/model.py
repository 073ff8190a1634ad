"""The embedded family: our own small model, run row by row over each hole's own context, without transformers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import cattrs
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from engine.errors import ModelError
from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context, Layout, Pass, expect_type
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.fill.stream import StreamPass
from engine.fill.stream_strategies import DEFAULT, begin
from engine.library.device_memory import processor_has_bf16
from engine.models.cuda_graphs.waiting import synchronize
from engine.models.embedded.cuda_graph import CapturedStreams
from engine.models.embedded.int8_weights import unpack
from engine.models.embedded.layout import Limits, SpecialTokens, lay_out
from engine.models.embedded.link_numpy import LinkedRows, NumpyLink
from engine.models.embedded.network import Network, Shape
from engine.models.embedded.rows import PackedRows
from engine.models.embedded.token_healing import Agreement, unfinished
from engine.models.stock.key_values import KeyValues
from engine.models.stock.token_bytes import Pieces, load_tokenizer
from engine.protocol.messages import Fill, ModelInfo

FAMILY = "midspan"
CLIP = 16_384
"""Characters of a prefix or suffix beyond which no context of this family reaches, and which are not even tokenized."""


@attrs.frozen
class Card:
    """config.json of an embedded-family model."""

    family: str
    name: str
    licence: str
    shape: Shape
    marks: SpecialTokens
    below_tokens: int
    tail_tokens: int


class EmbeddedModel:
    """Implements models.base.Model. Rows of all holes share the matrix products; attention is each hole's own, so that
    no hole's answer depends on what else is in the batch and nothing is padded."""

    def __init__(self, card: Card, network: Network, tokenizer: Tokenizer, device: torch.device, threads: int) -> None:
        self.card, self.threads = card, threads
        self._network, self.tokenizer, self._device = network, tokenizer, device
        self._dtype = network.embed.weight.dtype
        self.mask, self.end, self.middle = card.marks.mask, card.marks.end, card.marks.middle
        self.never = tuple(mark for mark in attrs.astuple(card.marks) if mark != card.marks.end)
        self.default = DEFAULT
        self.info = ModelInfo(
            name=card.name,
            family=FAMILY,
            licence=card.licence,
            parameters=sum(weight.numel() for weight in network.parameters()),
            context_tokens=card.shape.context_tokens,
            canvas_tokens=card.shape.canvas_tokens,
            noise="absorbing",
            device=device.type,
            dtype=str(self._dtype).removeprefix("torch."),
        )
        self._pieces = Pieces(tokenizer)
        self._agreement = Agreement(self._pieces.bytes)
        self._line_tokens: dict[str, list[int]] = {}
        here = network.link if device.type == "cpu" else None
        self._link = None if here is None else NumpyLink(network, here, card.marks)
        """None on a GPU as well: each linked token would have to be waited for."""
        self.captured = CapturedStreams(network, device) if device.type == "cuda" else None
        """How passes run where there are graphs to capture them in."""

    def lay_out(self, fill: Fill) -> Layout:
        shape = self.card.shape
        room = shape.context_tokens - min(fill.max_tokens, shape.context_tokens // 4) - 1
        limits = Limits(room, below=self.card.below_tokens, tail=self.card.tail_tokens)
        prefix, suffix = _clip(fill.prefix).replace("\r\n", "\n"), fill.suffix[:CLIP].replace("\r\n", "\n")
        typed = unfinished(self.tokenizer, prefix)
        above = prefix[: len(prefix) - len(typed)]
        stream = lay_out(self._encode, self.card.marks, limits, above, suffix, fill.path, fill.snippets)
        return Layout(stream.tokens, typed=typed)

    def _encode(self, text: str) -> list[int]:
        """Tokenize line by line, remembering each line: between two keystrokes all but one are the same."""
        if len(self._line_tokens) > 20_000:
            self._line_tokens.clear()
        tokens: list[int] = []
        first, *others = text.split("\n")
        for line in (first, *("\n" + other for other in others)):
            known = self._line_tokens.get(line)
            if known is None:
                known = self._line_tokens[line] = self.tokenizer.encode(line, add_special_tokens=False).ids
            tokens += known
        return tokens

    def new_context(self) -> KeyValues:
        shape = self.card.shape
        capacity = self._network.cosine.shape[0]
        size = (shape.layers, 2, shape.heads, capacity, shape.head_width)
        return KeyValues(torch.empty(size, dtype=self._dtype, device=self._device))

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def filling(self, context: Context, hole: Hole, sampler: Sampler, way: FillStrategy) -> Filling:
        return begin(self, context, hole, sampler, way)

    @torch.inference_mode()
    def run(self, asked: Sequence[Pass]) -> list[Tensor]:
        passes = [expect_type(item, StreamPass) for item in asked]
        contexts = [expect_type(item.context, KeyValues) for item in passes]
        counts = [item.rows for item in passes]
        starts = [len(context.tokens) for context in contexts]
        for start, count in zip(starts, counts, strict=True):
            if start + count > self._network.cosine.shape[0]:
                raise ModelError(
                    f"a hole needs {start + count} positions; the model has {self._network.cosine.shape[0]}"
                )
        shown = PackedRows.of(passes, starts, self.card.marks, self.card.shape.gram_buckets)
        found = None if self.captured is None else self.captured.run(passes, contexts, shown)
        if found is None:
            found = self._run_plainly(passes, contexts, shown)
        for context, item in zip(contexts, passes, strict=True):
            context.tokens += item.append
        synchronize(self._device)
        return found

    def _run_plainly(
        self, passes: Sequence[StreamPass], contexts: Sequence[KeyValues], shown: PackedRows
    ) -> list[Tensor]:
        """Return each pass's logits [wanted, vocabulary], with shapes as they come."""
        counts = [item.rows for item in passes]
        starts = [len(context.tokens) for context in contexts]
        inputs = shown.on(self._device)
        masks = [
            _visible(start, len(item.append), len(item.canvas), self._device)
            for start, item in zip(starts, passes, strict=True)
        ]

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            mixed, at = [], 0
            for context, start, count, mask in zip(contexts, starts, counts, masks, strict=True):
                keys, values = context.buffer[layer].unbind(0)
                keys[:, start : start + count] = key[at : at + count].transpose(0, 1)
                values[:, start : start + count] = value[at : at + count].transpose(0, 1)
                asked = query[at : at + count].transpose(0, 1)
                seen = slice(0, start + count)
                rows = F.scaled_dot_product_attention(asked[None], keys[None, :, seen], values[None, :, seen], mask)
                mixed.append(rows[0].transpose(0, 1))
                at += count
            return torch.cat(mixed) if len(mixed) > 1 else mixed[0]

        rows = self._network.trunk(inputs, attend)
        offsets = [sum(counts[:index]) for index in range(len(counts))]
        wanted = [offset + row for offset, item in zip(offsets, passes, strict=True) for row in item.wanted]
        if not wanted:
            return [torch.empty(0, self.card.shape.vocabulary) for _ in passes]
        chosen = torch.tensor(wanted, device=self._device)
        picked = rows[chosen]
        logits = self._network.logits(picked, inputs.hints[chosen], inputs.strengths[chosen])
        sizes = [len(item.wanted) for item in passes]
        found = list(torch.split(logits, sizes))
        if self._link is not None:
            for item, left, each in zip(passes, torch.split(picked, sizes), found, strict=True):
                item.linked = LinkedRows(self._link, left, each)
        return found

    def bytes_of(self, token: int) -> bytes:
        return self._pieces.bytes[token]

    def compatible_tokens(self, typed: bytes) -> list[int]:
        return self._agreement.tokens(typed)

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._pieces.texts_of(tokens)

    def breaks_line(self, token: int) -> bool:
        return self._pieces.breaks_line(token)


def _clip(prefix: str) -> str:
    """Drop the start of a very long prefix in large strides, so that typing in it leaves the cut where it was."""
    return prefix[max(0, len(prefix) - CLIP) // CLIP * CLIP :] if len(prefix) > 2 * CLIP else prefix


def _visible(start: int, append: int, canvas: int, device: torch.device) -> Tensor | None:
    """Return which keys each row sees, bool [rows, start + rows], or None when all rows see all keys."""
    if append <= 1 and (append == 0 or canvas == 0):
        return None
    rows = append + canvas
    visible = torch.ones(rows, start + rows, dtype=torch.bool, device=device).tril(start)
    visible[append:] = True
    return visible


def load(folder: Path, config: dict[str, Any], threads: int, device: torch.device) -> EmbeddedModel:
    """Load a model of this family from a folder; raises ModelError with one line."""
    try:
        card = cattrs.Converter(detailed_validation=False).structure(config, Card)
        tokenizer = load_tokenizer(folder / "tokenizer.json")
        weights = load_file(folder / "model.safetensors")
    except FileNotFoundError as error:
        raise ModelError(f"the model in {folder} lacks {Path(str(error.filename or error)).name}") from None
    except SafetensorError as error:
        raise ModelError(f"the weights in {folder} are damaged ({error}); install the model again") from None
    except Exception as error:
        raise ModelError(f"the model in {folder} cannot be read: {type(error).__name__}: {error}") from None
    with torch.device("meta"):
        network = Network(card.shape)
    network = network.to_empty(device="cpu")
    network.reset_tables()
    try:
        network.load_state_dict(unpack(weights))
    except RuntimeError as error:
        lines = str(error).splitlines()
        raise ModelError(f"the weights in {folder} do not fit its config.json: {lines[-1].strip()}") from None
    native = device.type == "cuda" or (device.type == "cpu" and processor_has_bf16())
    network = network.to(device=device, dtype=torch.bfloat16 if native else torch.float32).eval()
    network.reset_tables()
    _lay_out_weights(network)
    return EmbeddedModel(card, network, tokenizer, device, threads)


def _lay_out_weights(network: Network) -> None:
    """Store each matrix column by column: with few rows its products are then 2 to 7 times faster on a CPU."""
    for module in network.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight.data = module.weight.data.t().contiguous().t()


def config_of(card: Card) -> str:
    """Return config.json's text for a card."""
    return json.dumps(attrs.asdict(card), indent=2) + "\n"
