"""Sudoku as a hole: the tokens are digits, the canvas is the grid, and every strategy of engine/fill fills it.

The network is looped, in NumPy; engine/training/sudoku.py has the same in torch and trains it. It has a state for each
digit of each cell, and one block of weights that runs again and again. In a loop a digit of a cell sees itself, the
mean of the same digit over its row, its column, its box and over the three cells that its box shares with its row or
its column, and the mean over the digits of its cell. So the network knows which cells go together, and that digits are
alike. That a row has each digit once, and all that follows from it, it learns.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from engine.errors import ModelError
from engine.fill.draft_planner import DraftPlanner
from engine.fill.interface import Context, Filling, FillStrategy, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult, Predictions, Query
from engine.fill.strategies import start_stream_fill
from engine.fill.stream import CanvasUse, StreamPass
from engine.protocol.messages import HoleRequest, ModelInfo

Digits = NDArray[np.int8]
Floats = NDArray[np.float32]

CELLS = 81
LOOPS = 64
"""Loops of a pass. It was trained with fewer, and is right more often with more."""
EMBEDDINGS = 5
"""Kinds of a digit of a cell: the cell is masked; the canvas shows this digit, another; this one is given, another."""
EPSILON = 1e-5
NAMES = ("own", "cell", "row", "column", "box", "row_part", "column_part")
"""The matrices [width, 2 * hidden] of what a digit of a cell sees."""


def kinds_of(given: Digits, canvas: Digits) -> NDArray[np.int64]:
    """Return the kind [boards, 81, 9] of each digit of each cell. given, canvas: [boards, 81], 0 for an empty cell."""
    digits = np.arange(1, 10)
    kinds = np.where(canvas[..., None] > 0, np.where(canvas[..., None] == digits, 1, 2), 0)
    return np.where(given[..., None] > 0, np.where(given[..., None] == digits, 3, 4), kinds)


class SudokuNetwork:
    """The weights by their names: NAMES, and embed [5, width], bias [2 * hidden], down [hidden, width], gain [width],
    head [width]."""

    def __init__(self, weights: Mapping[str, NDArray[np.generic]]) -> None:
        self._weights = {name: weight.astype(np.float32) for name, weight in weights.items()}
        self.parameters = sum(weight.size for weight in self._weights.values())

    def logits(self, given: Digits, canvas: Digits, loops: int = LOOPS) -> Floats:
        """Return logits [boards, 81, 9] of the digits 1 to 9. given, canvas: [boards, 81], 0 for an empty cell."""
        shown = self._weights["embed"][kinds_of(given, canvas)]
        state = np.zeros_like(shown)
        for _ in range(loops):
            state = self._loop(state, shown)
        logits: Floats = state @ self._weights["head"]
        return logits

    def _loop(self, state: Floats, shown: Floats) -> Floats:
        """Return the state after one loop. state, shown: [boards, 81, 9, width]."""
        of = self._weights
        rows = state + shown
        cells = rows.reshape(-1, 3, 3, 3, 3, *rows.shape[2:])  # band, row, stack, column, digit, width
        in_row, in_column = cells.mean(4), cells.mean(2)
        row_part = in_row @ of["row_part"] + (in_row.mean(3) @ of["row"])[:, :, :, None]
        row_part += (in_row.mean(2) @ of["box"])[:, :, None]
        column_part = in_column @ of["column_part"] + (in_column.mean(1) @ of["column"])[:, None]
        mixed = cells @ of["own"]
        mixed += row_part[:, :, :, :, None] + of["bias"]
        mixed += column_part[:, :, None]
        mixed += (cells.mean(5) @ of["cell"])[..., None, :]
        gate, up = np.split(mixed, 2, axis=-1)
        up /= 1 + np.exp(-gate)
        up *= gate
        added = (up @ of["down"]).reshape(state.shape)
        state = np.add(state, added, dtype=np.float32)
        mean = np.einsum("...w,...w->...", state, state)[..., None] / np.float32(state.shape[-1])
        normalized: Floats = state / np.sqrt(mean + np.float32(EPSILON)) * of["gain"]
        return normalized


FOLDER = Path(__file__).resolve().parent / "weights"
WEIGHTS, PUZZLES = FOLDER / "sudoku.safetensors", FOLDER / "puzzles.txt"
MASK, END, MIDDLE = 0, 10, 11
"""Tokens beside the digits 1 to 9."""
TEXTS: list[str] = [".", *"123456789", "", ""]
STEPS = 20
_CERTAIN = 60.0
"""The logit of what is no question: a given digit, and the end after the last cell."""


@attrs.define
class GridContext:
    """Implements interface.Context. Nothing is cached: each pass reads the whole grid."""

    tokens: list[int] = attrs.field(factory=list)

    @property
    def bytes(self) -> int:
        return 0

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "GridContext":
        return GridContext(self.tokens[:length])


class SudokuModel:
    """Implements fill.stream.StreamModel.

    The context is the puzzle, a token a cell. The middle is the solution, and then the end. Rows of a canvas see the
    whole grid as it is. A row of the stream before the last sees the cells before it and the given ones, as it must for
    left to right and for drafts, so it is a grid of its own.

    doubts: whether fills look again at what they have written (fill/revising.py). loops: of the network in each pass.
    """

    def __init__(self, network: SudokuNetwork, *, doubts: bool = False, loops: int = LOOPS) -> None:
        self._network, self._loops = network, loops
        self.threads, self.mask, self.end = 1, MASK, END
        self.default, self.drafts = FillStrategy("threshold", STEPS), DraftPlanner(CELLS)
        self.canvas_use = CanvasUse(CELLS + 1, CELLS + 1, follows_stream=False, threshold=0.99)
        self.memory_use: MemoryUse = "mixture"
        self.tokenizer = Tokenizer(WordLevel({str(token): token for token in range(len(TEXTS))}, "0"))
        self.info = ModelInfo(
            name="sudoku",
            family="sudoku",
            licence="Apache-2.0",
            parameters=network.parameters,
            context_tokens=CELLS,
            canvas_tokens=CELLS + 1,
            noise="uniform" if doubts else "absorbing",
            device="cpu",
            dtype="fp32, NumPy",
        )

    def lay_out(self, request: HoleRequest) -> Layout:
        """Return a puzzle's tokens: the digits of prefix and suffix, and "." or "0" for an empty cell.

        All else is skipped, and cells that are missing at the end are empty.
        """
        cells = [
            int(each) if each != "." else MASK for each in request.prefix + request.suffix if each in ".0123456789"
        ]
        return Layout([*cells[:CELLS], *[MASK] * (CELLS - len(cells))], anchor=MIDDLE)

    def new_context(self) -> GridContext:
        return GridContext()

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def start_fill(self, task: FillTask) -> Filling:
        return start_stream_fill(self, task)

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        own = [expect_type(item, StreamPass) for item in passes]
        boards = [_boards_of(item) for item in own]
        ends = [0, *accumulate(len(each) for each in boards)]
        given, canvas = (np.zeros((ends[-1], CELLS), np.int8) for _ in range(2))
        for number, board in enumerate(board for each in boards for board in each):
            given[number], canvas[number] = board.given, board.canvas
        logits = self._network.logits(given, canvas, self._loops) if ends[-1] else np.zeros((0, CELLS, 9), np.float32)
        results = []
        for item, group, (start, _) in zip(own, boards, pairwise(ends), strict=True):
            rows = np.full((len(item.wanted), len(TEXTS)), -_CERTAIN, np.float32)
            asked = [(number, cell) for number, board in enumerate(group, start) for cell in board.asked]
            for row, (number, cell) in zip(rows, asked, strict=True):
                if cell == CELLS:
                    row[END] = _CERTAIN
                elif given[number, cell]:
                    row[given[number, cell]] = _CERTAIN
                else:
                    row[1:10] = logits[number, cell]
            results.append(PassResult(_predictions(rows, item.query)))
            item.context.tokens += item.append
        return results

    def compatible_tokens(self, typed: bytes) -> list[int]:
        return []

    def bytes_of(self, token: int) -> bytes:
        return TEXTS[token].encode()

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return [TEXTS[token] for token in tokens]

    def breaks_line(self, token: int) -> bool:
        return False


@attrs.frozen(eq=False)
class _Board:
    """A grid that a pass needs. given, canvas: int8 [81]. asked: the cells whose predictions are wanted, 81 is the
    end."""

    given: Digits
    canvas: Digits
    asked: list[int]


def _boards_of(item: StreamPass) -> list[_Board]:
    """Return the grids of a pass, in the order of its wanted rows. Raises ModelError for rows beyond the grid."""
    stream = [*item.context.tokens, *item.append]
    puzzle, written = np.array(stream[:CELLS], np.int8), stream[CELLS + 1 :]
    if item.wanted and max(item.wanted) + len(item.context.tokens) > 2 * CELLS:
        raise ModelError("a Sudoku has 81 cells; more was asked for")
    first, last = len(item.context.tokens) - CELLS, len(item.append) - 1
    shown = [[*written[: first + row]] for row in item.wanted if row < last]
    asked = [[first + row] for row in item.wanted if row < last]
    if on_canvas := [first + row for row in item.wanted if row >= last]:
        shown.append([*written, *item.canvas])
        asked.append(on_canvas)
    return [_Board(puzzle, _canvas_of(puzzle, each), cells) for each, cells in zip(shown, asked, strict=True)]


def _canvas_of(puzzle: Digits, shown: Sequence[int]) -> Digits:
    """Return the digits [81] that are shown in cells which are not given."""
    canvas = np.zeros(CELLS, np.int8)
    digits = [token if token < END else MASK for token in shown[:CELLS]]
    canvas[: len(digits)] = digits
    return np.where(puzzle > 0, 0, canvas).astype(np.int8)


def _predictions(logits: Floats, query: Query) -> Predictions:
    """Return what a query asks of logits [rows, tokens]."""
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    tokens = np.argsort(-shares, axis=1, kind="stable")[:, : query.top].astype(np.int64)
    entropy = -(shares * np.log(np.maximum(shares, 1e-30))).sum(1)
    none = np.zeros((len(logits), 0), np.float32)
    return Predictions(tokens, np.take_along_axis(shares, tokens, 1), entropy, none, np.zeros(len(logits), np.float32))


def load_sudoku(*, doubts: bool = False, loops: int = LOOPS) -> SudokuModel:
    """Return the shipped network as a model. Raises ModelError."""
    try:
        return SudokuModel(SudokuNetwork(load_file(WEIGHTS)), doubts=doubts, loops=loops)
    except OSError as error:
        raise ModelError(f"{WEIGHTS} cannot be read: {error}; install Midspan again") from None
