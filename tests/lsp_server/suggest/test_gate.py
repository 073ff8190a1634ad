"""The gate: the confidence in the first shown line decides."""

import pytest

from engine.protocol.messages import Candidate
from lsp_server.suggest.gate import believes, confidence_of


def candidate(tokens: list[str], confidence: list[float]) -> Candidate:
    return Candidate("".join(tokens), tokens, confidence, "complete")


def test_a_line_is_as_likely_right_as_all_its_tokens_together() -> None:
    assert confidence_of(candidate(["a", "b"], [0.9, 0.4]), "ab") == pytest.approx(0.36)


def test_tokens_that_are_not_shown_do_not_count() -> None:
    assert confidence_of(candidate(["foo(", "a", ")", " junk"], [0.8, 0.8, 0.8, 0.01]), "foo(a)") == pytest.approx(
        0.512
    )


def test_tokens_of_later_lines_do_not_count() -> None:
    shown = "    return a\r\n    b"
    assert confidence_of(candidate(["return a", "\n", "    b"], [0.5, 0.1, 0.1]), shown) == pytest.approx(0.5)


def test_a_token_that_is_shown_in_part_counts() -> None:
    assert confidence_of(candidate(["foo", "()\n"], [0.9, 0.4]), "foo()") == pytest.approx(0.36)


def test_that_the_line_ends_there_counts_where_the_fill_ends_there() -> None:
    ended = Candidate("foo(a) ", ["foo(", "a", ") "], [0.8, 0.5, 1.0], "complete", end_confidence=0.5)
    assert confidence_of(ended, "foo(a)") == pytest.approx(0.2)
    assert confidence_of(ended, "foo(") == pytest.approx(0.8)
    more = Candidate("foo(a)\nb", ["foo(a)", "\n", "b"], [0.8, 0.5, 1.0], "complete", end_confidence=0.5)
    assert confidence_of(more, "foo(a)\nb") == pytest.approx(0.8)


@pytest.mark.parametrize("tokens", [[], ["a"]])
def test_nothing_to_judge_by_and_no_probability_are_no_confidence(tokens: list[str]) -> None:
    assert confidence_of(candidate(tokens, [0.0] * len(tokens)), "a") == 0.0


def test_a_threshold_is_reached_or_not() -> None:
    sure = candidate(["a"], [0.7])
    assert believes(sure, "a", 0.7)
    assert not believes(sure, "a", 0.71)
    assert believes(candidate([], []), "", 0.0)
