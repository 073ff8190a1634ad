"""A loaded left-to-right model with its drafter."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer
from torch import Tensor

from engine.errors import ModelError
from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context, Pass, expect_type
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.fill.stream import StreamPass
from engine.models.qwen_fim.drafter import Drafter, Unfinished
from engine.models.qwen_fim.drafting import Drafting
from engine.models.qwen_fim.filling import DraftedFilling, DraftedPass
from engine.models.qwen_fim.passes import CausalNetwork
from engine.models.qwen_fim.prompt import FimPrompt, PromptLayout
from engine.models.qwen_fim.special_tokens import FimTokens
from engine.models.stock.key_values import KeyValues
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill, ModelInfo, RuleName

_WAYS = ("verify", "left-to-right")


class QwenFimModel:
    """Implements models.base.Model. `drafter` None fills left to right, a token a pass."""

    def __init__(
        self,
        info: ModelInfo,
        marks: FimTokens,
        network: CausalNetwork,
        tokenizer: Tokenizer,
        pieces: TokenBytes,
        drafter: Drafter | None,
        threads: int,
    ) -> None:
        self.info, self.marks, self.threads, self.end = info, marks, threads, marks.ends[0]
        self.drafting = None if drafter is None else Drafting(drafter, tokenizer)
        self.default = FillStrategy("left-to-right" if drafter is None else "verify")
        special = set(tokenizer.get_added_tokens_decoder())
        nothing = set(range(network.vocabulary)).difference(tokenizer.get_vocab().values())
        self.never = tuple(sorted((special | nothing).difference(marks.ends)))
        self._network, self._tokenizer, self._pieces = network, tokenizer, pieces
        self._prompt = FimPrompt(self._encode, pieces.breaks_line, marks, info.reading_tokens)

    def lay_out(self, fill: Fill) -> PromptLayout:
        self._check(fill.rule)  # A way that this family does not have is refused before anything is read.
        return self._prompt.lay_out(fill)

    def _check(self, rule: RuleName) -> None:
        if rule not in ("default", *_WAYS):
            raise ModelError(
                f'the rule "{rule}" needs a model that denoises, which {self.info.name} does not; '
                f"it has {', '.join(_WAYS)}"
            )

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def new_context(self) -> KeyValues:
        return self._network.new_context()

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def filling(self, context: Context, hole: Hole, sampler: Sampler, way: FillStrategy) -> Filling:
        self._check(way.rule)
        unfinished = Unfinished(expect_type(hole.layout, PromptLayout).fill)
        drafting = None if way.rule == "left-to-right" else self.drafting
        return DraftedFilling(self, context, hole, sampler, unfinished, drafting)

    def run(self, passes: Sequence[Pass]) -> list[Tensor]:
        own = [expect_type(item, StreamPass) for item in passes]
        if self.drafting is not None:
            drafted = [item for item in own if isinstance(item, DraftedPass)]
            drafts = self.drafting.draft([item.unfinished for item in drafted])
            for item, draft in zip(drafted, drafts, strict=True):
                item.add(draft)
        return self._network.run(own)

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._pieces.texts_of(tokens)

    def breaks_line(self, token: int) -> bool:
        return self._pieces.breaks_line(token)
