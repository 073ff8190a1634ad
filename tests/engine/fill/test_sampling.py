"""Commit rules, predictions and samplers on constructed numbers."""

from typing import Any

import numpy as np
import torch

from engine.fill.denoise import by_entropy, by_threshold, min_commits
from engine.fill.sampler import Predictions, Proposal, Query, Sampler
from engine.models.predict import predict


def proposal(*confidence: float, entropy: list[float] | None = None) -> Proposal:
    zeros = [0.0] * len(confidence)
    return Proposal(list(range(len(confidence))), list(confidence), entropy or zeros, zeros)


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


def predictions(logits: torch.Tensor, **query: Any) -> Predictions:
    (predicted,) = predict(logits.clone(), [Query(**query)], [len(logits)], torch.tensor([], dtype=torch.long))
    return predicted


def test_a_greedy_sampler_takes_the_most_likely_token_that_is_allowed() -> None:
    logits = torch.tensor([[0.0, 5.0, 3.0], [2.0, 9.0, 1.0]])
    (allowed,) = predict(logits, [Query()], [2], torch.tensor([1]))
    proposal = Sampler().propose(allowed, [0, 1])
    assert proposal.tokens == [2, 0]
    assert abs(proposal.confidence[0] - 0.9526) < 1e-3


def test_predictions_are_those_of_the_distribution() -> None:
    logits = torch.randn(5, 40)
    names = torch.randint(0, 40, (5, 3))
    predicted = predictions(logits, top=7, entropy=True, named=names.numpy())
    distribution = logits.softmax(-1)
    likeliest, tokens = distribution.topk(7)
    assert predicted.tokens.tolist() == tokens.tolist()
    np.testing.assert_allclose(predicted.probabilities, likeliest, atol=1e-6)
    np.testing.assert_allclose(predicted.entropy, -(distribution * distribution.log()).sum(-1), atol=1e-5)
    np.testing.assert_allclose(predicted.named, distribution.gather(-1, names), atol=1e-6)


def test_several_passes_are_predicted_as_each_alone() -> None:
    first, second = torch.randn(3, 40), torch.randn(2, 40)
    queries = [Query(top=1, compatible_tokens=[4, 9]), Query(top=5, entropy=True)]
    together = predict(torch.cat((first, second)), queries, [3, 2], torch.tensor([0]))
    for query, logits, predicted in zip(queries, (first, second), together, strict=True):
        (alone,) = predict(logits.clone(), [query], [len(logits)], torch.tensor([0]))
        assert predicted.tokens.tolist() == alone.tokens.tolist()
        np.testing.assert_allclose(predicted.probabilities, alone.probabilities, atol=1e-6)
    assert together[0].tokens[0, 0] in (4, 9)
    assert together[0].probabilities[0, 0] >= 0.5


def test_predictions_without_a_token_are_those_that_never_had_it() -> None:
    logits = torch.randn(6, 40)
    without = predictions(logits, top=40, entropy=True).without(11)
    (expected,) = predict(logits.clone(), [Query(39, True)], [6], torch.tensor([11]))
    assert without.tokens.tolist() == expected.tokens.tolist()
    np.testing.assert_allclose(without.probabilities, expected.probabilities, atol=1e-5)
    np.testing.assert_allclose(without.entropy, expected.entropy, atol=1e-4)


def test_the_same_seed_and_position_draw_the_same_token_in_any_company() -> None:
    predicted = predictions(torch.randn(6, 50), top=50)
    sampler = Sampler(temperature=1.0, top_p=0.9, seed=5)
    together = sampler.propose(predicted, range(6)).tokens
    alone = [sampler.propose(predicted.part(row, row + 1), [row]).tokens[0] for row in range(6)]
    assert together == alone


def test_draws_follow_the_distribution_and_stay_inside_the_nucleus() -> None:
    predicted = predictions(torch.tensor([[0.6, 0.3, 0.09, 0.01]]).log(), top=4)
    tokens = [Sampler(temperature=1.0, top_p=0.85, seed=seed).propose(predicted, [0]).tokens[0] for seed in range(600)]
    assert set(tokens) == {0, 1}
    assert 0.58 < tokens.count(0) / 600 < 0.75
