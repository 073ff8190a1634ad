"""What a fill asks of a model, and what a model asks of a fill.

A model lays a hole out, runs passes of rows and answers with plain arrays. A fill commits tokens. Neither this module
nor any other of engine/fill knows a network or torch."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.fill.lines import Below
from engine.fill.sampler import Branch, PassResult, Predictions, RowSources, Sampler, TokenSource
from engine.protocol.messages import Candidate, Cell, Extent, Finish, HoleRequest, ModelInfo, RuleName

Kind = TypeVar("Kind")

MemoryUse = Literal["mixture", "windows", "both", "all"]
"""How a model uses what is known of the workspace: mixed with its predictions, as related code in its prompt, or both
ways. "all": both, with related code of the edited file too, for a model that reads only what is near the cursor."""
HISTORY = 12
"""Tokens before a row that a memory looks at."""


def expect_type(value: object, kind: type[Kind]) -> Kind:
    """Return `value`, which the engine hands back to the model that made it. Raises TypeError for another model's."""
    if not isinstance(value, kind):
        raise TypeError(f"a model got a {type(value).__name__} of another model; its own is a {kind.__name__}")
    return value


class Context(Protocol):
    """An encoded context: the tokens read so far, with their keys and values."""

    tokens: list[int]

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        ...

    def truncate(self, length: int) -> None:
        """Drop all tokens from index `length` on."""
        ...

    def fork(self, length: int) -> "Context":
        """Return an independent copy of the first `length` tokens."""
        ...


@attrs.frozen
class Layout:
    """The tokens of a hole.

    context: read causally, once, and cached for the next keystroke. before, after: placed on both sides of the middle
    and never cached; empty for models that read all causally. typed: the end of the prefix, left out of the context
    because the first tokens of the fill write it again (models/embedded/layout.py). above, below: the tokens of
    the prefix without `typed` and of the suffix, as far as the client sent them; for the memory. anchor: of a
    StreamModel, the token after the context, which every pass reads. follows: the first tokens of the code after the
    hole, none at the end of a file; None if the stream has other tokens between the middle and that code. resumes: that
    code for a model that may write it once more after the middle, where several lines end; else None."""

    context: list[int]
    before: list[int] = attrs.field(factory=list)
    after: list[int] = attrs.field(factory=list)
    typed: str = ""
    above: list[int] = attrs.field(factory=list)
    below: list[int] = attrs.field(factory=list)
    anchor: int = 0
    follows: Sequence[int] | None = None
    resumes: Below | None = None


@attrs.frozen
class Bounds:
    """Where a fill ends at the latest. See protocol.messages.Fill."""

    extent: Extent
    max_tokens: int
    min_line_probability: float = 0.0


class RowMixture(Protocol):
    """What followed the histories of some rows in known code, ready to be mixed with the model's predictions."""

    @property
    def named(self) -> NDArray[np.int64]:
        """The tokens [rows, n] whose probabilities `mix` needs in Predictions.named."""
        ...

    def weights(self, predictions: Predictions) -> NDArray[np.float32]:
        """Return how much each part of the mixture counts in each row, fp32 [rows, parts], the model first."""
        ...

    def mix(self, predictions: Predictions, weights: NDArray[np.float32] | None = None) -> Predictions:
        """Return the predictions of the same rows, mixed. weights: what `weights` returns for them, if it is known."""
        ...

    def sources(self, predictions: Predictions, weights: NDArray[np.float32], tokens: Sequence[int]) -> RowSources:
        """Return where the tokens that were committed at the first rows come from. `predictions`: as before `mix`."""
        ...


class FillMemory(Protocol):
    """What is known for one fill (engine/memory)."""

    def rows(self, histories: Sequence[Sequence[int]], compatible: Sequence[int]) -> RowMixture:
        """Return what is known of rows.

        histories: the tokens before each row's prediction, the last HISTORY of them.
        compatible: where not empty, the only tokens that the first row may propose.
        """
        ...

    def continuation(
        self, history: Sequence[int], most: int, compatible: Sequence[int] = ()
    ) -> Iterable[tuple[int, float]]:
        """Yield how the best occurrence of a history went on: at most `most` tokens with their probabilities.

        compatible: where not empty, the only tokens that the first one may be.
        """
        ...


