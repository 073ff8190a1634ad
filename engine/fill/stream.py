"""A hole read as one causal stream: context, anchor, the committed tokens, and a canvas after them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.draft_planner import DraftPlanner
from engine.fill.interface import HISTORY, Context, FillTask, Model, RowMixture
from engine.fill.sampler import Predictions, Query, TokenSource


@attrs.frozen
class StreamPass:
    """Implements interface.Pass.

    append: tokens that are read causally and stay in the context.
    canvas: tokens and masks after them. They see the whole context and each other, and leave nothing in the context.
    wanted: indices of the rows (append first, then canvas) whose predictions are wanted. Each row predicts the token
    after it.
    query: what the fill asks about them. Its compatible tokens are for the last row of `append`.
    """

    context: Context
    append: list[int]
    canvas: list[int]
    wanted: Sequence[int]
    query: Query = attrs.field(factory=Query)

    @property
    def rows(self) -> int:
        return len(self.append) + len(self.canvas)


@attrs.frozen
class CanvasUse:
    """How a canvas is denoised.

    first, most: its masks at first, and while no end is in sight. A wide canvas costs its rows in every step, and the
    far positions of code are hardly ever committed: at equal exactness 4 masks took 9 ms where 16 took 21.
    follows_stream: whether the anchor's row predicts the first position as left to right would, so that each step
    commits that position. threshold: for the rule of that name. In code a twentieth of a canvas's positions reach
    0.9, and 97 % of those that reach 0.5 are what left to right writes.
    """

    first: int = 4
    most: int = 8
    follows_stream: bool = True
    threshold: float = 0.8


@runtime_checkable
class StreamModel(Model, Protocol):
    """A model whose passes are StreamPasses."""

    mask: int
    """The token that a canvas holds where nothing is committed."""
    drafts: DraftPlanner
    """What draft and verify drafts. All fills of the model teach it."""
    canvas_use: CanvasUse

    def compatible_tokens(self, typed: bytes) -> list[int]:
        """Return the tokens that begin with `typed`, and those that `typed` begins with."""
        ...


@attrs.frozen(eq=False)
class _MixedRows:
    """The rows of the last pass that the memory knew: predictions before the mixture, and the mixture's weights."""

    mixture: RowMixture
    predictions: Predictions
    weights: NDArray[np.float32]


class Stream:
    """One hole's stream: the tokens of its context, its first anchor, then the tokens that a fill has committed.

    The anchor is the last token of the stream: <middle> or that of the layout at first, later the last committed token.
    The context never holds it, so the anchor's row is part of every pass.
    """

    def __init__(self, model: StreamModel, task: FillTask) -> None:
        self._model, self._task = model, task
        self._mixture: RowMixture | None = None
        self._mixed: _MixedRows | None = None

    def tokens(self, committed: Sequence[int]) -> list[int]:
        """Return all tokens up to the anchor, which is the last one."""
        layout = self._task.layout
        return [*layout.context, layout.anchor, *committed]

    def unread(self, committed: Sequence[int]) -> list[int]:
        """Return the tokens up to the anchor that the context does not hold yet."""
        return self.tokens(committed)[len(self._task.context.tokens) :]

    def query(self, committed: Sequence[int], unwritten: bytes, rows: int, draft: Sequence[int] = ()) -> Query:
        """Return what to ask about `rows` rows: the anchor's, that of each token of `draft`, and canvas rows.

        unwritten: see BaseFilling.unwritten.
        """
        task = self._task
        compatible = self._model.compatible_tokens(unwritten) if unwritten else ()
        named = None
        if task.memory is not None:
            self._mixture = task.memory.rows(self._histories(committed, draft), compatible)
            known = self._mixture.named
            named = np.zeros((rows, known.shape[1]), np.int64)
            named[: len(known)] = known
        return Query(task.sampler.top, task.strategy.rule == "entropy", compatible, named)

    def mixed(self, predictions: Predictions) -> Predictions:
        """Return the predictions of the last query's rows with the memory's share.

        Canvas rows after the known ones stay as they are, because what is before them is not known.
        """
        if self._mixture is None:
            return predictions
        known = len(self._mixture.named)
        rows = predictions.part(0, known)
        weights = self._mixture.weights(rows)
        self._mixed = _MixedRows(self._mixture, rows, weights)
        mixed = self._mixture.mix(rows, weights)
        if known == len(predictions):
            return mixed
        return Predictions.of_both(mixed, predictions.part(known, len(predictions)))

    def sources(self, tokens: Sequence[int], confidence: Sequence[float]) -> list[TokenSource]:
        """Return where the tokens come from that were committed after the last pass; nothing without a memory.

        Those after the known rows come from canvas rows, so from the model. confidence: of the tokens.
        """
        last = self._mixed
        if last is None or not tokens:
            return []
        known = last.mixture.sources(last.predictions, last.weights, tokens[: len(last.predictions)])
        return [*known.each(), *(TokenSource(alone) for alone in confidence[len(last.predictions) :])]

    def _histories(self, committed: Sequence[int], draft: Sequence[int]) -> list[list[int]]:
        """Return the last tokens before the prediction of the anchor's row, and of each drafted row."""
        written = [*self._task.layout.above[-HISTORY:], *committed, *draft]
        ends = range(len(written) - len(draft), len(written) + 1)
        return [written[max(0, end - HISTORY) : end] for end in ends]

    def history(self, committed: Sequence[int]) -> list[int]:
        """Return the last tokens before the next one."""
        return self._histories(committed, ())[0]

    def next_token_pass(self, committed: Sequence[int], unwritten: bytes) -> StreamPass:
        """Return the pass that predicts the next token alone."""
        unread = self.unread(committed)
        return StreamPass(self._task.context, unread, [], [len(unread) - 1], self.query(committed, unwritten, 1))
