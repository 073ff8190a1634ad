"""The gate: the confidence in the first line decides whether all of a fill, a start of its line or nothing is shown."""

import attrs
import pytest
from marked import hole_at, opened

from engine.protocol.confidence import FEWEST_CHARACTERS
from engine.protocol.messages import Candidate
from lsp_server.settings import Settings
from lsp_server.suggest.gate import confident_start, gated


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


def test_the_confidence_is_of_what_is_shown_of_the_first_line() -> None:
    language, hole = opened("").language, hole_at("x = ¦\n")
    call = candidate(["abcde", ".def", "\nx = 1"], [0.9, 0.8, 0.1])
    for gate, confidence in ((0.5, 0.72), (0.8, 0.9)):
        presented = gated(call, call.text, hole, language, Settings(gate=gate))
        assert presented is not None
        assert presented.confidence == pytest.approx(confidence)


def test_a_confident_first_line_is_shown_with_the_confident_lines_below_it() -> None:
    tokens, lines = ["abcde", ".def", "\nx = 1", "\n\n  y = 2", "\nz"], ["abcde.def", "\nx = 1", "\n\n  y = 2", "\nz"]
    for confidence, count in (([0.9, 0.9, 0.1, 0.9, 0.9], 1), ([0.9, 0.9, 0.9, 0.7, 0.9], 2), ([0.9] * 5, 4)):
        presented = shown(candidate(tokens, confidence), Settings(gate=0.8))
        assert presented == ("".join(lines[:count]), False)
    assert shown(candidate(tokens, [0.9, 0.9, 0.1, 0.1, 0.1]), Settings(gate=0.0)) == ("".join(lines), False)


def test_a_doubtful_first_line_hides_the_lines_below_it() -> None:
    tokens, confidence = ["abcde", ".def", "\nx = 1"], [0.9, 0.9, 0.9]
    assert shown_text(tokens, confidence, Settings(gate=0.85)) == "abcde"
    assert shown_text(tokens, confidence, Settings(gate=0.95)) == ""


def test_the_setting_whole_lines_hides_starts() -> None:
    tokens, confidence = ["abcde", ".def"], [0.9, 0.9]
    assert shown_text(tokens, confidence, Settings(gate=0.8, whole_lines=True)) == "abcde.def"
    assert shown_text(tokens, confidence, Settings(gate=0.85, whole_lines=True)) == ""


def test_an_unsure_fill_has_no_whole_line() -> None:
    unsure = Candidate("abcde.def(x", ["abcde", ".def", "(", "x"], [0.9, 0.9, 0.9, 0.3], "unsure")
    settings = Settings(gate=0.6)
    assert shown(unsure, settings, "abcde.def(") == ("abcde.def(", True)
    assert shown(attrs.evolve(unsure, finish="complete"), settings, "abcde.def(") == ("abcde.def(", False)


def test_a_fill_that_was_cut_off_within_its_line_has_no_whole_line() -> None:
    for finish in ("canvas full", "deadline"):
        cut_off = Candidate("abcde.defin", ["abcde", ".", "defin"], [0.99, 0.99, 0.99], finish, continues=[0, 0, 0, 0])
        assert shown(cut_off, Settings(gate=0.6)) == ("abcde.defin", True)
        assert shown(attrs.evolve(cut_off, continues=[0, 0, 0, 0.9]), Settings(gate=0.6)) == ("abcde.", True)
        two_lines = attrs.evolve(cut_off, text="abcde\n    x", tokens=["abcde", "\n    ", "x"])
        assert shown(two_lines, Settings(gate=0.6)) == ("abcde\n    x", False)


def test_a_word_that_probably_goes_on_is_not_shown() -> None:
    call = Candidate("abcde.def(x)", ["abcde", ".def", "(x)"], [0.95, 0.95, 0.3], "complete", continues=[0, 0, 0.3, 0])
    assert shown(call, Settings(gate=0.8)) == ("abcde.", True)
    assert shown(attrs.evolve(call, continues=[0, 0, 0.05, 0]), Settings(gate=0.8)) == ("abcde.def", True)


def test_text_that_shaping_added_or_removed_does_not_count() -> None:
    settings = Settings(gate=0.6)
    assert shown_text(["  ", "abcde", ".def", ")))"], [0.1, 0.7, 0.5, 0.1], settings, "abcde.def") == "abcde"
    assert shown_text(["abcde", ".def"], [0.7, 0.5], settings, "    abcde.def") == "    abcde"
    assert shown_text(["abcde", ".def"], [0.7, 0.5], settings, "    abcde.def\r\n    x") == "    abcde"
    assert shown_text(["abcde", ".def"], [0.7, 0.5], settings, "xyz.def") == "", "the model did not write this line"


def test_a_very_short_start_must_be_surer() -> None:
    for name, confidence, shown in (("abcde", 0.8, "abcde"), ("abcd", 0.89, ""), ("abcd", 0.91, "abcd")):
        assert shown_text([name, "(x)"], [confidence, 0.3], Settings(gate=0.8)) == shown


