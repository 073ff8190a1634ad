"""A left-to-right model in torch, with its drafter."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.fill.draft_planner import DraftPlanner
from engine.fill.interface import Filling, FillStrategy, FillTask, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult
from engine.fill.strategies import start_stream_fill
from engine.fill.stream import CanvasUse, StreamPass
from engine.models.left_to_right.base import LeftToRightBase
from engine.models.left_to_right.drafting import Drafter, Drafting, HoleDrafts, Unfinished
from engine.models.left_to_right.fim import FimTokens
from engine.models.left_to_right.prompt import FimPrompt, PromptLayout
from engine.models.predict import predict
from engine.models.stock.attention import CausalRows, KeyValues, StockLayers, attend
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill, HoleRequest, ModelInfo

_GROWTH = 256
"""A context's buffer grows by this many tokens: a buffer for the whole window takes much memory in a large model."""


@attrs.frozen
class _Segment:
    """The rows of one pass in the batch, after the first `start` tokens of its context."""

    context: KeyValues
    start: int
    rows: int
    causal: CausalRows


class CausalNetwork(StockLayers):
    """Each hole has its own attention."""

    def new_context(self) -> KeyValues:
        return KeyValues(self.buffer(0))

    @torch.inference_mode()
    def run(self, passes: Sequence[StreamPass]) -> list[Tensor]:
        """Append the tokens of each pass to its context; return its logits [wanted, vocabulary] in fp32.

        A canvas has its rows read causally too; only the timing of passes has one here.
        """
        segments = [self._segment(each) for each in passes]

        def mix(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
            return self._mix(layer, segments, query, key, value, scale)

        rows = self.layers(
            self._integers([token for each in passes for token in (*each.append, *each.canvas)]),
            self._integers([segment.start + row for segment in segments for row in range(segment.rows)]),
            mix,
        )
        for segment, each in zip(segments, passes, strict=True):
            segment.context.tokens += each.append
        return self._wanted_logits(rows, passes, [0] * len(passes))

    def _segment(self, item: StreamPass) -> _Segment:
        """Make room for the rows of a pass in its context, and return where they go."""
        context, start = expect_type(item.context, KeyValues), len(item.context.tokens)
        stop = start + item.rows
        if stop > context.buffer.shape[3]:
            grown = self.buffer(-(-stop // _GROWTH) * _GROWTH)
            grown[:, :, :, :start] = context.buffer[:, :, :, :start]
            context.buffer = grown
        return _Segment(context, start, item.rows, CausalRows(start))

    def _mix(
        self, layer: int, segments: list[_Segment], query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Return the mixed values [rows, heads, width]. A hole's rows see its context and its own rows before them."""
        query, key, value = (heads.transpose(0, 1) for heads in (query, key, value))
        mixed, first = [], 0
        for segment in segments:
            rows, stop = slice(first, first + segment.rows), segment.start + segment.rows
            keys, values = segment.context.buffer[layer].unbind(0)
            keys[:, segment.start : stop], values[:, segment.start : stop] = key[:, rows], value[:, rows]
            mixed.append(attend(query[:, rows], keys[:, :stop], values[:, :stop], scale, segment.causal))
            first = rows.stop
        return torch.cat(mixed)


class QwenFimModel(LeftToRightBase):
    """Implements fill.stream.StreamModel, without canvases: another model drafts. Without one a pass writes a token."""

    canvas_use = CanvasUse()

    def __init__(
        self,
        info: ModelInfo,
        marks: FimTokens,
        network: CausalNetwork,
        tokenizer: Tokenizer,
        token_bytes: TokenBytes,
        drafter: Drafter | None,
        threads: int,
        memory_use: MemoryUse = "windows",
    ) -> None:
        super().__init__(info, tokenizer, token_bytes, marks.ends, threads)
        self.marks, self.mask, self.drafts = marks, self.end, DraftPlanner(0)
        self.drafting = None if drafter is None else Drafting(drafter, tokenizer)
        self.memory_use = memory_use
        self.default = FillStrategy("left-to-right" if drafter is None else "verify")
        special = set(tokenizer.get_added_tokens_decoder())
        nothing = set(range(network.vocabulary)).difference(tokenizer.get_vocab().values())
        self.never = tuple(sorted((special | nothing).difference(marks.ends)))
        """Tokens that no fill may hold."""
        self._forbidden = torch.tensor(self.never, dtype=torch.long, device=network.device)
        self._network = network
        self._prompt = FimPrompt(self._encode, token_bytes.breaks_line, marks, info.reading_tokens)

    def lay_out(self, request: HoleRequest) -> PromptLayout:
        if isinstance(request, Fill):
            self._check(request.rule)  # A strategy that this model does not have is refused before anything is read.
        return self._prompt.lay_out(request)

    def new_context(self) -> KeyValues:
        return self._network.new_context()

    def start_fill(self, task: FillTask) -> Filling:
        self._check(task.strategy.rule)
        if self.drafting is None:
            return start_stream_fill(self, task)
        hole = Unfinished(expect_type(task.layout, PromptLayout).request)
        return start_stream_fill(self, task, HoleDrafts(self.drafting, hole, self.texts_of))

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        own = [expect_type(item, StreamPass) for item in passes]
        logits = torch.cat(self._network.run(own))
        predicted = predict(logits, [item.query for item in own], [len(item.wanted) for item in own], self._forbidden)
        return [PassResult(self._with_one_end(each)) for each in predicted]
