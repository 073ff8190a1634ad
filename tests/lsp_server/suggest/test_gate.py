"""The gate: what is worth its price is shown, all of a fill, a start of its line, or nothing."""

import attrs
import pytest
from support.marked import hole_at, opened

from engine.protocol.confidence import GLANCE, WRONG, Price
from engine.protocol.messages import Candidate
from lsp_server.settings import GATES, Settings
from lsp_server.suggest.pipeline import gated, worthy_start

COUNTED = Settings(gate=Price())
"""The price that the evaluation counts."""


def candidate(tokens: list[str], confidence: list[float]) -> Candidate:
    return Candidate("".join(tokens), tokens, confidence, "complete")


def shown(
    one: Candidate, settings: Settings, shaped: str | None = None, marked: str = "x = ¦\n"
) -> tuple[str, bool] | None:
    """Return the text that the gate shows and whether it is only a start."""
    text = one.text if shaped is None else shaped
    presented = gated(one, text, hole_at(marked), opened("").language, settings)
    return None if presented is None else (presented.text, presented.is_start)


def shown_text(tokens: list[str], confidence: list[float], settings: Settings, shaped: str | None = None) -> str:
    result = shown(candidate(tokens, confidence), settings, shaped)
    assert result is None or result[1] == (result[0] != (shaped or "".join(tokens)))
    return "" if result is None else result[0]


def test_a_text_is_worth_the_keys_it_saves_minus_what_it_costs() -> None:
    price = Price()
    assert price.worth(1.0, 10) == 9 - GLANCE
    assert price.worth(0.0, 10) == -GLANCE - WRONG
    assert price.worth(0.5, 21) == pytest.approx(0.5 * 20 - GLANCE - 0.5 * WRONG)
    for characters in (5, 30):
        assert price.worth(price.least_probability(characters), characters) == pytest.approx(0)


def test_a_number_is_the_least_probability_of_a_text_that_is_worth_showing_too() -> None:
    line = candidate(["abcdefghij"], [0.7])
    assert shown(line, Settings(gate=0.7, whole_lines=True)) == ("abcdefghij", False)
    assert shown(line, Settings(gate=0.71, whole_lines=True)) is None
    assert shown(candidate(["abcd"], [0.7]), Settings(gate=0.5, whole_lines=True)) is None, "it saves too little"
    assert shown(candidate([], []), Settings(gate=0.0, whole_lines=True)) == ("", False)


def test_a_gate_of_zero_hides_nothing_and_one_of_one_what_is_not_certain() -> None:
    assert shown(candidate(["a", "b"], [0.1, 0.0]), Settings(gate=0)) == ("ab", False)
    assert shown(candidate(["abcdefghij"], [0.9999]), Settings(gate=1)) is None


def test_a_short_text_is_not_shown_though_it_is_likely() -> None:
    for length, probability, visible in ((3, 1.0, False), (4, 0.85, False), (4, 0.9, True), (5, 0.75, False)):
        name = "abcdef"[:length]
        assert bool(shown_text([name, "(x)"], [probability, 0.1], COUNTED)) == visible
        assert bool(shown_text([name], [probability], COUNTED)) == visible, "nor as the rest of a line"
    assert shown_text(["abcdefgh", "(x)"], [0.75, 0.1], COUNTED) == "abcdefgh", "a longer one is"


def test_the_end_that_is_worth_most_is_shown() -> None:
    for probability, text in ((0.45, "abcde"), (0.55, "abcde.defghijk"), (0.99, "abcde.defghijk")):
        assert shown_text(["abcde", ".defghijk", "(x)"], [0.95, probability, 0.2], COUNTED) == text
    many = ["abcdefgh", ".i", ".j", ".k", ".lmnopqrstuvwxyz"]
    assert shown_text(many, [0.95, 0.6, 0.99, 0.99, 0.99], COUNTED) == "".join(many), "beyond ends that are worth less"


def test_of_ends_that_are_worth_as_much_the_longer_is_shown() -> None:
    # Twelve characters, then 24 at half the probability: 0.5 * (24 - 1 + 5) = 12 - 1 + 5 - 2.
    price = Price(wrong=1.0)
    tokens, confidence = ["abcdefghijkl", ".bcdefghijkl"], [1.0, 0.5]
    assert price.worth(1.0, 12) == price.worth(0.5, 24)
    assert shown_text(tokens, confidence, Settings(gate=price)) == "".join(tokens)


