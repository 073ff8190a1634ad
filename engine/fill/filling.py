"""What all fills share: which tokens are committed, when a fill ends, and what it answers."""

from abc import ABC, abstractmethod

from engine.fill.interface import Committed, FillTask, Pass, Vocabulary
from engine.fill.sampler import Branch, PassResult, Predictions, Proposal, TokenSource, main_source
from engine.protocol.confidence import GrowingLine
from engine.protocol.messages import Candidate, Cell, Finish

LEAST_BRANCH = 1e-3
"""The least probability of a token that another candidate begins with. Incompatible ones have next to none."""


class BaseFilling(ABC):
    """Implements interface.Filling but for the passes. Each strategy of each model is one subclass."""

    def __init__(self, vocabulary: Vocabulary, task: FillTask) -> None:
        self.vocabulary, self.task = vocabulary, task
        self.tokens: list[int] = []
        self.confidence: list[float] = []
        self.sources: list[TokenSource] = []
        """Where each committed token comes from; empty without a memory."""
        self.finish: Finish | None = None
        self.steps = 0
        self.unwritten = task.layout.typed.encode()
        """The typed text at the cursor that the committed tokens do not cover yet. While there is some, the next token
        must be compatible with it, and nothing ends the fill (models/embedded/layout.py)."""
        self._continues: list[float] = []
        self._others: list[list[tuple[int, float]]] = []
        self._end_confidence, self._end_continues = 1.0, 0.0
        self._first_line = GrowingLine()
        self._verified: set[int] = set()
        """Which committed tokens a draft had too."""

    def ends(self, token: int) -> bool:
        """Return whether `token` ends the fill: the end token does, and a newline where the hole is in one line."""
        one_line = self.task.bounds.extent == "line"
        return token == self.vocabulary.end or (one_line and self.vocabulary.breaks_line(token))

    def count_to_end(self, tokens: list[int]) -> int:
        """Return how many of `tokens` there are up to the first that ends the fill, that one included."""
        return next((index + 1 for index, token in enumerate(tokens) if self.ends(token)), len(tokens))

    def commit(self, token: int, confidence: float, continues: float = 0.0) -> None:
        """Append a token. A token that ends the fill is not part of it. continues: see Predictions."""
        if self.unwritten:  # A typed newline is not the end of the line to fill.
            self.unwritten = self.unwritten[len(self.vocabulary.bytes_of(token)) :]
            self.append(token, confidence, continues)
        elif self.ends(token):
            self.finish, self._end_confidence, self._end_continues = "complete", confidence, continues
        else:
            self.append(token, confidence, continues)

    def append(self, token: int, confidence: float, continues: float = 0.0) -> None:
        """Append a token that does not end the fill. A doubtful first line or the length may end it."""
        self.tokens.append(token)
        self.confidence.append(confidence)
        self._continues.append(continues)
        if self._doubtful(token, confidence):
            self.finish = "unsure"
        elif len(self.tokens) >= self.task.bounds.max_tokens:
            self.finish = "canvas full"

    def _doubtful(self, token: int, confidence: float) -> bool:
        """Return whether the first line with one more token is less likely right than the caller asks for."""
        least = self.task.bounds.min_line_probability
        if not least:
            return False
        text, breaks_line = self.vocabulary.texts_of([token])[0], self.vocabulary.breaks_line(token)
        return self._first_line.add(text, confidence, breaks_line) < least

    def commit_next(self, predictions: Predictions) -> None:
        """Commit the token that the first row of `predictions` proposes."""
        proposal = self.task.sampler.propose(predictions.part(0, 1), [len(self.tokens)])
        self._commit_of(proposal, 0)

    def verify(self, draft: list[int], proposal: Proposal) -> int:
        """Commit what left to right would have written; return how many tokens of the draft that is.

        `proposal` has one token for each position of the draft, and one more.
        """
        for accepted, drafted in enumerate(draft):
            self._commit_of(proposal, accepted)
            if proposal.tokens[accepted] != drafted or self.finish is not None:
                return accepted
        self._commit_of(proposal, len(draft))
        return len(draft)

    def _commit_of(self, proposal: Proposal, position: int) -> None:
        self._others += proposal.others[position : position + 1]
        self.commit(proposal.tokens[position], proposal.confidence[position], proposal.continues[position])

    def close(self, finish: Finish) -> None:
        """End the fill with what is committed."""
        self.finish = self.finish or finish

    def answer(self) -> Candidate:
        """Return what is committed. The text ends at the first gap."""
        written = self._untyped()
        return Candidate(
            text="".join(text for text, _ in written),
            tokens=[text for text, _ in written],
            confidence=[round(confidence, 4) for _, confidence in written],
            finish=self.finish or "deadline",
            end_confidence=round(self._end_confidence, 4),
            continues=[round(each, 4) for each in (*self._word_goes_on(len(written)), self._end_continues)],
            source=main_source(self.sources[len(self.tokens) - len(written) :]),
        )

    def _word_goes_on(self, count: int) -> list[float]:
        """Return how likely a word went on at each of the last `count` tokens; zeros for a model that does not say."""
        known = self._continues[len(self.tokens) - count : len(self.tokens)]
        return known if len(self._continues) == len(self.tokens) else [0.0] * count

    def branches(self, count: int) -> list[Branch]:
        """Return the likeliest first deviations: the probability of the tokens before one, times its own."""
        found: list[Branch] = []
        before = 1.0
        for position, others in enumerate(self._others):
            empty = len("".join(self.vocabulary.texts_of(self.tokens[:position]))) <= len(self.task.layout.typed)
            for token, probability in others:
                if probability >= LEAST_BRANCH and not (empty and self.ends(token)):
                    found.append(Branch([*self.tokens[:position], token], before * probability))
            before *= self.confidence[position] if position < len(self.confidence) else 0.0
        found.sort(key=lambda branch: -branch.probability)
        return found[:count]

    def committed(self) -> Committed:
        return Committed(self.tokens, self.sources)

    def canvas(self) -> list[str | None]:
        """Return the canvas for a viewer: one text a position, None where it is masked."""
        return [text for text, _ in self._untyped()]

    def cells(self) -> list[Cell]:
        """Return what is committed, then what `canvas` has after it."""
        written = self._untyped()
        first = len(self.tokens) - len(written)
        cells = [
            Cell(
                at,
                "verified" if first + at in self._verified else "written",
                text,
                round(probability, 4),
                [round(share, 4) for share in self.sources[first + at].shares]
                if first + at < len(self.sources)
                else [],
            )
            for at, (text, probability) in enumerate(written)
        ]
        for at, text in enumerate(self.canvas()[len(written) :], len(written)):
            cells.append(Cell(at, "mask") if text is None else Cell(at, "written", text))
        return cells

    def _untyped(self) -> list[tuple[str, float]]:
        """Return the committed tokens' texts and confidences, minus the text that is already typed.

        If a token only repeats typed text, fold its confidence into the next token: that the typed word ends there was
        a choice of the model, too."""
        untyped: list[tuple[str, float]] = []
        typed, carried = len(self.task.layout.typed), 1.0
        for text, confidence in zip(self.vocabulary.texts_of(self.tokens), self.confidence, strict=True):
            carried *= confidence
            if typed and typed >= len(text):
                typed -= len(text)
                continue
            untyped.append((text[typed:], carried))
            typed, carried = 0, 1.0
        return untyped

    @abstractmethod
    def next_pass(self) -> Pass:
        """Return the rows of the next pass."""

    @abstractmethod
    def absorb(self, result: PassResult, steps_left: int) -> None:
        """Take the result of the last pass. The budget has time for `steps_left` steps, this one included."""
