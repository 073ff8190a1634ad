"""The strategies of a StreamModel by their names on the wire; the causal ones are here, the others in denoise.py.

A causal fill is written left to right: one token a pass, or by drafts that the next pass verifies.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from engine.fill.denoise import Denoising, by_entropy, by_threshold
from engine.fill.draft_planner import Draft, DraftPlan
from engine.fill.filling import BaseFilling
from engine.fill.interface import Filling, FillStrategy, FillTask
from engine.fill.revising import Revising
from engine.fill.sampler import PassResult, Predictions
from engine.fill.stream import Stream, StreamModel, StreamPass
from engine.protocol.messages import Cell, CellState

MOST_REMEMBERED = 12
"""Tokens that the memory guesses in a row at most. Each is a lookup of a sixth of a millisecond."""


class LeftToRight(BaseFilling):
    """One token a pass: the twin that every figure of the other strategies is compared with."""

    def __init__(self, model: StreamModel, task: FillTask) -> None:
        super().__init__(model, task)
        self._stream = Stream(model, task)

    def next_pass(self) -> StreamPass:
        return self._stream.next_token_pass(self.tokens, self.unwritten)

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        known = len(self.tokens)
        self.commit_next(self._stream.mixed(result.predictions))
        self.sources += self._stream.sources(self.tokens[known:], self.confidence[known:])


class Guesser(Protocol):
    """Another model that guesses how one hole goes on."""

    def expect(self, written: Sequence[int], room: int) -> None:
        """Take what `guess` will be asked for: at most `room` tokens after those written so far."""
        ...

    def guess(self) -> Draft:
        """Return the tokens. All holes that expect a guess then get theirs."""
        ...

    def learn(self, guess: Draft, written: Sequence[int], ended: bool) -> None:
        """Take what was written where the last guess was made, and whether the fill ended there."""
        ...


class DraftAndVerify(BaseFilling):
    """The answer of left to right in fewer passes: every pass verifies the last draft and denoises the next one.

    Drafted tokens are read causally, and the row of each predicts the token after it. While the two agree, the draft is
    what left to right would have written; the first prediction that differs is right as well. After the draft comes a
    canvas of masks, where the same pass guesses what follows if the whole draft is accepted (speculative decoding,
    arXiv 2211.17192; TiDAR, arXiv 2511.08923). So every pass commits at least one token.

    Canvas and memory compete for the next draft by their probabilities, and go on with each other's where they agree
    (DraftPlanner). After a rejected token the canvas is of no use, because it was guessed on top of the draft; then the
    memory alone drafts what follows the corrected token. The first pass verifies `FillTask.draft`, or what the memory
    knows of the cursor. A `guesser` takes the canvas's place, for a model without canvases.
    """

    def __init__(self, model: StreamModel, task: FillTask, guesser: Guesser | None = None) -> None:
        super().__init__(model, task)
        self._guesser = guesser
        self._model, self._stream, self._context = model, Stream(model, task), task.context
        self._canvas, self._remembered = Draft(), Draft()
        """What canvas and memory guessed after the tokens committed so far."""
        self._refused, self._refused_at = Draft(), 0
        """What the last pass threw away of its draft, and where that began."""
        self._planned: DraftPlan | None = None
        first = Draft(list(task.draft), [1.0] * len(task.draft))
        if first.tokens and self._writes_typed(first.tokens[0]):
            self._planned = model.drafts.plan([first], self._room)
        else:
            self._plan_later()

    @property
    def _room(self) -> int:
        """How many tokens fit after the next one."""
        return self.task.bounds.max_tokens - len(self.tokens) - 1

    def next_pass(self) -> StreamPass:
        unread, draft = self._stream.unread(self.tokens), self._plan.draft.tokens
        append, masks = [*unread, *draft], [self._model.mask] * self._plan.masks
        wanted = range(len(unread) - 1, len(append) + len(masks))
        query = self._stream.query(self.tokens, self.unwritten, len(wanted), draft)
        return StreamPass(self._context, append, masks, wanted, query)

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        position, draft = len(self.tokens), self._plan.draft.tokens
        predictions = self._stream.mixed(result.predictions)
        verified = len(draft) + 1
        proposal = self.task.sampler.propose(predictions.part(0, verified), range(position, position + verified))
        anchored = len(self._context.tokens) - len(draft)
        accepted = self.verify(draft, proposal)
        self._verified.update(range(position, position + accepted))
        # The token after what was accepted is refused, unless the fill ended with it.
        kept = accepted + (proposal.tokens[accepted : accepted + 1] == draft[accepted : accepted + 1])
        self._refused, self._refused_at = self._plan.draft.after(kept), position + kept
        self.sources += self._stream.sources(self.tokens[position:], self.confidence[position:])
        self._context.truncate(anchored + accepted)
        self._model.drafts.learn(self._canvas, self._remembered, self.tokens[position:])
        if self._guesser is not None:
            self._guesser.learn(self._canvas, self.tokens[position:], self.finish is not None)
        self._canvas, self._planned = Draft(), DraftPlan()
        if self.finish is not None:
            return
        if accepted == len(draft) and not self.unwritten:
            self._canvas = self._guessed(predictions.part(verified, len(predictions)))
        self._plan_later()

    def _plan_later(self) -> None:
        self._planned = None
        if self._guesser is not None:
            self._guesser.expect(self.tokens, self._room)

    @property
    def _plan(self) -> DraftPlan:
        """What the next pass reads. It is planned late, so that a guesser guesses for all holes of a batch at once."""
        if self._planned is None:
            self._planned = self._next_plan()
        return self._planned

    def _next_plan(self) -> DraftPlan:
        """Return what the next pass reads, from what canvas and memory guess."""
        if self._guesser is not None:
            self._canvas = self._guesser.guess()
        planner, canvas = self._model.drafts, self._canvas
        self._remembered = remembered = self._recalled()
        joined = remembered.agreeing(canvas)
        plan = planner.plan([remembered, canvas] if joined is None else [joined], self._room)
        drafted = plan.draft.tokens
        if not drafted or plan.draft.end or drafted == remembered.tokens[: len(drafted)]:
            return plan
        # What the memory does not know yet, it may know once the canvas has begun it.
        return planner.plan([plan.draft.followed_by(self._recalled(drafted))], self._room)

    def _guessed(self, canvas: Predictions) -> Draft:
        """Return the guesses of a canvas, each made without its neighbours."""
        position = len(self.tokens)
        proposal = self.task.sampler.propose(canvas, range(position, position + len(canvas)))
        return self._draft_of(zip(proposal.tokens, proposal.confidence, strict=True))

    def _recalled(self, drafted: list[int] | None = None) -> Draft:
        """Return how known code went on after the same tokens and `drafted`; nothing without a memory."""
        memory, written, planner = self.task.memory, [*self.tokens, *(drafted or ())], self._model.drafts
        most = min(self.task.bounds.max_tokens - len(written) - 1, MOST_REMEMBERED)
        if memory is None or most <= 0:
            return Draft()
        compatible = self._model.compatible_tokens(self.unwritten) if self.unwritten else ()
        draft: list[tuple[int, float]] = []
        reached = 1.0
        for token, probability in memory.continuation(self._stream.history(written), most, compatible):
            if not draft and not self._writes_typed(token):
                break
            draft.append((token, probability * planner.trust))
            reached *= draft[-1][1]
            if reached < planner.row_cost:
                break
        return self._draft_of(draft)

    def _writes_typed(self, token: int) -> bool:
        """Return whether a token writes all typed text that is left. A row after it needs no compatible tokens then."""
        return self.vocabulary.bytes_of(token).startswith(self.unwritten)

    def _draft_of(self, guesses: Iterable[tuple[int, float]]) -> Draft:
        """Return guesses up to an end. A token that writes typed text is none."""
        tokens: list[int] = []
        probabilities: list[float] = []
        for token, probability in guesses:
            if self.ends(token) and (tokens or not self.unwritten):
                return Draft(tokens, probabilities, probability)
            tokens.append(token)
            probabilities.append(probability)
        return Draft(tokens, probabilities)

    def cells(self) -> list[Cell]:
        """Return what is committed, what the last pass refused, the draft of the next one, and its canvas."""
        cells = [cell for cell in super().cells() if cell.state != "mask"]
        written = len(cells)
        typed = len(self.tokens) - written
        cells += self._cells_of(self._refused, self._refused_at - typed, "refused")
        if self.finish is None:
            cells += self._cells_of(self._plan.draft, written, "draft")
            after = written + len(self._plan.draft.tokens)
            cells += [Cell(at, "mask") for at in range(after, after + self._plan.masks)]
        return cells

    def _cells_of(self, draft: Draft, begin: int, state: CellState) -> list[Cell]:
        texts = self.vocabulary.texts_of(draft.tokens)
        pairs = zip(texts, draft.probabilities, strict=True)
        return [Cell(at, state, text, round(known, 4)) for at, (text, known) in enumerate(pairs, begin) if at >= 0]

    def canvas(self) -> list[str | None]:
        drafted = len(self._plan.draft.tokens) if self.finish is None else 0
        return [*super().canvas(), *([None] * drafted)]


DEFAULT = FillStrategy("verify", choose_from=4)
"""The best on code of the judge and on HumanEval with the shipped weights: docs/embedded-model.md has the table."""


def start_stream_fill(model: StreamModel, task: FillTask, guesser: Guesser | None = None) -> Filling:
    """Return a fill at its start."""
    match task.strategy.rule:
        case "threshold" if model.info.noise == "uniform":
            return Revising(model, task)
        case "left-to-right":
            return LeftToRight(model, task)
        case "verify":
            return DraftAndVerify(model, task, guesser)
        case "entropy":
            return Denoising(model, task, by_entropy)
        case "threshold" | "default":
            return Denoising(model, task, partial(by_threshold, threshold=model.canvas_use.threshold))