def test_the_three_prices_are_in_order() -> None:
    shown_at = {
        word: [
            percent
            for percent in range(101)
            if shown(candidate(["abcdefghij"], [percent / 100]), Settings(gate=word)) is not None
        ]
        for word in GATES
    }
    assert shown_at["quiet"][0] > shown_at["normal"][0] > shown_at["eager"][0]
    for sure in ([0.97, 0.9, 0.8], [0.9, 0.7, 0.7]):
        texts = [shown_text(["abcde", ".defgh", "(hij"], sure, Settings(gate=word)) for word in GATES]
        assert texts == sorted(texts, key=len), "a dearer one is the shorter one"


def test_the_confidence_is_of_what_is_shown_of_the_first_line() -> None:
    language, hole = opened("").language, hole_at("x = ¦\n")
    call = candidate(["abcde", ".def", "\nx = 1"], [0.9, 0.8, 0.1])
    for gate, confidence in ((0.5, 0.72), (0.8, 0.9)):
        presented = gated(call, call.text, hole, language, Settings(gate=gate))
        assert presented is not None
        assert presented.confidence == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("marked", "last", "sure", "text"),
    [
        ("y = len(¦\n", ")", 0.75, "abcdefgh)"),
        ("y = len(¦\n", ")", 0.65, "abcdefgh"),
        ("y = [len(¦\n", ")]", 0.75, "abcdefgh)]"),
        ("y = len(¦\n", ")]", 0.75, "abcdefgh)"),
        ("y = ¦\n", ")", 0.75, "abcdefgh"),
        ("y = len(¦)\n", ")", 0.75, "abcdefgh"),
    ],
)
def test_a_start_ends_with_the_brackets_that_close_what_is_open(marked: str, last: str, sure: float, text: str) -> None:
    one = candidate(["abcdefgh", last, ".i"], [0.95, sure, 0.1])
    assert shown(one, Settings(gate="normal"), marked=marked) == (text, True), "a wrong one is soon deleted"
    assert shown(one, Settings(gate=0.9), marked=marked) == ("abcdefgh", True), "a number is for all of the text"


@pytest.mark.parametrize(
    ("marked", "tokens", "text"),
    [
        ("y = ¦\n", ["abcdefgh", ";"], "abcdefgh;"),
        ("y = len(¦\n", ["abcdefgh", ")", ";"], "abcdefgh);"),
        ("y = len(¦\n", ["abcdefgh", ");"], "abcdefgh);"),
        ("y = len(¦\n", ["abcdefgh", ";"], "abcdefgh"),
    ],
)
def test_a_start_ends_with_the_semicolon_that_ends_its_line(marked: str, tokens: list[str], text: str) -> None:
    one = attrs.evolve(candidate(tokens, [0.95, *[0.9] * (len(tokens) - 1)]), end_confidence=0.5)
    assert shown(one, Settings(gate="normal"), marked=marked) == (text, True)
    unsure = attrs.evolve(one, confidence=[0.95, *[0.65] * (len(tokens) - 1)])
    assert shown(unsure, Settings(gate="normal"), marked=marked) == ("abcdefgh", True)


def test_a_line_below_is_shown_if_it_adds_to_the_worth() -> None:
    tokens = ["abcde", ".def", "\nxyz = 1", "\n\n  abc = 2", "\nz"]
    lines = ["abcde.def", "\nxyz = 1", "\n\n  abc = 2", "\nz"]
    for confidence, count in (
        ([0.9, 0.9, 0.1, 0.9, 0.9], 1),
        ([0.9, 0.9, 0.9, 0.3, 0.9], 2),
        ([0.9] * 5, 3),  # The last line saves two keys, as much as it costs to read.
        ([0.9, 0.9, 0.5, 1.0, 0.9], 3),  # What the second line costs, the third brings back.
    ):
        assert shown(candidate(tokens, confidence), COUNTED) == ("".join(lines[:count]), False)
    assert shown(candidate(tokens, [0.9, 0.9, 0.9, 0.7, 0.9]), Settings(gate=0.8)) == ("".join(lines[:2]), False)
    assert shown(candidate(tokens, [0.9, 0.9, 0.1, 0.1, 0.1]), Settings(gate=0.0)) == ("".join(lines), False)