def test_what_lengthens_a_start_must_be_surer() -> None:
    settings = Settings(gate=0.6)
    assert shown_text(["abcde", ".def", "(x)"], [0.9, 0.76, 0.1], settings) == "abcde"
    assert shown_text(["abcde", ".def", "(x)"], [0.9, 0.78, 0.1], settings) == "abcde.def"
    assert shown_text(["abcde", ".def", "(x)"], [0.9, 0.76, 0.99], settings) == "abcde", "not with what follows either"
    assert shown_text(["abcde", ".def"], [0.99, 0.76], settings) == "abcde", "nor the rest of the line"
    assert shown_text(["abcde", ".def"], [0.99, 0.76], Settings(gate=0.6, whole_lines=True)) == "abcde.def"


def test_a_line_whose_end_is_doubtful_is_shown_as_a_start() -> None:
    line = Candidate("abcde.def", ["abcde", ".def"], [0.99, 0.95], "complete", end_confidence=0.8)
    assert shown(line, Settings(gate=0.7)) == ("abcde.def", True)
    assert shown(attrs.evolve(line, end_confidence=0.9), Settings(gate=0.7)) == ("abcde.def", False)


def test_a_start_has_at_least_the_fewest_characters() -> None:
    for length in range(1, 6):
        name = "abcdef"[:length]
        start = shown_text([name, "(x)"], [0.99, 0.3], Settings(gate=0.5))
        assert start == (name if length >= FEWEST_CHARACTERS else "")


CONFIDENT, DOUBTFUL = 0.99, 0.3


@attrs.frozen
class Case:
    """The model is confident of `fill` up to its "¦". Shaping changes nothing."""

    name: str
    marked: str
    fill: str
    shown: str
    language: str = "python"


CASES = [
    # Names, numbers, marks.
    Case("it ends after a name", "x = ¦\n", "self¦.other", "self"),
    Case("it ends after a mark", "x = ¦\n", "self.¦other", "self."),
    Case("an opening bracket may stay open", "x = ¦\n", "call(¦a)", "call("),
    Case("a name is never cut", "x = ¦\n", "a + get_na¦me()", "a +"),
    Case("a name with a dollar is one", "let x = ¦\n", "a.b + $¦scope", "a.b +", "javascript"),
    Case("a name with hyphens is one", "a {\n  ¦\n}\n", "display: inline-¦block;", "display:", "css"),
    Case("a minus separates two names", "x = ¦\n", "count - ¦1", "count -"),
    Case("a number is never cut", "x = ¦\n", "pi or 3¦.14", "pi or"),
    Case("its exponent is not cut either", "x = ¦\n", "pi or 1e-¦5", "pi or"),
    Case("a range is two numbers", "for i in ¦\n", "n in 1¦..10", "n in 1", "rust"),
    Case("an operator is never cut", "if ¦\n", "value =¦= 1", "value"),
    Case("brackets are marks of their own", "x = ¦\n", "a[b(¦)]", "a[b("),
    Case("no space at the end", "x = ¦\n", "self.a  ¦+ 1", "self.a"),
    Case("too short is nothing", "x = ¦\n", "ab¦.cd", ""),
    Case("nothing confident is nothing", "x = ¦\n", "¦abc.de", ""),
    Case("indentation does not count", "def f():\n¦\n", "    ab¦.cd()", ""),
    Case("indentation stays", "def f():\n¦\n", "    return¦ 1", "    return"),
    Case("only the first of several lines", "def f():\n    ¦\n", "if a:¦  # b\n        c\n    d", "if a:"),
    # Strings and comments.
    Case("half a string is nothing", "x = ¦\n", 'call("some ¦words")', "call("),
    Case("a whole string is fine", "x = ¦\n", 'call("some words"¦, 1)', 'call("some words"'),
    Case("in a string it ends after a word", 'x = "¦"\n', "some words¦ more", "some words"),
    Case("it may close the string it is in", 'x = "a¦\n', 'bcd"¦ + c', 'bcd"'),
    Case("it opens no other string after that", 'x = f("a¦\n', 'bcd", "¦e")', 'bcd",'),
    Case("an apostrophe in a comment opens nothing", "# we ¦\n", "don't know¦ it", "don't know"),
    Case("an apostrophe in a comment of its own", "x = ¦\n", "1  # don't know¦ it", "1  # don't know"),
    Case("the sign of a comment alone is nothing", "x = ¦\n", "abc  # ¦note", "abc"),
    # What follows the cursor.
    Case("a bracket after the cursor", "x = call(¦)\n", "a.b(c¦), d", "a.b(c"),
    Case("what follows is not repeated", "x = call(¦, b, c)\n", "abc, b, c¦ + 1", "abc"),
    Case("a word right after the cursor", "for ¦items:\n", "each in¦ the ", ""),
    Case("a space right after the cursor", "for ¦ in items:\n", "each¦, other", "each"),
    Case("the line below is not repeated", "¦\nreturn\n", "return¦ 1", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_start(case: Case) -> None:
    confident, rest = case.fill.split("¦")
    fill = Candidate(confident + rest, [confident, rest], [CONFIDENT, DOUBTFUL], "complete")
    language = opened("", case.language).language
    assert confident_start(fill, fill.text, hole_at(case.marked, case.language), language, 0.5).text == case.shown
