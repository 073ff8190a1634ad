"""A loaded masked family: the prefix, a middle of masks, and the suffix in place behind it, all seen by all."""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs
from tokenizers import Tokenizer
from torch import Tensor

from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context, Layout, Pass, expect_type
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.models.masked.cuda_graph import CapturedMiddles
from engine.models.masked.passes import MaskedNetwork
from engine.models.masked.rows import MaskedPass
from engine.models.masked.surrounding_cache import SurroundingCache
from engine.models.masked.ways import begin
from engine.models.masked.window import cut
from engine.models.stock.family import MaskedTokens
from engine.models.stock.snippets import heading, related_tokens
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill, ModelInfo
from engine.schedule.pass_timer import PassTimer

REFRESH_STEPS = 8
"""The sides are read in the first of so many steps, and kept in the others. Most fills of a line take fewer; Fast-dLLM
reads them again after each block of 32 tokens."""
_TOKEN_CHARACTERS = 8
"""Tokens are shorter than that on average: what lies further off than so many characters a token is not even read."""


@attrs.define
class NoContext:
    """Implements models.base.Context for families that read nothing causally."""

    tokens: list[int] = attrs.field(factory=list)
    bytes: int = 0

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> NoContext:
        return NoContext()


@attrs.frozen
class Trait:
    """What a family's fills need to know of it. `window` is in tokens, the middle among them."""

    marks: MaskedTokens
    shifted: bool
    window: int


class MaskedModel:
    """Implements models.base.Model."""

    def __init__(
        self,
        info: ModelInfo,
        trait: Trait,
        network: MaskedNetwork,
        tokenizer: Tokenizer,
        pieces: TokenBytes,
        threads: int,
        refresh_steps: int = REFRESH_STEPS,
    ) -> None:
        self.info, self.trait, self.threads, self.refresh_steps = info, trait, threads, refresh_steps
        self.default = FillStrategy("threshold")
        self.end = trait.marks.end
        allowed = {self.end, *trait.marks.padding, trait.marks.expand}
        known = tokenizer.get_vocab().values()
        special = set(tokenizer.get_added_tokens_decoder())
        nothing = set(range(network.vocabulary)).difference(known)
        self.never = tuple(sorted((special | nothing) - allowed))
        self._network, self.tokenizer, self._pieces = network, tokenizer, pieces
        self._clock = PassTimer()
        self.captured = CapturedMiddles(network) if network.device.type == "cuda" else None
        """Runs steps as captured graphs, on a GPU."""

    def lay_out(self, fill: Fill) -> Layout:
        marks = self.trait.marks
        begin, end = ([marks.begin], [marks.end]) if marks.begin is not None else ([], [])
        window = min(self.trait.window, self.info.reading_tokens or self.trait.window)
        room = window - min(fill.max_tokens, window // 2) - len(begin) - len(end)
        reach = room * _TOKEN_CHARACTERS
        prefix, suffix = fill.prefix[-reach:].replace("\r\n", "\n"), fill.suffix[:reach].replace("\r\n", "\n")
        before, after = cut(self._encode(prefix), self._encode(suffix), room)
        if fill.snippets and fill.path:
            named = self._encode(heading(fill.path))
            left = min(room // 2, room - len(before) - len(after)) - len(named)
            if related := related_tokens(self._encode, fill.snippets, left):
                before = [*related, *named, *before]
        return Layout(context=[], before=[*begin, *before], after=[*after, *end])

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def new_context(self) -> NoContext:
        return NoContext()

    def read(self, context: Context, tokens: list[int]) -> Pass:
        raise TypeError("a masked family lays out no context, and reads none")

    def filling(self, context: Context, hole: Hole, sampler: Sampler, way: FillStrategy) -> Filling:
        return begin(self, context, hole, sampler, way)

    def sides(self, layout: Layout, room: int) -> SurroundingCache:
        """Return a hole's sides, around a middle of at most `room` tokens."""
        return SurroundingCache(layout.before, layout.after, self.trait.shifted, room)

    def run(self, passes: Sequence[Pass]) -> list[Tensor]:
        own = [expect_type(item, MaskedPass) for item in passes]
        started = time.perf_counter()
        logits = None if self.captured is None else self.captured.run(own)
        if logits is None:
            logits = self._network.run(own)
        self._clock.record(sum(item.rows for item in own), (time.perf_counter() - started) * 1000)
        return logits

    def steps_left(self, steps_left: int, taken: int, following: int) -> int:
        """Return how many steps of `following` rows there is time for where there is for `steps_left` of `taken` rows.

        A step that reads the sides costs many times what the next ones cost; a budget counted in it would commit
        half-known tokens in a hurry.
        """
        cheaper = self._clock.expect(taken) / max(self._clock.expect(following), 1e-6)
        return 1 + int((steps_left - 1) * max(1.0, cheaper))

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._pieces.texts_of(tokens)

    def breaks_line(self, token: int) -> bool:
        return self._pieces.breaks_line(token)
