"""The embedded model: our own small network, run row by row over each hole's own context, without transformers."""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.fill.interface import Context, Filling, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.predictions import PassResult
from engine.fill.stream import StreamPass
from engine.fill.stream_strategies import DEFAULT, start_stream_fill
from engine.models.embedded.card import FAMILY, Card
from engine.models.embedded.layout import Limits, lay_out
from engine.models.embedded.rows import PackedRows
from engine.models.embedded.runner import Ran, Runner
from engine.models.embedded.shape import Floats
from engine.models.embedded.token_healing import CompatibleTokens, unfinished
from engine.models.stock.line_tokens import LineTokens
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.left_edge import left_edge
from engine.protocol.messages import Fill, ModelInfo

CLIP = 16_384
"""Characters of a prefix or suffix that are read at most. No context of this model reaches further."""


class EmbeddedModel:
    """Implements fill.stream.StreamModel.

    The runner computes passes: in the kernel, in NumPy or in torch. This class imports none of them.
    """

    def __init__(
        self,
        card: Card,
        runner: Runner,
        tokenizer: Tokenizer,
        token_bytes: TokenBytes,
        parameters: int,
        threads: int,
    ) -> None:
        self.card, self.threads, self.runner = card, threads, runner
        self.tokenizer = tokenizer
        special = card.marks
        self.mask, self.end, self.middle = special.mask, special.end, special.middle
        self.default, self.draft_rows = DEFAULT, runner.draft_rows
        self.memory_use: MemoryUse = "mixture"
        self.info = ModelInfo(
            name=card.name,
            family=FAMILY,
            licence=card.licence,
            parameters=parameters,
            context_tokens=card.shape.context_tokens,
            canvas_tokens=card.shape.canvas_tokens,
            noise="absorbing",
            device=runner.device,
            dtype=runner.dtype,
        )
        self._token_bytes = token_bytes
        self._compatible = CompatibleTokens(self._token_bytes.bytes)
        self._line_tokens = LineTokens(lambda line: tokenizer.encode(line, add_special_tokens=False).ids)

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
        first, *others = text.split("\n")
        lines = (first, *("\n" + other for other in others))
        return [token for line in lines for token in self._line_tokens.of(line)]

    def new_context(self) -> Context:
        return self.runner.new_context()

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def start_fill(self, task: FillTask) -> Filling:
        return start_stream_fill(self, task)

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        stream_passes = [expect_type(item, StreamPass) for item in passes]
        ran = self._run(stream_passes)
        counts = [len(item.wanted) for item in stream_passes]
        predictions = ran.predict([item.query for item in stream_passes], counts)
        return [PassResult(predicted) for predicted in predictions]

    def logits(self, passes: Sequence[StreamPass]) -> list[Floats]:
        """Run passes and return for each its logits [wanted, vocabulary]."""
        return _split(self._run(passes).logits(), [len(item.wanted) for item in passes])

    def _run(self, passes: Sequence[StreamPass]) -> Ran:
        """Run passes together and add what they append to their contexts. Raises ModelError where one is too long."""
        starts = [len(item.context.tokens) for item in passes]
        capacity = self.card.shape.positions
        for item, start in zip(passes, starts, strict=True):
            if start + item.rows > capacity:
                raise ModelError(f"a hole needs {start + item.rows} positions; the model has {capacity}")
        packed = PackedRows.of(passes, starts)
        ran = self.runner.run(passes, packed)
        for item in passes:
            item.context.tokens += item.append
        return ran

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


def _split(rows: Floats, counts: Sequence[int]) -> list[Floats]:
    """Return the rows of each pass."""
    return np.split(rows, np.cumsum(counts)[:-1])