@attrs.frozen
class FillStrategy:
    """Which rule commits tokens, in how many steps, and of how many texts the best is the answer (follows.py).

    0 steps takes as many as the budget allows.
    """

    rule: RuleName
    steps: int = 0
    choose_from: int = 1

    @property
    def name(self) -> str:
        steps = f", {self.steps} step{'s' if self.steps > 1 else ''}" if self.steps else ""
        return f"{self.rule}{steps}{f', best of {self.choose_from}' if self.choose_from > 1 else ''}"


@attrs.frozen
class FillTask:
    """One candidate of one hole: all that a model needs to start a fill.

    draft: how the fill probably begins, for strategies that verify drafts.
    """

    context: Context
    layout: Layout
    bounds: Bounds
    sampler: Sampler
    strategy: FillStrategy
    memory: FillMemory | None = None
    draft: Sequence[int] = ()

    def within(self, tokens: int) -> "FillTask":
        """Return this task with at most so many tokens to write: a model has only so many positions."""
        bounds = self.bounds
        return attrs.evolve(self, bounds=attrs.evolve(bounds, max_tokens=max(1, min(bounds.max_tokens, tokens))))


@attrs.frozen
class Committed:
    """The tokens that a fill has committed, typed ones included, with a source each; no sources without a memory."""

    tokens: Sequence[int]
    sources: Sequence[TokenSource]


class Pass(Protocol):
    """The rows of one hole in one pass of the network. Each model has its own kind. A pass that wants no predictions
    only reads context."""

    @property
    def rows(self) -> int:
        """How many rows go through the network."""
        ...

    @property
    def wanted(self) -> Sequence[int]:
        """The rows whose predictions the fill wants."""
        ...


class Filling(Protocol):
    """A hole being filled: `next_pass` gives the rows to run, `absorb` takes the result. Between the two the scheduler
    may run passes of other holes."""

    finish: Finish | None
    steps: int

    def next_pass(self) -> Pass:
        """Return the rows of the next pass."""
        ...

    def absorb(self, result: PassResult, steps_left: int) -> None:
        """Take the result of the last pass. The budget has time for `steps_left` steps, this one included."""
        ...

    def close(self, finish: Finish) -> None:
        """End the fill with what is committed."""
        ...

    def answer(self) -> Candidate:
        """Return what is committed, up to the first gap."""
        ...

    def committed(self) -> Committed:
        """Return the committed tokens."""
        ...

    def line_ends(self) -> list[int]:
        """Return where lines of the text end that more lines follow, in characters of the committed tokens' texts; none
        where the model itself has ended the text."""
        ...

    def cut(self, end: int) -> None:
        """Keep `end` characters of these texts, up to the end of a line."""
        ...

    def branches(self, count: int) -> list[Branch]:
        """Return the `count` likeliest other beginnings; none where the fill does not commit left to right."""
        ...

    def canvas(self) -> list[str | None]:
        """Return the canvas for a viewer: one text a position, None where it is masked."""
        ...

    def cells(self) -> list[Cell]:
        """Return the canvas for a traced fill: what is known of each position, in their order."""
        ...


class Vocabulary(Protocol):
    """What a fill needs to know about tokens. Safe to call from any thread."""

    end: int
    """The token that ends a fill."""

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one text a token; together they are the text. A character split over tokens goes to the last one."""
        ...

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of the token's text; none for a special token."""
        ...

    def breaks_line(self, token: int) -> bool:
        """Return whether the token's text holds a newline."""
        ...


@runtime_checkable
class Keeps(Protocol):
    """A model that can keep on the disk what makes its next start faster."""

    def keep(self) -> None:
        """Write it, unless it is there. Takes seconds, in a thread of its own. Never raises."""
        ...


class Model(Vocabulary, Protocol):
    """A loaded network with its tokenizer. All methods but those of Vocabulary run on the engine's worker thread."""

    info: ModelInfo
    threads: int
    tokenizer: Tokenizer
    """Files of the workspace are learned as its tokens."""
    memory_use: MemoryUse
    default: FillStrategy
    """The strategy that fills best at equal milliseconds."""

    def lay_out(self, request: HoleRequest) -> Layout:
        """Return the tokens of a hole. Raises ModelError for a strategy that this model does not have."""
        ...

    def new_context(self) -> Context:
        """Return an empty context."""
        ...

    def read(self, context: Context, tokens: list[int]) -> Pass:
        """Return the pass that adds tokens to a context."""
        ...

    def start_fill(self, task: FillTask) -> Filling:
        """Return a fill at its start. Raises ModelError for a strategy that this model does not have."""
        ...

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        """Run passes of several holes together. Return one result a pass, once the device is done."""
        ...
