"""The embedded model: our own small network, run row by row over each hole's own context, without transformers."""

from collections.abc import Sequence

import attrs
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.errors import ModelError
from engine.fill.interface import Context, Filling, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.predictions import PassResult
from engine.fill.stream import StreamPass
from engine.fill.stream_strategies import DEFAULT, start_stream_fill
from engine.models.cuda_graphs.graphs import synchronize
from engine.models.embedded.attention import ContextAttention
from engine.models.embedded.card import FAMILY, Card
from engine.models.embedded.cuda_graph import CapturedStreams
from engine.models.embedded.layout import Limits, lay_out
from engine.models.embedded.link_numpy import LinkedRows, NumpyLink
from engine.models.embedded.network import Network
from engine.models.embedded.rows import PackedRows
from engine.models.embedded.token_healing import CompatibleTokens, unfinished
from engine.models.predict import predict
from engine.models.stock.key_values import KeyValues
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.left_edge import left_edge
from engine.protocol.messages import Fill, ModelInfo

CLIP = 16_384
"""Characters of a prefix or suffix that are read at most. No context of this model reaches further."""
MOST_LINES = 20_000
"""Lines whose tokens are remembered."""


@attrs.frozen
class _Ran:
    """What the network made of a batch: logits [wanted, vocabulary] of all passes, one after the other, and the rows
    [wanted, width] that they come from. No rows where they stay on the device."""

    logits: Tensor
    rows: Tensor | None


class EmbeddedModel:
    """Implements fill.stream.StreamModel.

    Rows of all holes share the matrix products. Attention is each hole's own, so nothing is padded and what else is in
    the batch changes no answer.
    """

    def __init__(self, card: Card, network: Network, tokenizer: Tokenizer, device: torch.device, threads: int) -> None:
        self.card, self.threads = card, threads
        self._network, self.tokenizer, self._device = network, tokenizer, device
        self._dtype = network.embed.weight.dtype
        special = card.marks
        self.mask, self.end, self.middle = special.mask, special.end, special.middle
        never = [token for token in attrs.astuple(special) if token != special.end]
        self._forbidden = torch.tensor(never, device=device)
        self.default = DEFAULT
        self.memory_use: MemoryUse = "mixture"
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
        self._token_bytes = TokenBytes(tokenizer)
        self._compatible = CompatibleTokens(self._token_bytes.bytes)
        self._line_tokens: dict[str, list[int]] = {}
        # Not on a GPU: each linked token would have to be waited for.
        link = network.link if device.type == "cpu" else None
        self._link = None if link is None else NumpyLink(network, link, card.marks, never)
        self.captured = CapturedStreams(network, device) if device.type == "cuda" else None
        """Runs passes as CUDA graphs, where there is CUDA."""

    def lay_out(self, fill: Fill) -> Layout:
        shape = self.card.shape
        room = shape.context_tokens - min(fill.max_tokens, shape.context_tokens // 4) - 1
        limits = Limits(room, below=self.card.below_tokens, tail=self.card.tail_tokens)
        prefix, suffix = _clip(fill.prefix).replace("\r\n", "\n"), fill.suffix[:CLIP].replace("\r\n", "\n")
        typed = unfinished(self.tokenizer, prefix)
        above = prefix[: len(prefix) - len(typed)]
        stream = lay_out(self._encode, self.card.marks, limits, above, suffix, fill.path, fill.snippets)
        _, newline, below = suffix.partition("\n")
        return Layout(stream.tokens, typed=typed, above=stream.all_above, below=self._encode(newline + below))

    def _encode(self, text: str) -> list[int]:
        """Tokenize line by line and remember each line: between two keystrokes all but one are the same."""
        if len(self._line_tokens) > MOST_LINES:
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
        size = (shape.layers, 2, shape.heads, self._capacity, shape.head_width)
        # Zeros: masked keys are read as well, and NaN would spread.
        return KeyValues(torch.zeros(size, dtype=self._dtype, device=self._device))

    @property
    def _capacity(self) -> int:
        """The most positions of a context with its fill."""
        return self._network.cosine.shape[0]

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def start_fill(self, task: FillTask) -> Filling:
        return start_stream_fill(self, task)

    @torch.inference_mode()
    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        stream_passes = [expect_type(item, StreamPass) for item in passes]
        ran = self._run(stream_passes)
        counts = [len(item.wanted) for item in stream_passes]
        predictions = predict(ran.logits, [item.query for item in stream_passes], counts, self._forbidden)
        synchronize(self._device)
        if self._link is None or ran.rows is None:
            return [PassResult(predicted) for predicted in predictions]
        parts = zip(predictions, torch.split(ran.rows, counts), torch.split(ran.logits, counts), strict=True)
        return [PassResult(predicted, LinkedRows(self._link, rows, logits)) for predicted, rows, logits in parts]

    @torch.inference_mode()
    def logits(self, passes: Sequence[StreamPass]) -> list[Tensor]:
        """Run passes and return for each its logits [wanted, vocabulary], fp32, on the model's device."""
        return list(torch.split(self._run(passes).logits, [len(item.wanted) for item in passes]))

    def _run(self, passes: Sequence[StreamPass]) -> _Ran:
        """Run passes together and add what they append to their contexts. Raises ModelError where one is too long."""
        contexts = [expect_type(item.context, KeyValues) for item in passes]
        starts = [len(context.tokens) for context in contexts]
        for item, start in zip(passes, starts, strict=True):
            if start + item.rows > self._capacity:
                raise ModelError(f"a hole needs {start + item.rows} positions; the model has {self._capacity}")
        packed = PackedRows.of(passes, starts, self.card.marks, self.card.shape.gram_buckets)
        captured = None if self.captured is None else self.captured.run(passes, contexts, packed)
        ran = self._run_uncaptured(passes, contexts, packed) if captured is None else _Ran(torch.cat(captured), None)
        for context, item in zip(contexts, passes, strict=True):
            context.tokens += item.append
        return ran

    def _run_uncaptured(self, passes: Sequence[StreamPass], contexts: Sequence[KeyValues], packed: PackedRows) -> _Ran:
        """Run passes with shapes as they come."""
        inputs = packed.on(self._device)
        attention = ContextAttention(passes, contexts, self._dtype, self._device)
        rows = self._network.trunk(inputs, attention.attend)
        wanted: list[int] = []
        first = 0
        for item in passes:
            wanted += [first + row for row in item.wanted]
            first += item.rows
        chosen = torch.tensor(wanted, dtype=torch.long, device=self._device)
        wanted_rows = rows[chosen]
        logits = self._network.logits(wanted_rows, inputs.hints[chosen], inputs.strengths[chosen])
        return _Ran(logits, wanted_rows)

    def compatible_tokens(self, typed: bytes) -> list[int]:
        return self._compatible.of(typed)

    def bytes_of(self, token: int) -> bytes:
        return self._token_bytes.bytes[token]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._token_bytes.texts_of(tokens)

    def breaks_line(self, token: int) -> bool:
        return self._token_bytes.breaks_line(token)


def _clip(prefix: str) -> str:
    """Drop the start of a very long prefix in large strides, so that the cut seldom moves while somebody types."""
    return prefix[left_edge(len(prefix), 2 * CLIP, CLIP) :]
