"""A loaded left-to-right model with its drafter."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer

from engine.fill.interface import Filling, FillStrategy, FillTask, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult
from engine.fill.stream import StreamPass
from engine.models.predict import predict
from engine.models.qwen_fim.drafter import Drafter, Unfinished
from engine.models.qwen_fim.drafting import Drafting
from engine.models.qwen_fim.filling import DraftedFilling, DraftedPass, DraftedResult, VerifyingPass
from engine.models.qwen_fim.passes import CausalNetwork
from engine.models.qwen_fim.prompt import FimPrompt, PromptLayout
from engine.models.qwen_fim.special_tokens import FimTokens
from engine.models.stock.key_values import KeyValues
from engine.models.stock.left_to_right import LeftToRightBase
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill, ModelInfo


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

    def lay_out(self, fill: Fill) -> PromptLayout:
        self._check(fill.rule)  # A strategy that this model does not have is refused before anything is read.
        return self._prompt.lay_out(fill)

    def new_context(self) -> KeyValues:
        return self._network.new_context()

    def start_fill(self, task: FillTask) -> Filling:
        self._check(task.strategy.rule)
        unfinished = Unfinished(expect_type(task.layout, PromptLayout).fill)
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
