"""Sudoku puzzles for training and tests: many at once, each with one solution by construction.

Boards are bit sets of candidates, uint16 [81, boards]: bit d is digit d + 1. Digits are int8 [boards, 81], 0 where a
cell is empty.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Boards = NDArray[np.uint16]
Digits = NDArray[np.int8]
Flags = NDArray[np.bool_]

ALL = np.uint16(0x1FF)
CELLS = 81
_BIT = np.array([0, *(1 << digit for digit in range(9))], np.uint16)
_DIGIT = np.zeros(512, np.int8)
_DIGIT[_BIT] = np.arange(10)
_COUNT = np.array([bin(bits).count("1") for bits in range(512)], np.uint8)


def _by_row(cells: Boards) -> Boards:
    return cells.reshape(9, 9, -1)


def _by_column(cells: Boards) -> Boards:
    return cells.reshape(9, 9, -1).swapaxes(0, 1)


def _by_box(cells: Boards) -> NDArray[np.uint16]:
    """Return [band, stack, row, column, boards]."""
    return cells.reshape(3, 3, 3, 3, -1).swapaxes(1, 2)


_Group = Callable[[Boards], Boards]
_GROUPS: tuple[tuple[_Group, int | tuple[int, int]], ...] = ((_by_row, 1), (_by_column, 1), (_by_box, (2, 3)))


def propagate(boards: Boards) -> tuple[Boards, Flags]:
    """Fill in naked and hidden singles until none is left. Return the boards, and which of them have no solution."""
    boards = boards.copy()
    wrong = np.zeros(boards.shape[1], np.bool_)
    live = np.arange(boards.shape[1])
    while len(live):
        before = boards[:, live]
        after, failed = _sweep(before.copy())
        boards[:, live] = after
        wrong[live[failed]] = True
        live = live[~failed & (after != before).any(0)]
    return boards, wrong


def _sweep(cells: Boards) -> tuple[Boards, Flags]:
    """Use each row, column and box once."""
    wrong = np.zeros(cells.shape[1], np.bool_)
    for group, axes in _GROUPS:
        singles = np.where(_COUNT[cells] == 1, cells, 0).astype(np.uint16)
        taken = np.bitwise_or.reduce(group(singles), axes, keepdims=True)
        view = group(cells)
        view &= np.where(group(singles) == 0, ~taken, ALL).astype(np.uint16)
        once, twice = _counts(view, axes)
        wrong |= (once != ALL).reshape(-1, cells.shape[1]).any(0)
        hidden = view & (once & ~twice)
        np.copyto(view, hidden, where=hidden != 0)
    wrong |= (cells == 0).any(0)
    return cells, wrong


def _counts(view: Boards, axes: int | tuple[int, int]) -> tuple[Boards, Boards]:
    """Return which digits are candidates of at least one cell of each group, and which of at least two."""
    order = (axes,) if isinstance(axes, int) else axes
    parts = np.moveaxis(view, order, range(len(order))).reshape(9, *np.delete(view.shape, order))
    once, twice = np.zeros_like(parts[0]), np.zeros_like(parts[0])
    for part in parts:
        twice |= once & part
        once |= part
    return np.expand_dims(once, order), np.expand_dims(twice, order)


def solved_grids(count: int, draw: np.random.Generator) -> Digits:
    """Return random solved grids [count, 81]."""
    boards = np.full((CELLS, count), ALL, np.uint16)
    while True:
        left = _COUNT[boards].astype(np.int16)
        open_ = np.flatnonzero((left > 1).any(0))
        if not len(open_):
            return _DIGIT[boards].T.copy()
        # The cell with the fewest candidates gets a random one of them.
        tried = boards[:, open_]
        choice = np.where(left[:, open_] > 1, left[:, open_] + draw.random(tried.shape), 99.0).argmin(0)
        every = np.arange(len(open_))
        candidates = tried[choice, every]
        odds = np.where((candidates[:, None] >> np.arange(9, dtype=np.uint16)) & 1, draw.random((len(open_), 9)), -1.0)
        tried[choice, every] = _BIT[odds.argmax(1) + 1]
        tried, wrong = propagate(tried)
        tried[:, wrong] = ALL  # begin again
        boards[:, open_] = tried


def puzzles(count: int, draw: np.random.Generator, least: int = 22) -> tuple[Digits, Digits]:
    """Return puzzles and their solutions, int8 [count, 81] each.

    Digits are taken away in random order while each has a proof: every other digit of its cell leads to a
    contradiction by singles alone. So the solution stays the only one. A puzzle has `least` givens or more; most end
    with 23 to 26, where no digit can be taken away.
    """
    solutions = solved_grids(count, draw)
    boards = _BIT[solutions].T.copy()
    order = draw.permuted(np.tile(np.arange(CELLS), (count, 1)), axis=1)
    given = np.ones((CELLS, count), np.bool_)
    for step in range(CELLS):
        digging = np.flatnonzero(given.sum(0) > least)
        cells = order[digging, step]
        without = np.where(given[:, digging], boards[:, digging], ALL).astype(np.uint16)
        every = np.arange(len(digging))
        without[cells, every] = ALL
        known, _ = propagate(without)
        needed = _refutable(known, cells, boards[cells, digging])
        given[cells[~needed], digging[~needed]] = False
    digits = np.where(given.T, solutions, 0).astype(np.int8)
    return digits, solutions


def _refutable(known: Boards, cells: NDArray[np.intp], right: Boards) -> Flags:
    """Return for which boards some other digit of a cell is not refuted, so that its given is needed."""
    every = np.arange(len(cells))
    others = known[cells, every] & ~right
    board, digit = np.nonzero((others[:, None] >> np.arange(9, dtype=np.uint16)) & 1)
    tried = known[:, board]
    tried[cells[board], np.arange(len(board))] = _BIT[digit + 1]
    _, wrong = propagate(tried)
    needed = np.zeros(len(cells), np.bool_)
    needed[board[~wrong]] = True
    return needed
