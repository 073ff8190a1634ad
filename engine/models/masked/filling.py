"""Filling a hole in place: a middle of masks between prefix and suffix, committed in any order."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import attrs
import numpy as np

from engine.errors import ModelError
from engine.fill.denoise import CommitRule, by_entropy, by_threshold, min_commits
from engine.fill.draft_planner import PassTimer
from engine.fill.filling import BaseFilling
from engine.fill.interface import HISTORY, FillTask, Layout, Model, RowMixture
from engine.fill.sampler import PassResult, Predictions, Proposal, Query
from engine.models.masked.rows import MaskedPass, SurroundingCache
from engine.models.stock.checkpoint import MaskedTokens
from engine.protocol.messages import Extent, Finish

START = 8
"""Masks at first. Half of all fills of one line have at most 7 tokens."""
REFRESH_STEPS = 8
"""Prefix and suffix are read in the first of this many steps, and cached for the others. Most fills of a line take
fewer steps. Fast-dLLM reads them again after each block of 32 tokens."""


@attrs.frozen
class MaskedTraits:
    """`shifted`: the row of a position predicts the token after it. `window`: tokens, the middle included."""

    special: MaskedTokens
    shifted: bool
    window: int
    refresh_steps: int = REFRESH_STEPS
    timer: PassTimer = attrs.field(factory=PassTimer)

    def surroundings(self, layout: Layout, room: int) -> SurroundingCache:
        """Return what surrounds a middle of at most `room` tokens."""
        return SurroundingCache(layout.before, layout.after, self.shifted, room)

    def steps_left(self, steps_left: int, taken_rows: int, next_rows: int) -> int:
        """Return for how many steps of `next_rows` rows there is time, where there is for `steps_left` of `taken_rows`.

        A step that reads prefix and suffix costs many times what the next ones cost. A budget counted in such steps
        would commit doubtful tokens in a hurry.
        """
        cheaper = self.timer.expect(taken_rows) / max(self.timer.expect(next_rows), 1e-6)
        return 1 + int((steps_left - 1) * max(1.0, cheaper))


class Expansion:
    """Grows and shrinks one middle.

    A committed <expand> makes two masks of one. A committed end-of-text token deletes its position and all masks after
    it: the middle needs no more tokens there (pad_eos_to_right of DreamOn's released evaluation). A middle never gets
    longer than `longest`, and expands at most as often. So a fill ends even if it expands and deletes in turn.
    """

    def __init__(self, special: MaskedTokens, longest: int) -> None:
        self._special, self._longest, self._expansions = special, longest, longest

    def room(self, length: int) -> int:
        """Return by how many masks a middle of `length` tokens may grow."""
        return min(self._expansions, self._longest - length)

    def apply(
        self, tokens: list[int | None], confidence: list[float], committed: dict[int, tuple[int, float]]
    ) -> tuple[list[int | None], list[float]]:
        """Return the middle's tokens, None where masked, and their confidences once `committed` is.

        committed: by position, a token and its confidence.
        """
        room = self.room(len(tokens))
        grown: list[int | None] = []
        grown_confidence: list[float] = []
        deleted = False
        for position, known in enumerate(zip(tokens, confidence, strict=True)):
            token, confident = committed.get(position, known)
            if token == self._special.end or (token is None and deleted):
                deleted = True
                continue
            if token == self._special.expand and room > 0:
                room -= 1
                self._expansions -= 1
                grown.append(None)
                grown_confidence.append(0.0)
            grown.append(None if token == self._special.expand else token)
            grown_confidence.append(confident)
        return grown, grown_confidence


class MiddleMemory:
    """Mixes the rows that predict a token whose left side is known: that of the first masked position.

    The text after a mask is not known, so all other rows stay as they are.
    """

    def __init__(self, task: FillTask) -> None:
        self._memory, self._above = task.memory, task.layout.above[-HISTORY:]
        self._mixture: RowMixture | None = None
        self._rows: list[int] = []

    def query(self, query: Query, rows: int, firsts: Sequence[int], written: Sequence[int]) -> Query:
        """Return `query`, about `rows` rows, with the tokens that the mixture needs.

        firsts: which of the rows predict the first masked position, each in a middle of its own. written: the tokens of
        the middle before it.
        """
        if self._memory is None or not firsts:
            self._mixture = None
            return query
        history = [*self._above, *written][-HISTORY:]
        self._rows = list(firsts)
        self._mixture = self._memory.rows([history] * len(firsts), ())
        known = self._mixture.named
        named = np.zeros((rows, known.shape[1]), np.int64)
        named[self._rows] = known
        return attrs.evolve(query, named=named)

    def mixed(self, predictions: Predictions) -> Predictions:
        """Return the predictions of the last query's rows with the memory's share."""
        if self._mixture is None:
            return predictions
        return predictions.with_rows(self._rows, self._mixture.mix(predictions.rows(self._rows)))


LENGTHS: dict[Extent, tuple[int, ...]] = {"line": (8, 4, 16, 32), "lines": (16, 8, 32, 64)}
"""Lengths of the middles that are tried first. Prefix and suffix are read around the first one, the likeliest length:
half of all fills of one line have at most 7 tokens, nine of ten at most 16."""
_UNBOUNDED = 1 << 30


def leftmost(proposal: Proposal, least: int) -> list[int]:
    """Commit the first masked position and no other, however many are due."""
    return [0]


RULES: dict[str, CommitRule] = {"threshold": by_threshold, "entropy": by_entropy, "left-to-right": leftmost}


def rule_of(name: str, model_name: str) -> CommitRule:
    """Return a commit rule. Raises ModelError for "verify"."""
    if name in RULES:
        return RULES[name]
    raise ModelError(
        f'the rule "{name}" needs a model that also reads left to right, which {model_name} does not; '
        f"it has {', '.join(RULES)}"
    )


class MaskedFilling(BaseFilling):
    """The masked-diffusion loop. A position of the middle is None while it is masked.

    How long the middle is: a model with an <expand> token grows and shrinks it (Expansion). Any other takes its
    first step at several lengths at once and goes on with the one that fits best. Whatever ends the fill cuts the
    middle where it is committed: the suffix moves up to it."""

    def __init__(self, model: Model, task: FillTask, traits: MaskedTraits) -> None:
        super().__init__(model, task)
        layout, most = task.layout, task.bounds.max_tokens
        self._traits, self._rule = traits, rule_of(task.strategy.rule, model.info.name)
        self._most_steps = task.strategy.steps or _UNBOUNDED
        longest = max(1, min(most, traits.window - len(layout.before) - len(layout.after)))
        self._surroundings, self._memory = traits.surroundings(layout, longest), MiddleMemory(task)
        self._expansion = None if traits.special.expand is None else Expansion(traits.special, longest)
        tried = LENGTHS[task.bounds.extent] if self._expansion is None else (START,)
        self._lengths = list(dict.fromkeys(min(length, longest) for length in tried))
        self._set_length(self._lengths[0])
        self._ended = False

    def _set_length(self, length: int) -> None:
        self._middle: list[int | None] = [None] * length
        self._middle_confidence = [0.0] * length

    def _masked(self) -> list[int]:
        return [position for position, token in enumerate(self._middle) if token is None]

    @property
    def _tries_lengths(self) -> bool:
        return not self.steps and self._expansion is None

    def next_pass(self) -> MaskedPass:
        traits, surroundings = self._traits, self._surroundings
        mask = traits.special.mask
        reads_surrounding = self.steps % traits.refresh_steps == 0
        if not self._tries_lengths:
            shown = [mask if token is None else token for token in self._middle]
            masked = self._masked()
            wanted = [surroundings.row_of(position, traits.shifted) for position in masked]
            query = self._memory.query(self._query(), len(wanted), [0], shown[: masked[0]])
            return MaskedPass(surroundings, [shown], wanted, reads_surrounding, query)
        wanted, first, firsts = [], 0, []
        for length in self._lengths:
            firsts.append(len(wanted))
            wanted += [first + surroundings.row_of(position, traits.shifted) for position in range(length)]
            first += len(surroundings.anchor) + length
        query = self._memory.query(self._query(), len(wanted), firsts, [])
        return MaskedPass(surroundings, [[mask] * length for length in self._lengths], wanted, True, query)

    def _query(self) -> Query:
        # One more than the sampler needs, so that <expand> can be left out.
        top = max(self.task.sampler.top, 2) if self._expansion is not None else self.task.sampler.top
        return Query(top, self.task.strategy.rule == "entropy")

    def absorb(self, result: PassResult, steps_left: int) -> None:
        predictions = self._memory.mixed(result.predictions)
        left = self._budget(steps_left)
        if self._tries_lengths:
            bounds = pairwise([0, *accumulate(self._lengths)])
            parts = [predictions.part(start, stop) for start, stop in bounds]
            proposals = [self.task.sampler.propose(part, range(len(part))) for part in parts]
            proposal = max(proposals, key=self._fit)
            self._set_length(len(proposal.tokens))
        else:
            proposal = self.task.sampler.propose(self._allowed(predictions, left), self._masked())
        self._settle(proposal, left)

    def _allowed(self, predictions: Predictions, steps_left: int) -> Predictions:
        """Return the predictions without <expand> where the middle must not grow: at its bound, or in the last step."""
        expand, expansion = self._traits.special.expand, self._expansion
        if expand is None or expansion is None or (expansion.room(len(self._middle)) and steps_left > 1):
            return predictions
        return predictions.without(expand)

    def _fit(self, proposal: Proposal) -> tuple[bool, float]:
        """Return how well a length fits: the mean log probability of the proposals up to the first end.

        All lengths share that scale. One position where nothing fits, as in a middle that is too short, weighs in it;
        in a mean of confidences its neighbours would outvote it. A middle that ends before it begins comes last."""
        stop = self.count_to_end(proposal.tokens)
        empty = self.ends(proposal.tokens[0])
        return not empty, sum(math.log(max(each, 1e-12)) for each in proposal.confidence[:stop]) / stop

    def _budget(self, steps_left: int) -> int:
        """Return how many steps are left in the budgets of time and of steps, the one just taken included."""
        taken = self.next_pass()
        if taken.reads_surrounding:
            steps_left = self._traits.steps_left(steps_left, taken.rows, taken.rows - len(self._surroundings.fixed))
        return max(1, min(steps_left, self._most_steps - self.steps))

    def _settle(self, proposal: Proposal, steps_left: int) -> None:
        """Commit what the rule believes in, among the proposals up to the first end."""
        masked = self._masked()
        self.steps += 1
        stop = self.count_to_end(proposal.tokens)
        chosen = self._rule(proposal.part(0, stop), min_commits(stop, steps_left))
        self._place({masked[rank]: (proposal.tokens[rank], proposal.confidence[rank]) for rank in chosen})
        self._cut()
        if None not in self._middle:
            full = not self._ended and len(self._middle) >= self.task.bounds.max_tokens
            self.close("canvas full" if full else "complete")

    def _place(self, committed: dict[int, tuple[int, float]]) -> None:
        if self._expansion is not None:
            grown = self._expansion.apply(self._middle, self._middle_confidence, committed)
            self._middle, self._middle_confidence = grown
            return
        for position, (token, confidence) in committed.items():
            self._middle[position], self._middle_confidence[position] = token, confidence

    def _cut(self) -> None:
        for position, token in enumerate(self._middle):
            if token is not None and self.ends(token):
                kept = position + (self.ends_line(token) and self.keeps(token))
                del self._middle[kept:], self._middle_confidence[kept:]
                self._ended = True
                return

    def ends(self, token: int) -> bool:
        if self._expansion is not None:  # The end token deletes a position there. Only a newline ends the fill.
            return self.ends_line(token)
        return super().ends(token) or token in self._traits.special.padding

    def close(self, finish: Finish) -> None:
        """End with what is committed up to the first gap."""
        if self.finish is None:
            gapless = next(iter(self._masked()), len(self._middle))
            self.tokens = [token for token in self._middle[:gapless] if token is not None]
            self.confidence = self._middle_confidence[:gapless]
        super().close(finish)

    def canvas(self) -> list[str | None]:
        if self.finish is not None:
            return super().canvas()
        return [None if token is None else self.vocabulary.texts_of([token])[0] for token in self._middle]
