"""The drafter's guesses as tokens of the model that verifies them."""

import logging
from collections.abc import Sequence

from tokenizers import Tokenizer

from engine.models.qwen_fim.draft_length import DraftLength
from engine.models.qwen_fim.drafter import Drafter, Unfinished

_SPLIT = "�"
"""What a character shows as of which only some bytes are there."""
_log = logging.getLogger(__name__)


class Drafting:
    """Drafts for all holes of a model. What it does decides how many passes a fill takes, and never what it says.

    Where both tokenizers have the same tokens a draft's ids are taken as they are; else its text is tokenized anew. A
    drafter that fails is dropped until the engine starts again: the holes are filled without drafts.
    """

    def __init__(self, drafter: Drafter, tokenizer: Tokenizer) -> None:
        self.drafter: Drafter | None = drafter
        self.drafted = self.accepted = 0
        """Tokens so far."""
        self._tokenizer, self._length = tokenizer, DraftLength()
        self.same_tokens = _text_tokens(drafter.tokenizer) == _text_tokens(tokenizer)

    def next_length(self, text: str) -> int:
        """Return how many tokens to ask for behind `text`; 0 where it ends inside a character: no drafter can."""
        return 0 if self.drafter is None or text.endswith(_SPLIT) else self._length.next()

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        """Return a draft of at most `length` tokens for each hole."""
        drafts: list[list[int]] = [[] for _ in holes]
        asked = [at for at, hole in enumerate(holes) if hole.length > 0]
        if self.drafter is None or not asked:
            return drafts
        try:
            found = self.drafter.draft([holes[at] for at in asked])
            for at, tokens in zip(asked, found, strict=True):
                drafts[at] = self._own(self.drafter, tokens)[: holes[at].length]
        except Exception:
            _log.exception("the drafter %s failed and is dropped; holes are filled without drafts", self.drafter.name)
            self.drafter = None
        return drafts

    def _own(self, drafter: Drafter, tokens: list[int]) -> list[int]:
        if self.same_tokens:
            return tokens
        text = "".join(drafter.texts_of(tokens)).partition(_SPLIT)[0]
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def learn(self, drafted: int, accepted: int) -> None:
        """Take how many tokens a draft had, and how many of them were accepted."""
        self.drafted += drafted
        self.accepted += accepted
        self._length.learn(accepted)


def _text_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the ids of all tokens that stand for text, without the marks."""
    marks = tokenizer.get_added_tokens_decoder()
    return {text: number for text, number in tokenizer.get_vocab().items() if number not in marks}
