"""The index answers as a search through all files would, and within its memory."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.memory.followers import HASHED, RUN_LENGTHS, RunHashes
from engine.memory.index import BYTES_A_TOKEN, MOST_PLACES, RunIndex

TOKEN = st.integers(0, 3)
FILE = st.lists(TOKEN, max_size=60)
NUMBER = st.integers(0, 5)
CHANGES = st.lists(st.tuples(NUMBER, st.none() | FILE), min_size=1, max_size=20)
HISTORY = st.lists(TOKEN, max_size=15)


def array(tokens: list[int]) -> NDArray[np.int32]:
    return np.array(tokens, np.int32)


def occurrences(
    files: dict[int, list[int]], history: list[int], most: int, without: int | None = None
) -> dict[int, list[tuple[int, int]]]:
    """Return file and position of the followers of each run, oldest first, by a search through all files."""
    found: dict[int, list[tuple[int, int]]] = {}
    for run in RUN_LENGTHS:
        if len(history) < run:
            break
        places = [
            (file, position)
            for file, tokens in files.items()
            for position in range(run, len(tokens))
            if file != without and tokens[position - run : position] == history[-run:]
        ]
        counted = found.get(HASHED[-1], [])
        places = places[-most:] if run in HASHED else [place for place in places if place in counted]
        if places:
            found[run] = places
    return found


def changed(index: RunIndex, changes: list[tuple[int, list[int] | None]]) -> dict[int, list[int]]:
    """Apply changes to an index, each file in two steps. Return its files, the one added last at the end."""
    files: dict[int, list[int]] = {}
    for file, tokens in changes:
        files.pop(file, None)
        if tokens is None:
            index.remove(file)
        else:
            first = len(tokens) * (file + 1) // 6
            index.add(file, array(tokens[:first]))
            index.extend(file, array(tokens[first:]))
            files[file] = tokens
    return files


def check(index: RunIndex, files: dict[int, list[int]], history: list[int], most: int, without: int | None) -> None:
    expected = occurrences(files, history, most, without)
    answer = index.followers_of_rows([history], without).row(0)
    assert [followers.run for followers in answer] == list(expected)
    for followers in answer:
        places = expected[followers.run]
        counts = Counter(files[file][position] for file, position in places)
        assert dict(zip(followers.tokens.tolist(), followers.counts.tolist(), strict=True)) == counts
        newest = int(followers.places.argmax())
        latest = followers.latest_of(newest)
        assert (latest.file, latest.position) == places[-1]
        assert followers.tokens[newest] == files[places[-1][0]][places[-1][1]]


@given(CHANGES, HISTORY, st.sampled_from([2, 64]), st.none() | NUMBER)
@settings(max_examples=200)
def test_the_index_equals_a_search_through_all_files(
    changes: list[tuple[int, list[int] | None]], history: list[int], most: int, without: int | None
) -> None:
    index = RunIndex(most_places=most)
    files = changed(index, changes)
    check(index, files, history, most, without)
    for tokens in files.values():
        check(index, files, tokens[:-1], most, without)
    assert index.tokens == sum(map(len, files.values()))
    assert len(index) == len(files)


@given(CHANGES, HISTORY, st.sampled_from([2, 64]), st.integers(0, 3))
@settings(max_examples=200)
def test_a_hash_collision_is_never_an_answer(
    changes: list[tuple[int, list[int] | None]], history: list[int], most: int, bits: int
) -> None:
    index = RunIndex(RunHashes(bits), most_places=most)
    files = changed(index, changes)
    check(index, files, history, most, None)


@given(CHANGES, st.lists(HISTORY, max_size=8))
@settings(max_examples=50)
def test_rows_together_are_answered_as_rows_alone(
    changes: list[tuple[int, list[int] | None]], histories: list[list[int]]
) -> None:
    index = RunIndex()
    changed(index, changes)
    together = index.followers_of_rows(histories)
    assert together.rows == len(histories)
    for number, history in enumerate(histories):
        row, alone = together.row(number), index.followers_of_rows([history]).row(0)
        assert [each.run for each in row] == [each.run for each in alone]
        assert [each.places.tolist() for each in row] == [each.places.tolist() for each in alone]


def test_many_rows_are_answered() -> None:
    index = RunIndex()
    index.add(0, array([1, 2, 3, 1, 2, 4]))
    found = index.followers_of_rows([[1, 2]] * 1000)
    assert found.rows == 1000
    assert {tuple(found.row(row)[1].tokens.tolist()) for row in range(1000)} == {(3, 4)}


def test_only_the_file_that_was_added_last_grows() -> None:
    index = RunIndex()
    index.add(0, array([1, 2, 3]))
    index.add(1, array([1, 2]))
    with pytest.raises(ValueError, match="file 0 was not added last"):
        index.extend(0, array([4]))
    index.extend(1, array([5]))
    assert [each.tokens.tolist() for each in index.followers_of_rows([[1, 2]]).row(0)] == [[3, 5], [3, 5]]


def test_large_generations_answer_while_they_are_merged() -> None:
    index, random = RunIndex(), np.random.default_rng(0)
    files: dict[int, list[int]] = {}
    for step in range(150):
        file = int(random.integers(0, 100))
        files.pop(file, None)
        files[file] = random.integers(0, 40, 4000).tolist()
        index.add(file, array(files[file]))
        if step % 10 == 9:
            history = files[int(random.choice(list(files)))][1000:1100]
            check(index, files, history, MOST_PLACES, None)
    rebuilt = RunIndex()
    for file, tokens in files.items():
        rebuilt.add(file, array(tokens))
    histories = [tokens[100:112] for tokens in files.values()]
    found, expected = index.followers_of_rows(histories), rebuilt.followers_of_rows(histories)
    assert found.groups.tolist() == expected.groups.tolist()
    assert found.tokens.tolist() == expected.tokens.tolist()
    assert found.counts.tolist() == expected.counts.tolist()


def test_a_settled_index_answers_as_before() -> None:
    index, random = RunIndex(), np.random.default_rng(0)
    files = {file: random.integers(0, 30, 3000).tolist() for file in range(60)}
    for file, tokens in files.items():
        index.add(file, array(tokens))
    index.remove(3)
    del files[3]
    while index.settle():
        check(index, files, files[7][100:200], MOST_PLACES, None)
    check(index, files, files[8][100:200], MOST_PLACES, 8)
    assert not index.settle()


@pytest.mark.parametrize("removals", [0, 1])
def test_an_index_holds_at_most_64_bytes_a_token(removals: int) -> None:
    index, random = RunIndex(), np.random.default_rng(0)
    for file in range(600):
        index.add(file, random.integers(0, 8000, 2000, np.int32))
        if removals:
            index.remove(file - 150)
        if index.tokens > 100_000:
            assert index.bytes <= BYTES_A_TOKEN * index.tokens


def test_a_token_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="outside 0 to 2097151"):
        RunIndex().add(0, array([1 << 21]))
    with pytest.raises(ValueError, match="outside"):
        RunIndex().add(0, array([-1]))


def test_tokens_of_large_vocabularies_are_kept_apart() -> None:
    index = RunIndex()
    index.add(0, array([5, 1 << 20, 5, (1 << 21) - 1]))
    assert index.followers_of_rows([[5]]).row(0)[0].tokens.tolist() == [1 << 20, (1 << 21) - 1]
