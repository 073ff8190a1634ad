"""The gate: the confidence in the first line decides whether all of a fill, a start of its line or nothing is shown."""

import attrs
import pytest
from marked import hole_at, opened

from engine.protocol.confidence import FEWEST_CHARACTERS
from engine.protocol.messages import Candidate
from lsp_server.settings import Settings
from lsp_server.suggest.gate import gated


def candidate(tokens: list[str], confidence: list[float]) -> Candidate:
    return Candidate("".join(tokens), tokens, confidence, "complete")


def shown(one: Candidate, settings: Settings, shaped: str | None = None) -> tuple[str, bool] | None:
    """Return the text that the gate shows and whether it is only a start."""
    text = one.text if shaped is None else shaped
    presented = gated(one, text, hole_at("x = ¦\n"), opened("").language, settings)
    return None if presented is None else (presented.text, presented.is_start)


def shown_text(tokens: list[str], confidence: list[float], settings: Settings, shaped: str | None = None) -> str:
    result = shown(candidate(tokens, confidence), settings, shaped)
    assert result is None or result[1] == (result[0] != (shaped or "".join(tokens)))
    return "" if result is None else result[0]


def test_a_line_passes_from_the_threshold_on() -> None:
    line = candidate(["a"], [0.7])
    assert shown(line, Settings(gate=0.7, whole_lines=True)) == ("a", False)
    assert shown(line, Settings(gate=0.71, whole_lines=True)) is None
    assert shown(candidate([], []), Settings(gate=0.0, whole_lines=True)) == ("", False)


def test_the_confidence_is_of_the_whole_first_line() -> None:
    language, hole = opened("").language, hole_at("x = ¦\n")
    call = candidate(["abc", ".def", "\nx = 1"], [0.9, 0.8, 0.1])
    for gate in (0.5, 0.85):
        presented = gated(call, call.text, hole, language, Settings(gate=gate))
        assert presented is not None
        assert presented.confidence == pytest.approx(0.72)


def test_a_confident_first_line_is_shown_with_all_lines_below_it() -> None:
    tokens, confidence = ["abc", ".def", "\nx = 1"], [0.9, 0.9, 0.1]
    assert shown_text(tokens, confidence, Settings(gate=0.8)) == "abc.def\nx = 1"
    assert shown_text(tokens, confidence, Settings(gate=0.85)) == "abc"
    assert shown_text(tokens, confidence, Settings(gate=0.95)) == ""


def test_the_setting_whole_lines_hides_starts() -> None:
    tokens, confidence = ["abc", ".def"], [0.9, 0.9]
    assert shown_text(tokens, confidence, Settings(gate=0.8, whole_lines=True)) == "abc.def"
    assert shown_text(tokens, confidence, Settings(gate=0.85, whole_lines=True)) == ""


def test_an_unsure_fill_has_no_whole_line() -> None:
    unsure = Candidate("abc.def(x", ["abc", ".def", "(", "x"], [0.9, 0.9, 0.9, 0.3], "unsure")
    settings = Settings(gate=0.6)
    assert shown(unsure, settings, "abc.def(") == ("abc.def(", True)
    assert shown(attrs.evolve(unsure, finish="complete"), settings, "abc.def(") == ("abc.def(", False)


def test_text_that_shaping_added_or_removed_does_not_count() -> None:
    settings = Settings(gate=0.6)
    assert shown_text(["  ", "abc", ".def", ")))"], [0.1, 0.7, 0.5, 0.1], settings, "abc.def") == "abc"
    assert shown_text(["abc", ".def"], [0.7, 0.5], settings, "    abc.def") == "    abc"
    assert shown_text(["abc", ".def"], [0.7, 0.5], settings, "    abc.def\r\n    x") == "    abc"
    assert shown_text(["abc", ".def"], [0.7, 0.5], settings, "xyz.def") == "", "the model did not write this line"


def test_a_start_has_at_least_the_fewest_characters() -> None:
    for length in range(1, 6):
        name = "abcdef"[:length]
        start = shown_text([name, "(x)"], [0.99, 0.3], Settings(gate=0.5))
        assert start == (name if length >= FEWEST_CHARACTERS else "")
