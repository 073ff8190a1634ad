"""The confidence in a line of a fill: which tokens count, also while the fill is still growing."""

import pytest

from engine.fill.lines import GrowingLine
from engine.protocol.confidence import first_line_confidence
from engine.protocol.messages import Candidate


def candidate(tokens: list[str], confidence: list[float]) -> Candidate:
    return Candidate("".join(tokens), tokens, confidence, "complete")


def test_the_confidence_in_a_line_is_the_product_of_its_tokens() -> None:
    assert first_line_confidence(candidate(["a", "b"], [0.9, 0.4]), "ab") == pytest.approx(0.36)


def test_tokens_that_are_not_shown_do_not_count() -> None:
    cut = candidate(["foo(", "a", ")", " junk"], [0.8, 0.8, 0.8, 0.01])
    assert first_line_confidence(cut, "foo(a)") == pytest.approx(0.512)


def test_tokens_of_later_lines_do_not_count() -> None:
    shown = "    return a\r\n    b"
    lines = candidate(["return a", "\n", "    b"], [0.5, 0.1, 0.1])
    assert first_line_confidence(lines, shown) == pytest.approx(0.5)


def test_a_token_that_is_shown_in_part_counts() -> None:
    assert first_line_confidence(candidate(["foo", "()\n"], [0.9, 0.4]), "foo()") == pytest.approx(0.36)


def test_the_end_of_the_fill_counts_where_the_line_ends_there() -> None:
    ended = Candidate("foo(a) ", ["foo(", "a", ") "], [0.8, 0.5, 1.0], "complete", end_confidence=0.5)
    assert first_line_confidence(ended, "foo(a)") == pytest.approx(0.2)
    assert first_line_confidence(ended, "foo(") == pytest.approx(0.8)
    more = Candidate("foo(a)\nb", ["foo(a)", "\n", "b"], [0.8, 0.5, 1.0], "complete", end_confidence=0.5)
    assert first_line_confidence(more, "foo(a)\nb") == pytest.approx(0.8)


@pytest.mark.parametrize("tokens", [[], ["a"]])
def test_no_tokens_and_no_probability_give_no_confidence(tokens: list[str]) -> None:
    assert first_line_confidence(candidate(tokens, [0.0] * len(tokens)), "a") == 0.0


def test_a_growing_line_ends_with_the_confidence_of_the_whole_one() -> None:
    tokens, probabilities = ["\n ", " a", " = b", "\n", "  c"], [0.2, 0.9, 0.4, 0.1, 0.1]
    line = GrowingLine()
    confidences = [line.add(token, each) for token, each in zip(tokens, probabilities, strict=True)]
    assert confidences == pytest.approx([1.0, 0.9, 0.36, 0.36, 0.36])
    whole = candidate(tokens, probabilities)
    assert line.confidence == pytest.approx(first_line_confidence(whole, whole.text))
