"""What all fills share: which tokens are committed, when a fill ends, and what it answers."""

from abc import ABC, abstractmethod
from itertools import accumulate

from engine.fill.interface import Committed, FillTask, Pass, Vocabulary
from engine.fill.lines import GrowingLine, Repeat, line_end
from engine.fill.sampler import Branch, PassResult, Predictions, Proposal, TokenSource, main_source
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
        self._kept: int | None = None
        """How many characters of the committed tokens' texts are kept; all of them if None."""
        self._verified: set[int] = set()
        """Which committed tokens a draft had too."""

    def ends(self, token: int) -> bool:
        """Return whether `token` ends the fill: the end token does, and a newline where the hole is in one line."""
        return token == self.vocabulary.end or self.ends_line(token)

    def ends_line(self, token: int) -> bool:
        """Return whether the hole is in one line, and `token` holds a newline."""
        return self.task.bounds.extent == "line" and self.vocabulary.breaks_line(token)

    def keeps(self, token: int) -> bool:
        """Return whether a token that ends the line has text before its newline, as ":\\n" does. That text is kept."""
        return line_end(self.vocabulary.bytes_of(token)) > 0

    def count_to_end(self, tokens: list[int]) -> int:
        """Return how many of `tokens` there are up to the first that ends the fill, that one included."""
        return next((index + 1 for index, token in enumerate(tokens) if self.ends(token)), len(tokens))

    def commit(self, token: int, confidence: float, continues: float = 0.0) -> None:
        """Append a token. If it ends the fill, only its text before the newline is part of the answer.

        continues: see Predictions.
        """
        typed = len(self.unwritten)
        if typed:  # A typed newline is not the end of the line to fill.
            text = self.vocabulary.bytes_of(token)
            self.unwritten = self.unwritten[len(text) :]
            self._append(token, confidence, continues, self.ends_line(token) and b"\n" in text[typed:])
        elif self.ends_line(token) and self.keeps(token):
            self._append(token, confidence, continues, ends=True)
        elif self.ends(token):
            self.finish, self._end_confidence, self._end_continues = "complete", confidence, continues
            if self.ends_line(token):
                self._repeats_below("\n")
        else:
            self._append(token, confidence, continues)

    def _append(self, token: int, confidence: float, continues: float, ends: bool = False) -> None:
        """Append a token. A doubtful first line or the length may end the fill, and the token itself if it `ends`."""
        self.tokens.append(token)
        self.confidence.append(confidence)
        self._continues.append(continues)
        if self._doubtful(token, confidence):
            self.finish = "unsure"
        elif (self.vocabulary.breaks_line(token) and self._repeats_below()) or ends:
            self.finish = "complete"
        elif len(self.tokens) >= self.task.bounds.max_tokens:
            self.finish = "canvas full"
            self.close("canvas full")

    def _doubtful(self, token: int, confidence: float) -> bool:
        """Return whether the first line with one more token is less likely right than the caller asks for."""
        least = self.task.bounds.min_line_probability
        if not least:
            return False
        return self._first_line.add(self.vocabulary.texts_of([token])[0], confidence) < least

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
        """End the fill with what is committed, but for lines that the code below has already."""
        if self.finish in (None, "canvas full") and (repeat := self._repeat()) is not None and repeat.lines:
            self.cut(len(self.task.layout.typed) + repeat.at)
            self.finish = "complete"
        self.finish = self.finish or finish

    def answer(self) -> Candidate:
        """Return what is committed. The text ends at the first gap."""
        written, typed = self._untyped()
        return Candidate(
            text="".join(text for text, _ in written),
            tokens=[text for text, _ in written],
            confidence=[round(confidence, 4) for _, confidence in written],
            finish=self.finish or "deadline",
            end_confidence=round(typed * self._end_confidence, 4),
            continues=[round(each, 4) for each in (*self._word_goes_on(len(written)), self._end_continues)],
            source=main_source(self.sources[len(self.tokens) - len(written) : len(self.tokens)]),
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
        """Return the canvas for a viewer: one text a position, None where it is masked.

        While the text may be repeating what is below, that part is not shown."""
        texts = [text for text, _ in self._untyped()[0]]
        if self.finish is None and (repeat := self._repeat()) is not None:
            starts = accumulate(map(len, texts), initial=0)
            texts = [text[: repeat.at - start] for start, text in zip(starts, texts, strict=False) if start < repeat.at]
        return [*texts]

    def cells(self) -> list[Cell]:
        """Return what is committed, then what `canvas` has after it."""
        written, _ = self._untyped()
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

    def _texts(self) -> list[str]:
        """Return the text of each committed token. That of the last one ends where the text was cut, or its line."""
        texts = self.vocabulary.texts_of(self.tokens)
        before = sum(map(len, texts[:-1]))
        if self._kept is not None and texts:
            texts[-1] = texts[-1][: self._kept - before]
        elif self.tokens and self.ends_line(self.tokens[-1]):
            typed = max(0, len(self.task.layout.typed) - before)
            texts[-1] = texts[-1][: typed + line_end(texts[-1][typed:])]
        return texts

    def _repeat(self, after: str = "") -> Repeat | None:
        """Return where the text repeats what is below, in characters after the typed ones. after: of an end token."""
        below, typed = self.task.layout.resumes, len(self.task.layout.typed)
        if below is None:
            return None
        return below.repeat("".join([*self.vocabulary.texts_of(self.tokens), after])[typed:])

    def _repeats_below(self, after: str = "") -> bool:
        """Return whether the text surely repeats what is below. Then it is cut there."""
        repeat = self._repeat(after)
        if repeat is None or not repeat.is_sure:
            return False
        self.cut(len(self.task.layout.typed) + repeat.at)
        return True

    def line_ends(self) -> list[int]:
        if self.finish == "complete" and self._kept is None:
            return []
        text = "".join(self._texts())
        ends, at = set[int](), text.find("\n", len(self.task.layout.typed))
        while at >= 0:
            ends.add(len(text[:at].rstrip()))
            at = text.find("\n", at + 1)
        return sorted(ends)

    def cut(self, end: int) -> None:
        starts = accumulate(map(len, self.vocabulary.texts_of(self.tokens)), initial=0)
        kept = sum(start < end for start in starts) if end else 0
        for each in (self.tokens, self.confidence, self._continues, self._others):
            del each[kept:]
        self._kept, self._end_confidence, self._end_continues = end, 1.0, 0.0

    def _untyped(self) -> tuple[list[tuple[str, float]], float]:
        """Return the committed tokens' texts and confidences, minus the text that is already typed.

        If a token only repeats typed text, fold its confidence into the next token: that the typed word ends there was
        a choice of the model, too. Without a next token it is the second value, to be folded into the end's."""
        untyped: list[tuple[str, float]] = []
        typed, carried = len(self.task.layout.typed), 1.0
        for text, confidence in zip(self._texts(), self.confidence, strict=True):
            carried *= confidence
            if typed and typed >= len(text):
                typed -= len(text)
                continue
            untyped.append((text[typed:], carried))
            typed, carried = 0, 1.0
        return untyped, carried

    @abstractmethod
    def next_pass(self) -> Pass:
        """Return the rows of the next pass."""

    @abstractmethod
    def absorb(self, result: PassResult, steps_left: int) -> None:
        """Take the result of the last pass. The budget has time for `steps_left` steps, this one included."""
