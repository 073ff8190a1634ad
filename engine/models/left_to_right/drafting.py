"""Drafting: how long the next draft is, who writes it, and how it becomes tokens of the model that verifies it."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol
from weakref import WeakSet

import attrs
from tokenizers import Tokenizer

from engine.fill.draft_planner import Draft, judge
from engine.protocol.messages import HoleRequest

START = 8
LONGEST = 16
"""In tokens. Nine of ten fills of one line are no longer."""
_RECENT = 0.25
_WORTH = 0.5
_LONGEST_PAUSE = 64


class DraftLength:
    """A draft has twice the recent mean of accepted tokens, plus one. So after a draft that was accepted in full, the
    next is longer; after one that was half accepted, the next has the same length.

    When the mean falls below half a token, drafting pauses for 2 passes. Each further draft that is rejected in full
    doubles the pause, up to 64 passes. So a drafter that is always wrong costs one draft in 65 passes, and one that
    becomes right again is noticed.
    """

    def __init__(self) -> None:
        self._mean = START / 2
        self._pause = self._remaining = 0

    def next(self) -> int:
        """Return how many tokens to draft for the next pass of a hole; 0 during a pause."""
        if self._remaining > 0:
            self._remaining -= 1
            return 0
        return min(LONGEST, 1 + round(2 * self._mean))

    def learn(self, accepted: int) -> None:
        """Record how many tokens of a draft were accepted."""
        self._mean += _RECENT * (accepted - self._mean)
        if accepted:
            self._pause = 0
        elif self._mean < _WORTH:
            self._pause = self._remaining = min(_LONGEST_PAUSE, 2 * self._pause or 2)


ROOM = 64
"""Tokens that a drafter keeps free after its context, for the written text and the draft."""


@attrs.define(eq=False)
class Unfinished:
    """A hole with the `text` written in it so far.

    length: how many tokens of a draft are wanted. drafted: the last draft.

    It is one object throughout a fill, so a drafter can keep what it has read under it.
    """

    request: HoleRequest
    text: str = ""
    length: int = 0
    drafted: list[int] = attrs.field(factory=list)

    @property
    def moved(self) -> HoleRequest:
        """The hole with the written text as part of its prefix."""
        return attrs.evolve(self.request, prefix=self.request.prefix + self.text, max_tokens=ROOM)


class Drafter(Protocol):
    """Guesses how holes go on, all of them in one pass."""

    name: str
    tokenizer: Tokenizer

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        """Return for each hole at most `length` of the drafter's own tokens, up to the end that it predicts."""
        ...

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one text a token; together they are the text."""
        ...


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
        self.waiting = WeakSet[Unfinished]()
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


class HoleDrafts:
    """Implements fill.strategies.Guesser: the drafts of one hole."""

    def __init__(self, drafting: Drafting, hole: Unfinished, texts_of: Callable[[Sequence[int]], list[str]]) -> None:
        self._drafting, self._hole, self._texts_of = drafting, hole, texts_of

    def expect(self, written: Sequence[int], room: int) -> None:
        hole, drafting = self._hole, self._drafting
        hole.text = "".join(self._texts_of(written))
        hole.length = min(room, drafting.next_length(hole.text))
        drafting.waiting.add(hole)

    def guess(self) -> Draft:
        drafting = self._drafting
        if self._hole in drafting.waiting:
            holes = list(drafting.waiting)
            drafting.waiting.clear()
            for hole, drafted in zip(holes, drafting.draft(holes), strict=True):
                hole.drafted = drafted
        tokens = self._hole.drafted
        return Draft(tokens, [1.0] * len(tokens))

    def learn(self, guess: Draft, written: Sequence[int], ended: bool) -> None:
        empty_and_right = ended and not guess.tokens  # an empty draft says that nothing follows
        if self._hole.length and not empty_and_right:
            self._drafting.learn(len(guess.tokens), judge(guess.tokens, written)[0])
        self._hole.length = 0


def _text_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the ids of all tokens except added ones, which include the special tokens."""
    added = tokenizer.get_added_tokens_decoder()
    return {text: number for text, number in tokenizer.get_vocab().items() if number not in added}
