"""A left-to-right model with its network and its drafter, and how it fills a hole: a verified draft at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.fill.filling import BaseFilling
from engine.fill.interface import (
    HISTORY,
    Filling,
    FillMemory,
    FillStrategy,
    FillTask,
    MemoryUse,
    Model,
    Pass,
    RowMixture,
    expect_type,
)
from engine.fill.sampler import PassResult, Query
from engine.fill.stream import StreamPass
from engine.models.cuda_graphs.graphs import synchronize
from engine.models.left_to_right.base import LeftToRightBase
from engine.models.left_to_right.drafting import Drafter, Drafting, Unfinished
from engine.models.left_to_right.fim import FimTokens
from engine.models.left_to_right.prompt import FimPrompt, PromptLayout
from engine.models.predict import predict
from engine.models.stock.attention import CausalRows, KeyValues, after_attention, attend, before_attention
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


class CausalNetwork:
    """Rows of all holes share the matrix products. Each hole has its own attention, so nothing is padded."""

    def __init__(self, stock: Any) -> None:
        self._trunk, self._head = stock.model, stock.lm_head
        self._layers: Sequence[Any] = stock.model.layers
        self._key_heads, self._head_width = stock.config.num_key_value_heads, self._layers[0].self_attn.head_dim
        weight: Tensor = stock.model.embed_tokens.weight
        self.vocabulary, self.device, self.dtype = weight.shape[0], weight.device, weight.dtype
        self.parameters = sum(parameter.numel() for parameter in stock.parameters())

    def new_context(self) -> KeyValues:
        return KeyValues(self._buffer(0))

    def _buffer(self, capacity: int) -> Tensor:
        size = (len(self._layers), 2, self._key_heads, capacity, self._head_width)
        return torch.empty(size, dtype=self.dtype, device=self.device)

    @torch.inference_mode()
    def run(self, passes: Sequence[StreamPass]) -> list[Tensor]:
        """Append the tokens of each pass to its context; return its logits [wanted, vocabulary] in fp32."""
        segments = [self._segment(each) for each in passes]
        rows = self._trunk.embed_tokens(self._integers([token for each in passes for token in each.append]))
        positions = [segment.start + row for segment in segments for row in range(segment.rows)]
        cosine, sine = (table[0][:, None] for table in self._trunk.rotary_emb(rows, self._integers(positions)[None]))
        for index, layer in enumerate(self._layers):
            query, key, value = before_attention(layer, rows, cosine, sine)
            mixed = self._mix(index, segments, query, key, value, layer.self_attn.scaling)
            rows = after_attention(layer, rows, mixed)
        wanted: list[int] = []
        start = 0
        for each in passes:
            wanted += [start + row for row in each.wanted]
            start += each.rows
        logits: Tensor = self._head(self._trunk.norm(rows[self._integers(wanted)])).float()
        for segment, each in zip(segments, passes, strict=True):
            segment.context.tokens += each.append
        synchronize(self.device)
        return list(torch.split(logits, [len(each.wanted) for each in passes]))

    def _segment(self, item: StreamPass) -> _Segment:
        """Make room for the rows of a pass in its context, and return where they go."""
        context, start = expect_type(item.context, KeyValues), len(item.context.tokens)
        stop = start + len(item.append)
        if stop > context.buffer.shape[3]:
            grown = self._buffer(-(-stop // _GROWTH) * _GROWTH)
            grown[:, :, :, :start] = context.buffer[:, :, :, :start]
            context.buffer = grown
        return _Segment(context, start, len(item.append), CausalRows(start))

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

    def _integers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)


@attrs.frozen
class VerifyingPass(StreamPass):
    """Reads a draft and predicts what follows each of its tokens. `mixture` has what is known of these rows."""

    mixture: RowMixture | None = attrs.field(kw_only=True)


@attrs.frozen
class DraftedPass(StreamPass):
    """Reads what the context lacks up to the anchor, and after it a draft that the model makes when it runs the pass.

    written: the last tokens before the one that the anchor predicts.
    """

    unfinished: Unfinished = attrs.field(kw_only=True)
    memory: FillMemory | None = attrs.field(kw_only=True)
    written: list[int] = attrs.field(kw_only=True)

    def with_draft(self, draft: list[int]) -> VerifyingPass:
        """Return the pass that also reads `draft` and predicts what follows each of its tokens."""
        append, query, mixture = [*self.append, *draft], self.query, None
        if self.memory is not None:
            known = [*self.written, *draft]
            ends = range(len(self.written), len(known) + 1)
            mixture = self.memory.rows([known[max(0, end - HISTORY) : end] for end in ends], ())
            query = attrs.evolve(query, named=mixture.named)
        wanted = range(len(self.append) - 1, len(append))
        return VerifyingPass(self.context, append, [], wanted, query, mixture=mixture)


@attrs.frozen(kw_only=True)
class DraftedResult(PassResult):
    """The predictions at the anchor and at each token of `draft`."""

    draft: list[int]


class DraftedFilling(BaseFilling):
    """The same answer as left to right, in as many passes as the drafts need.

    Every pass reads the last committed token and a draft after it, causally. Each row predicts the token after it:
    while draft and predictions agree, the draft is what would have been written without it, and the first prediction
    that differs is right as well (speculative decoding, arXiv 2211.17192; with a diffusion model as drafter: DFlash).
    Without a draft a pass commits one token. Drawn tokens are verified as greedy ones are, because the noise of a
    position is the same in every pass."""

    def __init__(
        self, model: Model, task: FillTask, special: FimTokens, unfinished: Unfinished, drafting: Drafting | None
    ) -> None:
        super().__init__(model, task)
        self._special, self._unfinished, self._drafting = special, unfinished, drafting

    def ends(self, token: int) -> bool:
        return token in self._special.ends or super().ends(token)

    def next_pass(self) -> DraftedPass:
        task = self.task
        stream = [*task.layout.context, task.layout.anchor, *self.tokens]
        unread = stream[len(task.context.tokens) :]
        room = task.bounds.max_tokens - len(self.tokens) - 1
        self._unfinished.text = text = "".join(self.vocabulary.texts_of(self.tokens))
        self._unfinished.length = min(room, self._drafting.next_length(text)) if self._drafting is not None else 0
        return DraftedPass(
            task.context,
            unread,
            [],
            [len(unread) - 1],
            Query(task.sampler.top),
            unfinished=self._unfinished,
            memory=task.memory,
            written=[*task.layout.above, *self.tokens][-HISTORY:],
        )

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        position, draft = len(self.tokens), expect_type(result, DraftedResult).draft
        predictions, context = result.predictions, self.task.context
        proposal = self.task.sampler.propose(predictions, range(position, position + len(predictions)))
        anchored = len(context.tokens) - len(draft)
        accepted = self.verify(draft, proposal)
        context.truncate(anchored + accepted)
        empty_and_right = not draft and self.finish is not None  # an empty draft says that nothing follows
        if self._drafting is not None and self._unfinished.length and not empty_and_right:
            self._drafting.learn(len(draft), accepted)


class QwenFimModel(LeftToRightBase):
    """Implements interface.Model. Without a drafter it fills left to right, a token a pass."""

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
        super().__init__(info, tokenizer, token_bytes, threads)
        self.marks, self.end = marks, marks.ends[0]
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
        unfinished = Unfinished(expect_type(task.layout, PromptLayout).request)
        drafting = None if task.strategy.rule == "left-to-right" else self.drafting
        return DraftedFilling(self, task, self.marks, unfinished, drafting)

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        own = [expect_type(item, StreamPass) for item in passes]
        drafts: list[list[int]] = [[] for _ in own]
        asked = [index for index, item in enumerate(own) if isinstance(item, DraftedPass)]
        if self.drafting is not None and asked:
            holes = [item.unfinished for item in own if isinstance(item, DraftedPass)]
            for index, draft in zip(asked, self.drafting.draft(holes), strict=True):
                drafts[index] = draft
        drafted = [
            item.with_draft(draft) if isinstance(item, DraftedPass) else item
            for item, draft in zip(own, drafts, strict=True)
        ]
        logits = torch.cat(self._network.run(drafted))
        counts = [len(item.wanted) for item in drafted]
        predictions = predict(logits, [item.query for item in drafted], counts, self._forbidden)
        mixed = [
            item.mixture.mix(predicted) if isinstance(item, VerifyingPass) and item.mixture is not None else predicted
            for item, predicted in zip(drafted, predictions, strict=True)
        ]
        return [DraftedResult(predictions=each, draft=draft) for each, draft in zip(mixed, drafts, strict=True)]
