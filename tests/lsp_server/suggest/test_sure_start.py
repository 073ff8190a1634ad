"""The sure start of a line: where it ends, and where there is none. One row of the table is one case."""

import math

import attrs
import pytest
from marked import hole_at, opened

from engine.protocol.confidence import FEWEST_CHARACTERS, sure_until
from engine.protocol.messages import Candidate
from lsp_server.settings import Settings
from lsp_server.suggest.gate import Shown, let_through
from lsp_server.suggest.sure_start import sure_start

SURE, UNSURE = 0.99, 0.3


def candidate(tokens: list[str], confidence: list[float]) -> Candidate:
    return Candidate("".join(tokens), tokens, confidence, "complete")


@attrs.frozen
class Case:
    """`fill` is sure up to the first "¦" in it; all of it is what shaping left."""

    name: str
    marked: str
    fill: str
    shown: str
    language: str = "python"


CASES = [
    # Names, numbers, marks.
    Case("it ends behind a name", "x = ¦\n", "self¦.other", "self"),
    Case("it ends behind a mark", "x = ¦\n", "self.¦other", "self."),
    Case("an opening bracket may stay open", "x = ¦\n", "call(¦a)", "call("),
    Case("a name is never cut", "x = ¦\n", "a + get_na¦me()", "a +"),
    Case("a name with a dollar is one", "let x = ¦\n", "a.b + $¦scope", "a.b +", "javascript"),
    Case("a name with hyphens is one", "a {\n  ¦\n}\n", "display: inline-¦block;", "display:", "css"),
    Case("a minus parts two names", "x = ¦\n", "count - ¦1", "count -"),
    Case("a number is never cut", "x = ¦\n", "pi or 3¦.14", "pi or"),
    Case("nor is its exponent", "x = ¦\n", "pi or 1e-¦5", "pi or"),
    Case("a range is two numbers", "for i in ¦\n", "n in 1¦..10", "n in 1", "rust"),
    Case("an operator is never cut", "if ¦\n", "value =¦= 1", "value"),
    Case("brackets are marks of their own", "x = ¦\n", "a[b(¦)]", "a[b("),
    Case("no blank at the end", "x = ¦\n", "self.a  ¦+ 1", "self.a"),
    Case("too short is nothing", "x = ¦\n", "ab¦.cd", ""),
    Case("nothing sure is nothing", "x = ¦\n", "¦abc.de", ""),
    Case("indentation does not count", "def f():\n¦\n", "    ab¦.cd()", ""),
    Case("indentation stays", "def f():\n¦\n", "    return¦ 1", "    return"),
    Case("of several lines only the first", "def f():\n    ¦\n", "if a:¦  # b\n        c\n    d", "if a:"),
    # Strings and comments.
    Case("half a text is nothing", "x = ¦\n", 'call("some ¦words")', "call("),
    Case("a whole text is fine", "x = ¦\n", 'call("some words"¦, 1)', 'call("some words"'),
    Case("in a text it ends behind a word", 'x = "¦"\n', "some words¦ more", "some words"),
    Case("it may close the text it is in", 'x = "a¦\n', 'bcd"¦ + c', 'bcd"'),
    Case("it opens no other text behind that", 'x = f("a¦\n', 'bcd", "¦e")', 'bcd",'),
    Case("an apostrophe in a comment opens nothing", "# we ¦\n", "don't know¦ it", "don't know"),
    Case("an apostrophe in a comment of its own", "x = ¦\n", "1  # don't know¦ it", "1  # don't know"),
    Case("the sign of a comment alone is nothing", "x = ¦\n", "abc  # ¦note", "abc"),
    # What stands behind the cursor.
    Case("a bracket behind it", "x = call(¦)\n", "a.b(c¦), d", "a.b(c"),
    Case("what follows is not written twice", "x = call(¦, b, c)\n", "abc, b, c¦ + 1", "abc"),
    Case("a word right behind it", "for ¦items:\n", "each in¦ the ", ""),
    Case("a blank right behind it", "for ¦ in items:\n", "each¦, other", "each"),
    Case("the line below is not written twice", "¦\nreturn\n", "return¦ 1", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_start(case: Case) -> None:
    sure, rest = case.fill.split("¦")
    found = sure_start(
        candidate([sure, rest], [SURE, UNSURE]),
        sure + rest,
        hole_at(case.marked, case.language),
        opened("", case.language).language,
        0.5,
    )
    assert found == case.shown


def let(tokens: list[str], confidence: list[float], settings: Settings, shaped: str | None = None) -> str:
    one = candidate(tokens, confidence)
    shown = let_through(one, shaped or one.text, hole_at("x = ¦\n"), opened("").language, settings)
    assert shown is None or shown.cut == (shown.text != (shaped or one.text))
    return "" if shown is None else shown.text


def test_a_first_line_that_is_sure_is_shown_with_all_below_it() -> None:
    tokens, confidence = ["abc", ".def", "\nx = 1"], [0.9, 0.9, 0.1]
    assert let(tokens, confidence, Settings(gate=0.8)) == "abc.def\nx = 1"
    assert let(tokens, confidence, Settings(gate=0.85)) == "abc"
    assert let(tokens, confidence, Settings(gate=0.95)) == ""


def test_whole_lines_only() -> None:
    tokens, confidence = ["abc", ".def"], [0.9, 0.9]
    assert let(tokens, confidence, Settings(gate=0.8, whole_lines=True)) == "abc.def"
    assert let(tokens, confidence, Settings(gate=0.85, whole_lines=True)) == ""


def test_a_fill_that_ended_where_it_was_not_sure_is_no_whole_line() -> None:
    one = Candidate("abc.def(x", ["abc", ".def", "(", "x"], [0.9, 0.9, 0.9, 0.3], "unsure")
    shaped = "abc.def("
    shown = let_through(one, shaped, hole_at("x = ¦\n"), opened("").language, Settings(gate=0.6))
    assert shown == Shown("abc.def(", cut=True)
    assert let_through(
        attrs.evolve(one, finish="complete"), shaped, hole_at("x = ¦\n"), opened("").language, Settings(gate=0.6)
    ) == Shown(shaped, cut=False)


def test_what_shaping_put_in_front_and_took_off_the_end_does_not_count() -> None:
    settings = Settings(gate=0.6)
    assert let(["  ", "abc", ".def", ")))"], [0.1, 0.7, 0.5, 0.1], settings, "abc.def") == "abc"
    assert let(["abc", ".def"], [0.7, 0.5], settings, "    abc.def") == "    abc"
    assert let(["abc", ".def"], [0.7, 0.5], settings, "    abc.def\r\n    x") == "    abc"
    assert let(["abc", ".def"], [0.7, 0.5], settings, "xyz.def") == "", "not what the model wrote"


def test_tokens_are_sure_as_long_as_their_product_is() -> None:
    one = candidate(["ab", "cd", "ef"], [0.9, 0.8, 0.7])
    assert [sure_until(one, 0, gate) for gate in (0.95, 0.9, 0.73, 0.7, 0.51, 0.5)] == [0, 2, 2, 4, 4, 6]
    assert sure_until(one, 2, 0.75) == 4
    assert sure_until(one, 3, 0.75) == 4, "the token that the start is in counts"
    assert sure_until(candidate([], []), 0, 0.0) == 0
    assert sure_until(one, 0, math.inf) == 0


def test_a_start_has_the_fewest_characters_or_more() -> None:
    for length in range(1, 6):
        name = "abcdef"[:length]
        shown = let([name, "(x)"], [SURE, UNSURE], Settings(gate=0.5))
        assert shown == (name if length >= FEWEST_CHARACTERS else "")
