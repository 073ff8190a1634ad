"""The search processes: they share the parts of a list, and one that dies ends the search with one line."""

import os

import pytest

from lsp_server.refactor.crew import CrewFailed, side_by_side


def test_each_part_has_its_result() -> None:
    results = {done.part: done.result for done in side_by_side(abs, [-1, 2, -3]) if done is not None}
    assert results == {0: 1, 1: 2, 2: 3}


def test_a_process_that_dies_at_work_is_told() -> None:
    with pytest.raises(CrewFailed, match="a search process failed with EOFError; run the action again"):
        list(side_by_side(os._exit, [1]))


def test_a_process_that_reads_no_more_is_told_alike() -> None:
    # The third call is written to a process whose end of the pipe is closed.
    with pytest.raises(CrewFailed, match="a search process failed with EOFError; run the action again"):
        list(side_by_side(os.close, [0, 0, 0]))


def test_a_function_that_fails_is_told_without_its_message() -> None:
    with pytest.raises(CrewFailed, match="a search process failed with FileNotFoundError; run the action again"):
        list(side_by_side(os.listdir, ["/no/such/folder"]))
