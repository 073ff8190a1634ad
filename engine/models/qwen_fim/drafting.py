"""Turns the drafter's guesses into tokens of the model that verifies them."""

import logging
from collections.abc import Sequence

from tokenizers import Tokenizer

from engine.models.qwen_fim.draft_length import DraftLength
from engine.models.qwen_fim.drafter import Drafter, Unfinished

_SPLIT = "�"
"""The text of a character of which some bytes are missing."""
_log = logging.getLogger(__name__)


class Drafting:
    """Drafts for all holes of a model. It decides how many passes a fill takes, but never its text.

    If both tokenizers have the same tokens, a draft's ids are used directly; otherwise its text is tokenized again. A
    drafter that fails is dropped until the engine restarts, and holes are filled without drafts.
    """

    def __init__(self, drafter: Drafter, tokenizer: Tokenizer) -> None:
        self.drafter: Drafter | None = drafter
        self.drafted = self.accepted = 0
        """Tokens so far."""
        self._tokenizer, self._length = tokenizer, DraftLength()
        self.same_tokens = _text_tokens(drafter.tokenizer) == _text_tokens(tokenizer)

    def next_length(self, text: str) -> int:
        """Return how many tokens to draft after `text`; 0 if it ends inside a character: no drafter can continue it."""
        return 0 if self.drafter is None or text.endswith(_SPLIT) else self._length.next()

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        """Return for each hole a draft of at most `length` tokens."""
        drafts: list[list[int]] = [[] for _ in holes]
        indexes = [index for index, hole in enumerate(holes) if hole.length > 0]
        if self.drafter is None or not indexes:
            return drafts
        try:
            results = self.drafter.draft([holes[index] for index in indexes])
            for index, tokens in zip(indexes, results, strict=True):
                drafts[index] = self._translated(self.drafter, tokens)[: holes[index].length]
        except Exception:
            _log.exception("the drafter %s failed and is dropped; holes are filled without drafts", self.drafter.name)
            self.drafter = None
        return drafts

    def _translated(self, drafter: Drafter, tokens: list[int]) -> list[int]:
        if self.same_tokens:
            return tokens
        text = "".join(drafter.texts_of(tokens)).partition(_SPLIT)[0]
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def learn(self, drafted: int, accepted: int) -> None:
        """Record how many tokens a draft had, and how many of them were accepted."""
        self.drafted += drafted
        self.accepted += accepted
        self._length.learn(accepted)


def _text_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the ids of all tokens except added ones, which include the special tokens."""
    added = tokenizer.get_added_tokens_decoder()
    return {text: number for text, number in tokenizer.get_vocab().items() if number not in added}
