"""The mixture is the weighted sum of what the model and the memory expect."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixing_networks import random_network
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.fill.sampler import Predictions
from engine.memory.followers import RUN_LENGTHS
from engine.memory.mixing_network import FEATURES, MixingNetwork, Statistics
from engine.memory.mixture import Mixture
from engine.memory.row_memory import RowFollowers
from engine.memory.workspace import WorkspaceMemories

VOCABULARY = 12
CONTINUING = (np.arange(VOCABULARY) % 3 == 0).astype(np.float32)
TOKENS = st.lists(st.integers(0, VOCABULARY - 1), max_size=60)


def rows_of(
    above: list[int], below: list[int], other: list[int], histories: list[list[int]], compatible: Sequence[int] = ()
) -> RowFollowers:
    memories = WorkspaceMemories(10_000_000)
    memories.learn("/a", "other.py", other)
    return memories.rows("/a", "new.py", above, below).followers_of_rows(histories, compatible)


def predictions_of(probabilities: NDArray[np.float32], top: int, named: NDArray[np.int64]) -> Predictions:
    tokens = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]
    return Predictions(
        tokens,
        np.take_along_axis(probabilities, tokens, 1),
        np.zeros(len(tokens), np.float32),
        np.take_along_axis(probabilities, named, 1),
        probabilities @ CONTINUING,
    )


def random_probabilities(rows: int, seed: int) -> NDArray[np.float32]:
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=(rows, VOCABULARY)))
    return np.asarray(scores / scores.sum(1, keepdims=True), np.float32)


def back_off(runs: list[tuple[dict[int, int], float]]) -> dict[int, float]:
    """Return the probabilities of followers. `runs`: counts and strength of each run, longest first."""
    shares: dict[int, float] = {}
    left = 1.0
    for counts, strength in runs:
        total = sum(counts.values())
        for token, count in counts.items():
            shares[token] = shares.get(token, 0) + left * count / (total + strength)
        left *= strength / (total + strength)
    whole = sum(shares.values())
    return {token: share / whole for token, share in shares.items()}


@given(
    TOKENS,
    TOKENS,
    TOKENS,
    st.lists(TOKENS, min_size=1, max_size=4),
    st.sets(st.integers(0, VOCABULARY - 1)),
    st.integers(1, VOCABULARY),
    st.integers(0, 9),
)
@settings(max_examples=100)
def test_a_mixture_is_the_weighted_sum_of_its_parts(
    above: list[int],
    below: list[int],
    other: list[int],
    histories: list[list[int]],
    compatible: set[int],
    top: int,
    seed: int,
) -> None:
    mixing, probabilities = random_network(seed), random_probabilities(len(histories), seed)
    rows = rows_of(above, below, other, histories, sorted(compatible))
    mixture = Mixture.of(rows, mixing, continuing=CONTINUING)
    before = predictions_of(probabilities, top, mixture.named)
    mixed = mixture.mix(before)
    statistics = Statistics.of(rows.joined)
    of_tops = np.take_along_axis(probabilities, np.maximum(statistics.tops, 0), 1)
    features = statistics.features(before.tokens[:, 0], before.probabilities[:, 0], of_tops)
    weights = mixing.weights(features, statistics.present)
    for number in range(len(histories)):
        expected = weights[number, 0] * probabilities[number]
        for scope, counted in enumerate(rows.scopes):
            parts = []
            for followers in reversed(counted.row(number)):
                counts = dict(zip(followers.tokens.tolist(), followers.counts.tolist(), strict=True))
                factor, constant = mixing.back_off[scope, RUN_LENGTHS.index(followers.run)].tolist()
                parts.append((counts, factor * len(counts) + constant))
            for token, share in back_off(parts).items():
                expected[token] += weights[number, 1 + scope] * share
        assert expected.sum() == pytest.approx(1, abs=1e-4)
        assert mixed.continues[number] == pytest.approx(expected @ CONTINUING, abs=1e-4)
        assert mixed.probabilities[number] == pytest.approx(np.sort(expected)[::-1][:top], abs=1e-5)
        assert mixed.probabilities[number] == pytest.approx(expected[mixed.tokens[number]], abs=1e-5)
        assert len(set(mixed.tokens[number].tolist())) == top


def test_a_row_without_followers_does_not_change() -> None:
    rows = rows_of([1, 2, 3], [], [], [[1, 2], [9, 9], []])
    mixture = Mixture.of(rows, random_network(0))
    before = predictions_of(random_probabilities(3, 0), 4, mixture.named)
    mixed = mixture.mix(before)
    assert mixed.tokens[1:].tolist() == before.tokens[1:].tolist()
    assert mixed.probabilities[1:].tolist() == before.probabilities[1:].tolist()
    assert mixed.probabilities[0].tolist() != before.probabilities[0].tolist()


def test_predictions_stay_as_they_are_where_no_row_has_followers() -> None:
    mixture = Mixture.of(rows_of([], [], [], [[1], [2]]), random_network(0))
    before = predictions_of(random_probabilities(2, 0), 3, mixture.named)
    assert mixture.mix(before) is before
    assert mixture.named.shape == (2, 0)


def test_no_more_followers_are_named_than_asked_for() -> None:
    other = [token for follower in range(1, 12) for token in [0, follower] * follower]
    rows = rows_of([], [], other, [[0], [5]])
    mixture = Mixture.of(rows, random_network(0), most=3)
    assert mixture.named[0].tolist() == [11, 10, 9]
    assert mixture.named[1].tolist() == [0, 0, 0]
    assert mixture.shares[1].tolist()[1:] == [[0, 0, 0], [0, 0, 0]]


def test_followers_are_restricted_to_compatible_tokens() -> None:
    memories = WorkspaceMemories(10_000_000)
    memories.learn("/a", "other.py", [1, 4])
    memory = memories.rows("/a", "new.py", [1, 2, 1, 3, 1, 2], [])
    kept = memory.followers_of_rows([[1], [1]], [3, 7])
    assert [followers.tokens.tolist() for followers in kept.file.row(0)] == [[3]]
    assert kept.file.row(0)[0].total == 1
    assert not kept.workspace.row(0)
    assert kept.file.row(1)[0].tokens.tolist() == [2, 3]
    assert kept.workspace.row(1)[0].tokens.tolist() == [4]
    assert not memory.followers_of_rows([[1]], [9])


def test_words_that_fit_what_is_typed_count_wherever_they_occur() -> None:
    memories = WorkspaceMemories(10_000_000)
    memories.learn("/a", "other.py", [1, 4, 4, 7])
    memories.learn("/a", "new.py", [4, 4, 4])
    found = memories.rows("/a", "new.py", [5, 4, 3], [4]).followers_of_rows([[9], [9]], [4, 3, 7, 8])
    others, own = found.words.row(0)
    assert dict(zip(others.tokens.tolist(), others.counts.tolist(), strict=True)) == {4: 2, 7: 1}
    assert dict(zip(own.tokens.tolist(), own.counts.tolist(), strict=True)) == {3: 1, 4: 2}
    assert not found.words.row(1), "a row that is not begun has no words"
    memories.forget("/a", ["other.py"])
    assert len(memories.rows("/a", "new.py", [5], []).followers_of_rows([[9]], [4, 7]).words.groups) == 0


def test_weights_sum_to_1_and_an_absent_scope_has_none() -> None:
    features = np.random.default_rng(0).normal(scale=0.1, size=(4, FEATURES)).astype(np.float32)
    present = np.array([[True, True, True], [True, False, True], [False, True, False], [False, False, False]])
    weights = random_network(0).weights(features, present)
    assert weights.sum(1) == pytest.approx(1)
    assert ((weights[:, 1:] > 0) == present).all()
    assert weights[3, 0] == 1


def test_a_gate_is_read_as_it_was_written(tmp_path: Path) -> None:
    mixing = random_network(0)
    mixing.save(tmp_path / "mixing")
    read = MixingNetwork.load(tmp_path / "mixing")
    assert read.hidden.tolist() == mixing.hidden.tolist()
    assert read.back_off.tolist() == mixing.back_off.tolist()


def test_a_file_that_is_no_gate_is_named(tmp_path: Path) -> None:
    (tmp_path / "mixing").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="mixing cannot be read as a mixing network"):
        MixingNetwork.load(tmp_path / "mixing")
    with pytest.raises(ModelError, match="missing cannot be read"):
        MixingNetwork.load(tmp_path / "missing")
    mixing = random_network(0)
    other = MixingNetwork(mixing.hidden[:-1], mixing.hidden_bias, mixing.output, mixing.output_bias, mixing.back_off)
    other.save(tmp_path / "mixing")
    with pytest.raises(ModelError, match="another version"):
        MixingNetwork.load(tmp_path / "mixing")
