"""Which tokens the next pass drafts and how wide its canvas is: whatever brings the most tokens a millisecond.

A pass costs the reading of the weights; rows beside it are nearly free, until arithmetic takes over. Where that is
differs between machines, so passes are timed: some after the warm-up (schedule/warm_up.py), and each one that runs
(PassTimer). Nothing here changes a text: what is drafted is verified.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import attrs
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

TIMED_ROWS = (1, 2, 4, 8, 12, 16)
"""Rows of the passes that are timed."""
UNTIMED = {1: 1.0, 16: 1.5}
"""Milliseconds assumed until passes are timed. Only ratios count."""
MOST_MASKS = 16
RIGHT = 0.7
"""How often a canvas's guess is right if the guesses before it are; assumed until some are verified, unless a model
says better."""
TRUST = 0.9
"""How often the memory's guesses are right, as a share of what it claims; assumed likewise. A run that was seen once is
claimed to go on with certainty."""
PRIOR = 20.0
"""How many verified guesses the two assumptions weigh as much as."""
KEPT = 0.98
"""Earlier counts decay by this factor a pass, so canvases that they rejected are tried again in time."""


@attrs.frozen
class Draft:
    """Guessed tokens. `probabilities` has one for each token, given that those before it are right. `end` is the
    probability that the fill ends after them: 0 unless that is the next guess."""

    tokens: list[int] = attrs.field(factory=list)
    probabilities: list[float] = attrs.field(factory=list)
    end: float = 0.0

    def cut(self, length: int) -> "Draft":
        """Return the first `length` tokens, or all with their end."""
        if length >= len(self.tokens):
            return self
        return Draft(self.tokens[:length], self.probabilities[:length])

    def after(self, length: int) -> "Draft":
        """Return what comes after the first `length` tokens."""
        return Draft(self.tokens[length:], self.probabilities[length:], self.end)

    def followed_by(self, other: "Draft") -> "Draft":
        """Return the tokens of both, one after the other."""
        return Draft([*self.tokens, *other.tokens], [*self.probabilities, *other.probabilities], other.end)

    def agreeing(self, other: "Draft") -> "Draft | None":
        """Return the longer draft if it begins as the shorter one, each token as likely as the surer of both says.

        Returns None if they disagree. An end at the shorter draft's end counts where it is likelier than the next
        token.
        """
        longer, shorter = (self, other) if len(self.tokens) >= len(other.tokens) else (other, self)
        length = len(shorter.tokens)
        if longer.tokens[:length] != shorter.tokens:
            return None
        surer = [max(pair) for pair in zip(longer.probabilities, shorter.probabilities, strict=False)]
        if length == len(longer.tokens):
            return Draft(longer.tokens, surer, max(longer.end, shorter.end))
        if shorter.end > longer.probabilities[length]:
            return Draft(shorter.tokens, surer, shorter.end)
        return Draft(longer.tokens, [*surer, *longer.probabilities[length:]], longer.end)


@attrs.frozen
class DraftPlan:
    """What a pass reads after the anchor: a draft, and a canvas of `masks` masks."""

    draft: Draft = attrs.field(factory=Draft)
    masks: int = 0


class DraftPlanner:
    """Weighs drafts by what passes cost on this machine, and by how often guesses were right in this process."""

    def __init__(
        self, most_masks: int = MOST_MASKS, milliseconds: Mapping[int, float] = UNTIMED, right: float = RIGHT
    ) -> None:
        """`most_masks` bounds the canvas, to MOST_MASKS at most. milliseconds: see `time`. right: see RIGHT."""
        self._masks = np.arange(1 + min(most_masks, MOST_MASKS))
        self._assumed = PRIOR * right
        self._right = np.full(MOST_MASKS, self._assumed)
        self._guessed = np.full(MOST_MASKS, PRIOR)
        self._remembered, self._claimed = PRIOR * TRUST, PRIOR
        self.time(milliseconds)

    def time(self, milliseconds: Mapping[int, float]) -> None:
        """Take the measured milliseconds of passes, by their number of rows.

        A pass counts as no slower than a wider one: what else runs on the machine only adds to a time.
        """
        self._rows = np.array(sorted(milliseconds), np.float64)
        times = np.array([milliseconds[int(rows)] for rows in self._rows])
        self._times = np.minimum.accumulate(times[::-1])[::-1]
        between = (self._times[-1] - self._times[0]) / max(1.0, self._rows[-1] - self._rows[0])
        self.row_cost = float(between / self._times[0])
        """What one more row costs, as a share of a pass of one row. A guess that is less likely is not worth it."""

    @property
    def trust(self) -> float:
        """What the memory's probabilities are worth; its guesses are to be given with those times this."""
        return min(1.0, self._remembered / self._claimed)

    def plan(self, drafts: Sequence[Draft], room: int) -> DraftPlan:
        """Return the draft to read, cut where reading on does not pay, and the width of the canvas after it.

        Both together have at most `room` tokens. A pass commits one token and those of the draft that are right, and if
        all of them are, what the canvas guesses is the next draft. So tokens a millisecond are those of the pass plus
        those expected of its canvas, over the time of the rows of both.
        """
        weighed = [self._weighed(draft, room) for draft in drafts]
        best = max(range(len(drafts)), key=lambda index: weighed[index][0])
        _, length, masks = weighed[best]
        return DraftPlan(drafts[best].cut(length), masks)

    def _weighed(self, draft: Draft, room: int) -> tuple[float, int, int]:
        """Return the most tokens a millisecond with a draft, its length for that, and the width of the canvas."""
        lengths = np.arange(1 + min(len(draft.tokens), room))
        reached = np.cumprod([1.0, *draft.probabilities[: len(lengths) - 1]])
        expected = self._expected()
        # Where the fill ends with the draft, a canvas can bring no more than what the draft still has.
        ended = expected[np.minimum(self._masks, len(draft.tokens) - lengths[:, None])]
        canvas = reached[:, None] * (draft.end * ended + (1 - draft.end) * expected[self._masks])
        rows = 1 + lengths[:, None] + self._masks
        rate = (reached.cumsum()[:, None] + canvas) / self._milliseconds(rows + canvas)
        rate[rows > 1 + room] = 0
        length, masks = np.unravel_index(rate.argmax(), rate.shape)
        return float(rate[length, masks]), int(length), int(masks)

    def _milliseconds(self, rows: Numbers) -> Numbers:
        beyond = np.maximum(rows - self._rows[-1], 0) * self.row_cost * self._times[0]
        times: Numbers = np.interp(rows, self._rows, self._times) + beyond
        return times

    def _expected(self) -> Numbers:
        """Return how many tokens of a canvas are right before the first wrong one, by its width from 0 on."""
        right = np.cumprod(self._right / self._guessed)
        return np.concatenate(([0.0], right.cumsum()))

    def learn(self, canvas: Draft, remembered: Draft, written: Sequence[int]) -> None:
        """Count how much was right of what a canvas and the memory guessed where `written` was committed."""
        remembered_right, judged = judge(remembered.tokens, written)
        claimed = sum(remembered.probabilities[:judged]) / self.trust
        self._remembered = KEPT * self._remembered + (1 - KEPT) * PRIOR * TRUST + remembered_right
        self._claimed = KEPT * self._claimed + (1 - KEPT) * PRIOR + claimed
        right, judged = judge(canvas.tokens[:MOST_MASKS], written)
        self._right = KEPT * self._right + (1 - KEPT) * self._assumed
        self._guessed = KEPT * self._guessed + (1 - KEPT) * PRIOR
        self._right[:right] += 1
        self._guessed[:judged] += 1