def test_a_line_below_that_only_closes_costs_no_glance() -> None:
    block = candidate(["if (a) {", "\n    call(b)", "\n}"], [0.95, 0.95, 0.95])
    assert shown(block, COUNTED) == (block.text, False)


def test_a_line_below_that_was_cut_off_is_not_shown() -> None:
    block = candidate(["abcde.def", "\n    call(a, b", "cdefgh"], [0.99, 0.99, 0.99])
    assert shown(block, COUNTED) == (block.text, False)
    assert shown(attrs.evolve(block, finish="canvas full"), COUNTED) == ("abcde.def", False)


def test_a_doubtful_first_line_hides_the_lines_below_it() -> None:
    tokens, confidence = ["abcde", ".def", "\nx = 1"], [0.9, 0.9, 0.9]
    assert shown_text(tokens, confidence, Settings(gate=0.85)) == "abcde"
    assert shown_text(tokens, confidence, Settings(gate=0.95)) == ""


def test_the_setting_whole_lines_hides_starts() -> None:
    tokens, confidence = ["abcde", ".def"], [0.9, 0.9]
    assert shown_text(tokens, confidence, Settings(gate=0.8, whole_lines=True)) == "abcde.def"
    assert shown_text(tokens, confidence, Settings(gate=0.85, whole_lines=True)) == ""


def test_an_unsure_fill_has_no_whole_line() -> None:
    unsure = Candidate("abcde.def[x", ["abcde", ".def", "[", "x"], [0.95, 0.95, 0.99, 0.3], "unsure")
    assert shown(unsure, COUNTED, "abcde.def[") == ("abcde.def", True)
    assert shown(attrs.evolve(unsure, finish="complete"), COUNTED, "abcde.def[") == ("abcde.def[", False)


def test_a_fill_that_was_cut_off_within_its_line_has_no_whole_line() -> None:
    for finish in ("canvas full", "deadline"):
        cut_off = Candidate("abcde.defin", ["abcde", ".", "defin"], [0.99, 0.99, 0.99], finish, continues=[0, 0, 0, 0])
        assert shown(cut_off, COUNTED) == ("abcde.defin", True)
        assert shown(attrs.evolve(cut_off, continues=[0, 0, 0, 0.9]), COUNTED) == ("abcde.", True)
        two_lines = attrs.evolve(cut_off, text="abcde\n    x", tokens=["abcde", "\n    ", "x"])
        assert shown(two_lines, COUNTED) == ("abcde", False), "its second line was cut off"


def test_a_word_that_probably_goes_on_is_not_shown() -> None:
    call = Candidate("abcde.def(x)", ["abcde", ".def", "(x)"], [0.95, 0.95, 0.3], "complete", continues=[0, 0, 0.5, 0])
    assert shown(call, COUNTED) == ("abcde.", True)
    assert shown(attrs.evolve(call, continues=[0, 0, 0.05, 0]), COUNTED) == ("abcde.def", True)


def test_text_that_shaping_added_or_removed_does_not_count() -> None:
    settings = Settings(gate=0.6)
    assert shown_text(["  ", "abcde", ".def", ")))"], [0.1, 0.9, 0.5, 0.1], settings, "abcde.def") == "abcde"
    assert shown_text(["abcde", ".def"], [0.9, 0.5], settings, "    abcde.def") == "    abcde"
    assert shown_text(["abcde", ".def"], [0.9, 0.5], settings, "    abcde.def\r\n    x") == "    abcde"
    assert shown_text(["abcde", ".def"], [0.9, 0.5], settings, "xyz.def") == "", "the model did not write this line"


