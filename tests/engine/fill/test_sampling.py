"""Commit rules and drawings on constructed numbers."""

import torch

from engine.fill.commit_rules import by_entropy, by_threshold, min_commits
from engine.fill.sampler import Proposal, Sampler


def proposal(*confidence: float, entropy: list[float] | None = None) -> Proposal:
    return Proposal(list(range(len(confidence))), list(confidence), entropy or [0.0] * len(confidence))


def test_threshold_commits_all_that_are_sure_and_the_surest_up_to_the_floor() -> None:
    assert sorted(by_threshold(proposal(0.95, 0.2, 0.99, 0.3), least=1)) == [0, 2]
    assert sorted(by_threshold(proposal(0.1, 0.2, 0.4, 0.3), least=2)) == [2, 3]
    assert sorted(by_threshold(proposal(0.1, 0.2, 0.4, 0.3), least=4)) == [0, 1, 2, 3]
    assert by_threshold(proposal(0.1, 0.2, 0.4, 0.3), least=0) == []


def test_the_floor_spreads_what_is_masked_over_the_steps_left() -> None:
    assert [min_commits(10, steps) for steps in (1, 2, 3, 4, 20, 0)] == [10, 5, 4, 3, 1, 10]


def test_entropy_commits_the_most_decided_within_the_bound() -> None:
    decided = proposal(0.9, 0.9, 0.9, 0.9, entropy=[0.05, 2.0, 0.1, 0.4])
    assert sorted(by_entropy(decided, least=0)) == [0, 2]
    assert sorted(by_entropy(decided, least=3)) == [0, 2, 3]
    assert sorted(by_entropy(decided, least=4)) == [0, 1, 2, 3]


def test_a_greedy_drawing_takes_the_likeliest_token_that_is_allowed() -> None:
    logits = torch.tensor([[0.0, 5.0, 3.0], [2.0, 9.0, 1.0]])
    drawn = Sampler(forbidden=(1,)).propose(logits, [0, 1])
    assert drawn.tokens == [2, 0]
    assert abs(drawn.confidence[0] - 0.9526) < 1e-3


def test_the_same_seed_and_position_draw_the_same_token_in_any_company() -> None:
    logits = torch.randn(6, 50)
    sampler = Sampler(temperature=1.0, top_p=0.9, seed=5)
    together = sampler.propose(logits, list(range(6))).tokens
    alone = [sampler.propose(logits[at : at + 1], [at]).tokens[0] for at in range(6)]
    assert together == alone


def test_draws_follow_the_distribution_and_stay_inside_the_nucleus() -> None:
    logits = torch.tensor([[0.6, 0.3, 0.09, 0.01]]).log()
    tokens = [Sampler(temperature=1.0, top_p=0.85, seed=seed).propose(logits, [0]).tokens[0] for seed in range(600)]
    assert set(tokens) == {0, 1}
    assert 0.58 < tokens.count(0) / 600 < 0.75