def judge(guessed: Sequence[int], written: Sequence[int]) -> tuple[int, int]:
    """Return how many guesses are right before the first wrong one, and how many are known to be right or wrong."""
    pairs = list(zip(guessed, written, strict=False))
    right = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return right, min(right + 1, len(pairs))


_MOST_TIMES = 4.0
"""A pass counts as at most so many times the mean: the process may have been suspended."""
_COLD = 3
"""The fastest of so many first passes counts: they touch memory and code for the first time."""


class PassTimer:
    """A running mean of milliseconds a pass, by its number of rows rounded up to a power of two."""

    def __init__(self) -> None:
        self._mean: dict[int, float] = {}
        self._recorded: dict[int, int] = {}

    @staticmethod
    def bucket(rows: int) -> int:
        return 1 << max(0, rows - 1).bit_length()

    def record(self, rows: int, milliseconds: float) -> None:
        bucket = self.bucket(rows)
        known = self._mean.get(bucket, milliseconds)
        self._recorded[bucket] = self._recorded.get(bucket, 0) + 1
        if self._recorded[bucket] <= _COLD:
            self._mean[bucket] = min(known, milliseconds)
        else:
            self._mean[bucket] = known + 0.2 * (min(milliseconds, _MOST_TIMES * known) - known)

    def expect(self, rows: int) -> float:
        """Return the milliseconds that a pass of `rows` rows should take; 0.0 while nothing is measured."""
        if not self._mean:
            return 0.0
        bucket = self.bucket(rows)
        nearest = min(self._mean, key=lambda known: abs(known - bucket))
        return self._mean[nearest]

    def table(self) -> dict[str, float]:
        return {str(bucket): round(mean, 3) for bucket, mean in sorted(self._mean.copy().items())}