def test_a_line_whose_end_is_doubtful_is_shown_as_a_start() -> None:
    line = Candidate("abcde.def", ["abcde", ".def"], [0.99, 0.95], "complete", end_confidence=0.4)
    assert shown(line, COUNTED) == ("abcde.def", True)
    assert shown(attrs.evolve(line, end_confidence=0.9), COUNTED) == ("abcde.def", False)


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
    Case("no bracket of its own stays open at the line's end", "x = ¦\n", "call(¦a)", "call"),
    Case("nor with what is sure inside it", "x = ¦\n", "call(a, ¦b)", "call"),
    Case("a block's bracket may", "if ¦\n", "value {¦ go", "value {", "rust"),
    Case("where something follows, it may too", "x = ¦ + y\n", "call(¦a)", "call("),
    Case("a name is never cut", "x = ¦\n", "abc + get_na¦me()", "abc +"),
    Case("a name with a dollar is one", "let x = ¦\n", "a.b + $¦scope", "a.b +", "javascript"),
    Case("a name with hyphens is one", "a {\n  ¦\n}\n", "display: inline-¦block;", "display:", "css"),
    Case("a minus separates two names", "x = ¦\n", "count - ¦1", "count -"),
    Case("a number is never cut", "x = ¦\n", "pi or 3¦.14", "pi or"),
    Case("its exponent is not cut either", "x = ¦\n", "pi or 1e-¦5", "pi or"),
    Case("a range is two numbers", "for i in ¦\n", "n in 1¦..10", "n in 1", "rust"),
    Case("an operator is never cut", "if ¦\n", "value =¦= 1", "value"),
    Case("brackets are marks of their own", "x = ¦\n", "aaaa)](¦)", "aaaa)]"),
    Case("no space at the end", "x = ¦\n", "self.a  ¦+ 1", "self.a"),
    Case("too short is nothing", "x = ¦\n", "abc¦.cd", ""),
    Case("nothing confident is nothing", "x = ¦\n", "¦abc.de", ""),
    Case("indentation does not count", "def f():\n¦\n", "    abc¦.cd()", ""),
    Case("indentation stays", "def f():\n¦\n", "    return¦ 1", "    return"),
    Case("only the first of several lines", "def f():\n    ¦\n", "if a:¦  # b\n        c\n    d", "if a:"),
    # The rest of a name that is begun.
    Case("it may have three characters", "x = self.al¦\n", "pha¦.cd", "pha"),
    Case("not two", "x = self.alp¦\n", "ha¦.cd", ""),
    Case("with the marks after it", "x = self.al¦\n", "ph.¦cd", "ph."),
    Case("a number is no name", "x = 12¦\n", "345¦.cd", ""),
    Case("what goes on after a space is no rest", "x = al¦\n", "p or¦ b", "p or"),
    Case("a name of its own is no rest", "x = a.¦\n", "pha¦.cd", ""),
    # Strings and comments.
    Case("half a string is nothing", "x = ¦\n", 'call("some ¦words")', "call"),
    Case("a whole string is fine", "x = ¦\n", '"some words"¦ + b', '"some words"'),
    Case("in a string it ends after a word", 'x = "¦"\n', "some words¦ more", "some words"),
    Case("it may close the string it is in", 'x = "a¦\n', 'bcd"¦ + c', 'bcd"'),
    Case("it opens no other string after that", 'x = f("a¦\n', 'bcd", "¦e")', 'bcd",'),
    Case("an apostrophe in a comment opens nothing", "# we ¦\n", "don't know¦ it", "don't know"),
    Case("an apostrophe in a comment of its own", "x = ¦\n", "1  # don't know¦ it", "1  # don't know"),
    Case("the sign of a comment alone is nothing", "x = ¦\n", "abcd  # ¦note", "abcd"),
    # What follows the cursor.
    Case("a bracket after the cursor", "x = call(¦)\n", "a.b(c¦), d", "a.b(c"),
    Case("what follows is not repeated", "x = call(¦, b, c)\n", "abcd, b, c¦ + 1", "abcd"),
    Case("a space right after the cursor", "for ¦ in items:\n", "each¦, other", "each"),
    Case("the line below is not repeated", "¦\nreturn\n", "return¦ 1", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_start(case: Case) -> None:
    confident, rest = case.fill.split("¦")
    fill = Candidate(confident + rest, [confident, rest], [CONFIDENT, DOUBTFUL], "complete")
    language = opened("", case.language).language
    hole = hole_at(case.marked, case.language)
    assert worthy_start(fill, fill.text, hole, language, Price()).text == case.shown
