"""One hole being filled: what is committed so far, and when it ends. A family says how (Model.filling)."""

from abc import ABC, abstractmethod

import attrs
from torch import Tensor

from engine.fill.interface import Context, Layout, Model, Pass
from engine.fill.sampler import Proposal, Sampler
from engine.protocol.messages import Candidate, Extent, Finish


@attrs.frozen
class Hole:
    """A hole as it is laid out, and the bounds of its fill."""

    layout: Layout
    extent: Extent
    max_tokens: int
    min_line_probability: float = 0.0


class FirstLine:
    """How likely the first line of a fill is right, as it grows; see confidence.py."""

    def __init__(self, family: Model) -> None:
        self._family = family
        self._likely, self._begun, self._over = 1.0, False, False

    def likely_with(self, token: int, confidence: float) -> float:
        """Return how likely the line is right with one more token. White space before it and lines behind it do not
        count."""
        blank = not self._family.texts_of([token])[0].strip()
        if self._begun and self._family.breaks_line(token):
            self._over = True
        self._begun = self._begun or not blank
        if self._begun and not self._over:
            self._likely *= confidence
        return self._likely


class Filling(ABC):
    """Fills one hole over one context, a pass at a time.

    `next_pass` says which rows the network should run; `absorb` takes what the family returns for them. Between the
    two a scheduler may run the passes of other holes beside this one.
    """

    def __init__(self, family: Model, context: Context, hole: Hole, sampler: Sampler) -> None:
        self.family, self.context, self.hole, self.sampler = family, context, hole, sampler
        self.tokens: list[int] = []
        self.confidence: list[float] = []
        self._end_confidence = 1.0
        self.finish: Finish | None = None
        self.steps = 0
        self._first_line = FirstLine(family)

    def ends(self, token: int) -> bool:
        """Tell whether the fill stops at `token`: at <end>, and for a hole in one line at a newline."""
        return token == self.family.end or (self.hole.extent == "line" and self.family.breaks_line(token))

    def until_end(self, tokens: list[int]) -> int:
        """Return how many of `tokens` there are up to and with the first that ends the fill; all, if none does."""
        return next((at + 1 for at, token in enumerate(tokens) if self.ends(token)), len(tokens))

    def commit(self, token: int, confidence: float) -> None:
        """Append a token; the end closes the fill and is not part of it."""
        if self.ends(token):
            self.finish, self._end_confidence = "complete", confidence
        else:
            self.append(token, confidence)

    def append(self, token: int, confidence: float) -> None:
        """Append a token that does not end the fill."""
        self.tokens.append(token)
        self.confidence.append(confidence)
        if (
            self.hole.min_line_probability
            and self._first_line.likely_with(token, confidence) < self.hole.min_line_probability
        ):
            self.finish = "unsure"
        elif len(self.tokens) >= self.hole.max_tokens:
            self.finish = "canvas full"

    def verify(self, draft: list[int], proposal: Proposal) -> int:
        """Commit what left to right would have written, and return how much of the draft that was.

        `proposal` has one token for each place of the draft and one more.
        """
        for accepted, drafted in enumerate(draft):
            self.commit(proposal.tokens[accepted], proposal.confidence[accepted])
            if proposal.tokens[accepted] != drafted or self.finish is not None:
                return accepted
        self.commit(proposal.tokens[len(draft)], proposal.confidence[len(draft)])
        return len(draft)

    def close(self, finish: Finish) -> None:
        """End the fill with what is committed."""
        self.finish = self.finish or finish

    def answer(self) -> Candidate:
        """Return what is committed; the text ends at the first gap."""
        written = self._written()
        return Candidate(
            text="".join(text for text, _ in written),
            tokens=[text for text, _ in written],
            confidence=[round(value, 4) for _, value in written],
            finish=self.finish or "deadline",
            end_confidence=round(self._end_confidence, 4),
        )

    def _written(self) -> list[tuple[str, float]]:
        """Return the committed tokens' texts and confidences, without what of them is typed already.

        A token of which nothing is left counts with the one behind it: that the word ends there was a choice too.
        """
        written: list[tuple[str, float]] = []
        typed, sure = len(self.hole.layout.typed), 1.0
        for text, confidence in zip(self.family.texts_of(self.tokens), self.confidence, strict=True):
            sure *= confidence
            if typed and typed >= len(text):
                typed -= len(text)
                continue
            written.append((text[typed:], sure))
            typed, sure = 0, 1.0
        return written

    def canvas(self) -> list[str | None]:
        """Return the fill as it stands for someone who watches: one string a position, None where it is masked."""
        return [text for text, _ in self._written()]

    @abstractmethod
    def next_pass(self) -> Pass:
        """Return the rows of the next pass."""

    @abstractmethod
    def absorb(self, found: Tensor, steps_left: int) -> None:
        """Take what Model.run returned for the last pass; with this step `steps_left` are left in the budget."""
