"""The embedded model: our own small network, run row by row over each hole's own context, without transformers."""

import json
from collections.abc import Sequence

import attrs
import numpy as np
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.fill.draft_planner import DraftPlanner
from engine.fill.follows import FOLLOWS
from engine.fill.interface import Context, Filling, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult
from engine.fill.strategies import DEFAULT, start_stream_fill
from engine.fill.stream import CanvasUse, StreamPass
from engine.models.embedded.layout import (
    Anchor,
    CompatibleTokens,
    Limits,
    LineEncoder,
    SpecialTokens,
    lay_out,
    unfinished,
)
from engine.models.embedded.runner import Runner
from engine.models.embedded.shape import Floats, Shape
from engine.models.stock.token_bytes import OfTokenBytes, TokenBytes
from engine.protocol.messages import HoleRequest, ModelInfo, Snippet, left_edge

CANVAS_RIGHT = 0.25
"""draft_planner.RIGHT of the shipped network. With a higher one its short fills take longer than left to right."""
CLIP = 24_000
"""Characters of a suffix, and half of those of a prefix, at most. The memory knows all of it; the context has less."""


FAMILY = "midspan"
"""What config.json calls this kind of model."""


@attrs.frozen
class Card:
    """The fields of config.json.

    related_tokens: of the context, those for related code where there is any. anchor: see layout.Anchor.
    """

    family: str
    name: str
    licence: str
    shape: Shape
    marks: SpecialTokens
    below_tokens: int
    related_tokens: int = 0
    anchor: Anchor = "mark"

    def limits(self, fill_tokens: int, snippets: Sequence[Snippet]) -> Limits:
        """Return the limits of a layout that leaves room for so many tokens of a fill."""
        related = self.related_tokens if snippets else 0
        own = self.shape.context_tokens - related
        return Limits.of(own - min(fill_tokens, own // 4) - 1, self.below_tokens, related)


def config_of(card: Card) -> str:
    """Return the text of config.json for a card."""
    return json.dumps(attrs.asdict(card), indent=2) + "\n"


class EmbeddedModel(OfTokenBytes):
    """Implements fill.stream.StreamModel.

    The runner computes passes: in the kernel, in NumPy or in torch. This class does not import torch.
    """

    def __init__(
        self, card: Card, runner: Runner, tokenizer: Tokenizer, token_bytes: TokenBytes, parameters: int, threads: int
    ) -> None:
        self.card, self.threads, self.runner = card, threads, runner
        self.tokenizer, self._positions = tokenizer, card.shape.positions
        special = card.marks
        self.mask, self.end = special.mask, special.end
        self.default, self.drafts = DEFAULT, DraftPlanner(card.shape.canvas_tokens, right=CANVAS_RIGHT)
        self.canvas_use = CanvasUse()
        self.memory_use: MemoryUse = "all" if card.related_tokens else "mixture"
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
        self._encode = LineEncoder(tokenizer, self._token_bytes)

    def lay_out(self, request: HoleRequest) -> Layout:
        limits = self.card.limits(request.max_tokens, request.snippets)
        prefix, suffix = _clip(request.prefix).replace("\r\n", "\n"), request.suffix[:CLIP].replace("\r\n", "\n")
        typed = unfinished(self.tokenizer, prefix)
        above = prefix[: len(prefix) - len(typed)]
        card = self.card
        stream = lay_out(self._encode, card.marks, limits, above, suffix, request.path, request.snippets, card.anchor)
        _, newline, rest = suffix.partition("\n")
        below = self._encode(newline + rest)
        return Layout(
            context=stream.tokens,
            typed=typed,
            above=stream.all_above,
            below=below,
            anchor=stream.anchor,
            follows=None if stream.anchor == card.marks.middle else below[:FOLLOWS],
        )

    def new_context(self) -> Context:
        return self.runner.new_context()

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def start_fill(self, task: FillTask) -> Filling:
        # The anchor, and a canvas after the last token.
        room = self._positions - len(task.layout.context) - 1 - self.card.shape.canvas_tokens
        return start_stream_fill(self, task.within(room))

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        stream_passes = [expect_type(item, StreamPass) for item in passes]
        self._check_room(stream_passes)
        predicted = self.runner.predict(stream_passes)
        _append(stream_passes)
        return [PassResult(each) for each in predicted]

    def logits(self, passes: Sequence[StreamPass]) -> list[Floats]:
        """Run passes and return for each its logits [wanted, vocabulary]."""
        self._check_room(passes)
        logits = self.runner.logits(passes)
        _append(passes)
        return np.split(logits, np.cumsum([len(item.wanted) for item in passes])[:-1])

    def _check_room(self, passes: Sequence[StreamPass]) -> None:
        """Raise ModelError where a context with a pass is too long."""
        capacity = self._positions
        for item in passes:
            if (needed := len(item.context.tokens) + item.rows) > capacity:
                raise ModelError(f"a hole needs {needed} positions; the model has {capacity}")

    def compatible_tokens(self, typed: bytes) -> list[int]:
        return self._compatible.of(typed)


def _clip(prefix: str) -> str:
    """Drop the start of a very long prefix in large strides, so that the cut seldom moves while somebody types."""
    return prefix[left_edge(len(prefix), 2 * CLIP, CLIP) :]


def _append(passes: Sequence[StreamPass]) -> None:
    """Add what passes append to their contexts, once they have run."""
    for item in passes:
        item.context.tokens += item.append
