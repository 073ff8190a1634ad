"""What is drafted, from where, and how wide the canvas after it is."""

from engine.fill.draft_planner import MOST_MASKS, Draft, DraftPlanner

FREE_ROWS = {1: 4.0, 8: 4.2, 16: 4.6}
DEAR_ROWS = {1: 0.5, 8: 1.7, 16: 3.3}
ROWS_LIKE_PASSES = {1: 1.0, 16: 16.0}
NOTHING = Draft()


def guessed(*probabilities: float, first: int = 0, end: float = 0.0) -> Draft:
    return Draft(list(range(first, first + len(probabilities))), list(probabilities), end)


def planner(milliseconds: dict[int, float]) -> DraftPlanner:
    return DraftPlanner(MOST_MASKS, milliseconds)


def test_a_canvas_is_wide_where_rows_are_nearly_free_and_absent_where_a_row_costs_a_pass() -> None:
    free, dear, none = (planner(costs).plan([NOTHING], 60).masks for costs in (FREE_ROWS, DEAR_ROWS, ROWS_LIKE_PASSES))
    assert free >= 4
    assert 0 < dear < free
    assert none == 0


def test_the_draft_with_more_expected_tokens_wins() -> None:
    sure_start, long_and_likely = guessed(0.9, 0.1), guessed(*[0.8] * 8, first=100)
    for drafts in ([sure_start, long_and_likely], [long_and_likely, sure_start]):
        assert planner(FREE_ROWS).plan(drafts, 60).draft == long_and_likely
    assert planner(FREE_ROWS).plan([guessed(0.9, 0.9), guessed(0.2, 0.9, 0.9, first=100)], 60).draft.tokens[0] == 0


def test_a_draft_is_cut_where_reading_on_costs_more_than_it_brings() -> None:
    draft = guessed(0.9, 0.9, 0.1, 0.9, 0.9)
    assert len(planner(DEAR_ROWS).plan([draft], 60).draft.tokens) == 2
    assert planner(ROWS_LIKE_PASSES).plan([guessed(0.5)], 60).draft == NOTHING


def test_nothing_is_guessed_beyond_the_room_or_a_likely_end() -> None:
    plan = planner(FREE_ROWS).plan([guessed(*[0.9] * 8)], 5)
    assert len(plan.draft.tokens) + plan.masks <= 5
    ended = planner(FREE_ROWS).plan([guessed(0.9, 0.9, end=1.0)], 60)
    assert (len(ended.draft.tokens), ended.masks) == (2, 0)


def test_drafts_that_agree_go_on_as_the_longer_one_each_token_as_sure_as_the_surer_says() -> None:
    short, long = guessed(0.9, 0.2), guessed(0.5, 0.6, 0.7, end=0.8)
    assert short.agreeing(long) == long.agreeing(short) == Draft([0, 1, 2], [0.9, 0.6, 0.7], 0.8)
    assert short.agreeing(NOTHING) == short
    assert short.agreeing(guessed(0.9, first=7)) is None


def test_an_end_counts_where_it_is_likelier_than_the_next_token() -> None:
    long = guessed(0.9, 0.9, 0.5)
    assert guessed(0.9, 0.9, end=0.8).agreeing(long) == guessed(0.9, 0.9, end=0.8)
    assert guessed(0.9, 0.9, end=0.2).agreeing(long) == long


def test_a_canvas_gets_narrower_while_its_guesses_are_wrong_and_wider_while_they_are_right() -> None:
    wrong, right = planner(DEAR_ROWS), planner(DEAR_ROWS)
    before = wrong.plan([NOTHING], 60).masks
    for _ in range(200):
        wrong.learn(guessed(0.5, 0.5), NOTHING, [9])
        right.learn(guessed(*[0.5] * 8), NOTHING, range(8))
    assert wrong.plan([NOTHING], 60).masks == 0
    assert right.plan([NOTHING], 60).masks > before


def test_a_canvas_that_was_given_up_is_tried_again_in_time() -> None:
    tried = planner(DEAR_ROWS)
    for _ in range(200):
        tried.learn(guessed(0.5), NOTHING, [9])
    for _ in range(400):
        tried.learn(NOTHING, NOTHING, [9])
    assert tried.plan([NOTHING], 60).masks > 0


def test_the_memory_is_trusted_as_far_as_it_was_right() -> None:
    planned = planner(FREE_ROWS)
    for number in range(400):
        planned.learn(NOTHING, Draft([1], [planned.trust]), [1 if number % 2 else 2])
    assert 0.5 < planned.trust < 0.7


def test_one_pass_that_something_else_made_slow_makes_no_wider_one_slow() -> None:
    draft = Draft([1] * 15, [0.9] * 15)
    quiet, disturbed = planner({1: 4.0, 8: 4.2, 16: 4.4}), planner({1: 4.0, 8: 20.0, 16: 4.4})
    assert len(disturbed.plan([draft], 60).draft.tokens) == len(quiet.plan([draft], 60).draft.tokens)


def test_a_wider_pass_that_was_measured_as_faster_counts_as_no_slower() -> None:
    noisy = planner({1: 4.0, 8: 3.5, 16: 3.5})
    assert noisy.row_cost == 0
    assert noisy.plan([NOTHING], 60).masks == MOST_MASKS
