"""A looped network for Sudoku, in NumPy; engine/training/sudoku.py has the same in torch and trains it.

It has a state for each digit of each cell, and one block of weights that runs again and again. In a loop a digit of a
cell sees itself, the mean of the same digit over its row, its column, its box and over the three cells that its box
shares with its row or its column, and the mean over the digits of its cell. So the network knows which cells go
together, and that digits are alike. That a row has each digit once, and all that follows from it, it learns.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

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
