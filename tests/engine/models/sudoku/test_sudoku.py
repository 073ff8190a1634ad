"""The Sudoku network as a model of engine/fill: puzzles, the same numbers in NumPy and torch, every strategy."""

from functools import cache

import attrs
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from support.fill_tasks import run_to_end, started

from engine.errors import ModelError
from engine.fill.interface import Bounds, FillStrategy, FillTask
from engine.fill.revising import Revising
from engine.fill.sampler import Sampler
from engine.fill.stream import StreamModel, StreamPass
from engine.models.sudoku.model import (
    CELLS,
    END,
    MIDDLE,
    PUZZLES,
    WEIGHTS,
    Digits,
    SudokuModel,
    SudokuNetwork,
    kinds_of,
    load_sudoku,
)
from engine.protocol.messages import Fill, RuleName
from engine.training.sudoku import Examples, LoopedNetwork, Recipe, hard_puzzles
from engine.training.sudoku_puzzles import puzzles

HOLE = Fill(1, "", "", max_tokens=CELLS + 1, budget_ms=60_000.0)
PEERS = [
    {
        other
        for other in range(CELLS)
        if other != cell
        and (
            other // 9 == cell // 9
            or other % 9 == cell % 9
            or (other // 27 == cell // 27 and other % 9 // 3 == cell % 9 // 3)
        )
    }
    for cell in range(CELLS)
]


def solutions_of(puzzle: list[int], most: int = 2) -> list[list[int]]:
    """Return up to `most` solutions of a puzzle, by trying."""
    allowed = {
        cell: [digit for digit in range(1, 10) if all(puzzle[peer] != digit for peer in PEERS[cell])]
        for cell in range(CELLS)
        if not puzzle[cell]
    }
    if not allowed:
        return [puzzle]
    cell = min(allowed, key=lambda each: len(allowed[each]))
    found: list[list[int]] = []
    for digit in allowed[cell]:
        if len(found) < most:
            found += solutions_of([*puzzle[:cell], digit, *puzzle[cell + 1 :]], most - len(found))
    return found


@cache
def judged(count: int) -> tuple[Digits, Digits]:
    return hard_puzzles(count, 5)


def text_of(digits: Digits) -> str:
    return "".join(map(str, digits))


def filled(model: SudokuModel, puzzle: Digits, rule: RuleName, steps: int = 0) -> tuple[str, int]:
    """Return the digits that a fill writes, and its passes."""
    filling = run_to_end(model, started(model, attrs.evolve(HOLE, suffix=text_of(puzzle), rule=rule, steps=steps)))
    return filling.answer().text, filling.steps


def test_generated_puzzles_have_their_solution_and_no_other() -> None:
    given, solutions = puzzles(24, np.random.default_rng(3))
    for puzzle, solution in zip(given.tolist(), solutions.tolist(), strict=True):
        assert solutions_of(puzzle) == [solution]


def test_hard_puzzles_have_22_to_26_givens_and_none_too_many() -> None:
    given, _ = judged(40)
    assert set((given > 0).sum(1)) <= set(range(22, 27))
    puzzle = given[0].tolist()
    for cell in np.flatnonzero(given[0]):
        without = [*puzzle[:cell], 0, *puzzle[cell + 1 :]]
        assert len(solutions_of(without)) > 1


def test_the_shipped_puzzles_are_unique_and_hard() -> None:
    for line in PUZZLES.read_text().split():
        assert 22 <= sum(each != "." for each in line) <= 26
        assert len(solutions_of([0 if each == "." else int(each) for each in line])) == 1


def test_numpy_and_torch_compute_the_same() -> None:
    weights = load_file(WEIGHTS)
    looped = LoopedNetwork(weights["down"].shape[1], weights["down"].shape[0])
    looped.load_state_dict({name: torch.from_numpy(weight).float() for name, weight in weights.items()})
    given, solutions = judged(40)
    canvas = np.where((given == 0) & (np.random.default_rng(1).random(given.shape) < 0.3), solutions, 0).astype(np.int8)
    with torch.no_grad():
        shown = looped.embed[torch.from_numpy(kinds_of(given[:3], canvas[:3]))]
        state = torch.zeros_like(shown)
        for _ in range(6):
            state = looped.loop(state, shown)
        expected = looped.logits(state).numpy()
    found = SudokuNetwork(weights).logits(given[:3], canvas[:3], 6)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_network_is_the_same_whatever_the_digits_are_called() -> None:
    network, (given, _) = SudokuNetwork(load_file(WEIGHTS)), judged(40)
    names = np.array([0, 4, 7, 1, 9, 2, 8, 3, 6, 5], np.int8)
    empty = np.zeros_like(given[:2])
    plain, renamed = network.logits(given[:2], empty), network.logits(names[given[:2]], empty)
    np.testing.assert_allclose(renamed[..., names[1:] - 1], plain, atol=1e-2)


@pytest.mark.parametrize("doubts", [False, True])
def test_most_hard_puzzles_are_solved_in_at_most_20_passes(doubts: bool) -> None:
    model, (given, solutions) = load_sudoku(doubts=doubts), judged(40)
    answers = [filled(model, puzzle, "threshold", 20) for puzzle in given]
    right = [text == text_of(solution) for (text, _), solution in zip(answers, solutions, strict=True)]
    assert np.mean(right) >= 0.85
    assert max(steps for _, steps in answers) <= 20


def test_draft_and_verify_writes_what_left_to_right_writes_in_fewer_passes() -> None:
    model, (given, _) = load_sudoku(loops=8), judged(40)
    for puzzle in given[:3]:
        left, verified = filled(model, puzzle, "left-to-right"), filled(model, puzzle, "verify")
        assert verified[0] == left[0]
        assert verified[1] < left[1] == CELLS + 1


@pytest.mark.parametrize("rule", ["threshold", "entropy", "left-to-right"])
def test_given_digits_stay(rule: RuleName) -> None:
    given, _ = judged(40)
    text, _ = filled(load_sudoku(loops=8), given[1], rule, 4)
    assert len(text) == CELLS
    assert all(not digit or text[cell] == str(digit) for cell, digit in enumerate(given[1].tolist()))


def test_a_wrong_digit_is_taken_back_and_masks_keep_it() -> None:
    given, solutions = judged(40)
    plain = load_sudoku()
    number = next(at for at in range(40) if filled(plain, given[at], "threshold", 20)[0] == text_of(solutions[at]))
    puzzle, solution = given[number], solutions[number].tolist()
    cell = int(np.flatnonzero(puzzle == 0)[4])
    draft = [*solution[:cell], solution[cell] % 9 + 1, *solution[cell + 1 :]]
    model = load_sudoku(doubts=True)
    layout = model.lay_out(attrs.evolve(HOLE, suffix=text_of(puzzle)))
    strategy = FillStrategy("threshold", 20)
    task = FillTask(model.new_context(), layout, Bounds("lines", CELLS + 1), Sampler(), strategy, draft=draft)
    filling = model.start_fill(task)
    assert isinstance(filling, Revising)
    (result,) = model.run([filling.next_pass()])
    filling.absorb(result, 100)
    assert [(each.at, each.text) for each in filling.cells() if each.state == "refused"] == [(cell, str(draft[cell]))]
    assert run_to_end(model, filling).answer().text == text_of(solutions[number])
    masked = plain.start_fill(attrs.evolve(task, context=plain.new_context(), draft=()))
    assert not any(each.state == "refused" for each in run_to_end(plain, masked).cells())


def test_the_model_is_one_of_the_same_interface_and_refuses_rows_beyond_the_grid() -> None:
    model = load_sudoku()
    assert isinstance(model, StreamModel)
    context = model.new_context()
    context.tokens = [*[0] * CELLS, MIDDLE, *[1] * CELLS]
    with pytest.raises(ModelError, match="81 cells"):
        model.run([StreamPass(context, [END], [], [0])])


def test_examples_show_wrong_digits_only_on_the_canvas() -> None:
    kinds, targets = Examples(Recipe(shown=1.0, doubted=1.0, most_wrong=1.0), 3).take(16)
    given = targets < 0
    assert bool((kinds[given] >= 3).all())
    assert bool((kinds[~given] <= 2).all())
    on_canvas = (kinds == 1).any(-1) & ~given
    shown = (kinds == 1).int().argmax(-1)
    assert 0 < int((shown[on_canvas] != targets[on_canvas]).sum()) < int(on_canvas.sum())
