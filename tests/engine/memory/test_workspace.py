"""The memories of workspaces: kept apart, bounded, and without the file that is being edited."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.memory.followers import FollowerCounts
from engine.memory.index import BYTES_A_TOKEN
from engine.memory.row_memory import RowMemory
from engine.memory.workspace import FILE_BYTES, STEP_TOKENS, WORKSPACE_BYTES, WorkspaceMemories
from engine.protocol.memory_messages import MemoryStatus

ROOM = 10_000_000
CODE = [10, 11, 12, 13, 14, 15]


def followers_of(found: FollowerCounts) -> dict[int, list[int]]:
    """Return the followers of each run of a single row."""
    return {followers.run: followers.tokens.tolist() for followers in found.row(0)}


@pytest.fixture
def memories() -> WorkspaceMemories:
    memories = WorkspaceMemories(ROOM)
    memories.learn("/a", "one.py", CODE)
    memories.learn("/a", "two.py", [10, 11, 99])
    memories.learn("/b", "one.py", [10, 11, 55])
    return memories


def known(memories: WorkspaceMemories, workspace: str, path: str = "new.py") -> dict[int, list[int]]:
    return followers_of(memories.rows(workspace, path, [], []).followers_of_rows([[10, 11]]).workspace)


def test_a_file_of_many_tokens_is_known_as_far_as_it_is_learned(memories: WorkspaceMemories) -> None:
    long = [*CODE, *[7] * STEP_TOKENS, 10, 11, 77]
    assert memories.begin("/a", "one.py", long)
    assert known(memories, "/a") == {1: [12, 99], 2: [12, 99]}
    assert not memories.go_on()
    assert known(memories, "/a") == {1: [12, 77, 99], 2: [12, 77, 99]}
    assert memories.begin("/a", "one.py", long)
    memories.learn("/b", "two.py", [10, 11, 66])
    assert known(memories, "/a") == {1: [12, 77, 99], 2: [12, 77, 99]}
    assert known(memories, "/b") == {1: [55, 66], 2: [55, 66]}


def test_a_row_is_answered_by_the_files_of_its_workspace(memories: WorkspaceMemories) -> None:
    assert known(memories, "/a") == {1: [12, 99], 2: [12, 99]}
    assert known(memories, "/b") == {1: [55], 2: [55]}


def test_an_unknown_workspace_answers_nothing(memories: WorkspaceMemories) -> None:
    assert known(memories, "/c") == {}
    assert known(memories, "") == {}
    assert memories.status("/c") == MemoryStatus("/c", 0, 0, 0)


def test_the_edited_file_does_not_answer_from_what_was_learned_of_it(memories: WorkspaceMemories) -> None:
    assert known(memories, "/a", "one.py") == {1: [99], 2: [99]}
    assert known(memories, "/b", "one.py") == {}


def test_the_edited_file_answers_with_the_code_around_the_cursor() -> None:
    rows = WorkspaceMemories(ROOM).rows("/a", "one.py", above=[1, 2, 3, 1, 2], below=[1, 2, 4])
    row = rows.followers_of_rows([[1, 2]])
    assert followers_of(row.file) == {1: [3, 4], 2: [3, 4]}
    of_two = row.file.row(0)[1]
    assert of_two.counts.tolist() == [1, 1]
    assert of_two.tokens[of_two.places.argmax()] == 3  # above the cursor, so nearer
    assert not row.workspace.row(0)


def test_no_run_crosses_from_the_code_below_to_the_code_above() -> None:
    rows = WorkspaceMemories(ROOM).rows("/a", "one.py", above=[3, 4], below=[1, 2])
    assert not rows.followers_of_rows([[1, 2]])
    assert not rows.followers_of_rows([[]])


@given(st.lists(st.integers(0, 2), max_size=40), st.lists(st.integers(0, 2), max_size=40), st.integers(0, 40))
@settings(max_examples=100)
def test_a_scan_finds_what_an_index_finds(above: list[int], below: list[int], end: int) -> None:
    memories = WorkspaceMemories(ROOM)
    memories.learn("/a", "below", below)
    memories.learn("/a", "above", above)
    history = (above + below)[:end]
    row = memories.rows("/a", "new.py", above, below).followers_of_rows([history])
    assert followers_of(row.file) == followers_of(row.workspace)
    for in_file, indexed in zip(row.file.row(0), row.workspace.row(0), strict=True):
        assert in_file.counts.tolist() == indexed.counts.tolist()
        newest = int(in_file.places.argmax())
        assert (in_file.total, newest) == (indexed.total, int(indexed.places.argmax()))
        assert in_file.latest_of(newest).position == indexed.latest_of(newest).position


def test_a_forgotten_file_answers_nothing(memories: WorkspaceMemories) -> None:
    memories.forget("/a", ["two.py", "unknown.py"])
    assert known(memories, "/a") == {1: [12], 2: [12]}
    memories.forget("/a")
    assert known(memories, "/a") == {}
    assert memories.status("/a") == MemoryStatus("/a", 0, 0, 0)
    assert known(memories, "/b") == {1: [55], 2: [55]}


def test_a_file_that_is_learned_again_answers_with_its_new_text(memories: WorkspaceMemories) -> None:
    memories.learn("/a", "one.py", [10, 11, 77])
    assert known(memories, "/a") == {1: [77, 99], 2: [77, 99]}
    assert memories.status("/a").files == 2
    assert memories.status("/a").tokens == 6


def test_memory_stays_within_its_bound() -> None:
    most, random = 30_000_000, np.random.default_rng(0)
    memories = WorkspaceMemories(most)
    for number in range(700):
        memories.learn(f"/{number % 3}", f"{number % 290}.py", random.integers(0, 8000, 2000).tolist())
        assert memories.bytes <= most
    tokens = sum(memories.status(f"/{number}").tokens for number in range(3))
    assert tokens * BYTES_A_TOKEN > 0.9 * most


def test_the_file_that_was_used_least_recently_leaves_first() -> None:
    memories = WorkspaceMemories(BYTES_A_TOKEN * 350 + 3 * FILE_BYTES + 2 * WORKSPACE_BYTES)
    for path in ("first", "second", "third"):
        memories.learn("/a", path, [ord(path[0])] * 100)
    memories.rows("/a", "first", [], [])
    memories.learn("/b", "fourth", [1] * 100)

    def knows(path: str) -> bool:
        return bool(memories.rows("/a", "", [], []).followers_of_rows([[ord(path[0])]]))

    assert [knows(path) for path in ("first", "second", "third")] == [True, False, True]


def test_a_file_larger_than_the_bound_is_not_learned() -> None:
    memories = WorkspaceMemories(BYTES_A_TOKEN * 300 + WORKSPACE_BYTES)
    memories.learn("/a", "small", [1] * 100)
    memories.learn("/a", "large", [1] * 301)
    assert memories.status("/a").files == 1


@pytest.mark.parametrize(("files", "tokens", "length"), [(1, 1, 10), (1, 0, 2000), (60, 0, 500), (20, 3, 3000)])
def test_tiny_files_in_many_workspaces_stay_within_the_bound(files: int, tokens: int, length: int) -> None:
    most = 4 << 20
    tracemalloc.start()
    memories = WorkspaceMemories(most)
    for number in range(10_000 // files // length + 500):
        for file in range(files if number < 60 else 1):
            text = np.full(tokens, 8000, np.int32)
            memories.learn(f"/{number}/" + "w" * length, f"{file}/" + "p" * length, text)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < most
    known = memories.status("")
    assert 0 < known.files < 3_000


def test_all_workspaces_are_counted_together() -> None:
    memories = WorkspaceMemories(ROOM)
    assert memories.status("") == MemoryStatus("", 0, 0, 0)
    memories.learn("/a", "one.py", [1, 2, 3])
    memories.learn("/b", "one.py", [1, 2])
    both = memories.status("")
    assert (both.files, both.tokens) == (2, 5)
    assert both.bytes == memories.status("/a").bytes + memories.status("/b").bytes


def source(rows: RowMemory, history: list[int], token: int) -> tuple[str, str, list[int], int, int, int]:
    found = rows.where_from(rows.followers_of_rows([history]), 0, token)
    assert found is not None
    return found.path, found.part, found.tokens_before.tolist(), found.run, found.count, found.total


def test_a_token_names_the_place_that_it_was_seen_at(memories: WorkspaceMemories) -> None:
    rows = memories.rows("/a", "new.py", above=[5, 11, 12], below=[11, 99])
    assert source(rows, [10, 11], 12) == ("one.py", "workspace", [10, 11], 2, 1, 2)
    assert source(rows, [7, 11], 12) == ("", "above", [5, 11], 1, 1, 2)
    assert source(rows, [7, 11], 99) == ("", "below", [11], 1, 1, 2)
    assert rows.where_from(rows.followers_of_rows([[10, 11]]), 0, 1234) is None
