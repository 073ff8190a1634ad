"""The confident start of a line: where it ends, and where there is none. One row of the table is one case."""

import attrs
import pytest
from marked import hole_at, opened

from engine.protocol.messages import Candidate
from lsp_server.suggest.line_start import confident_start

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
    assert confident_start(fill, fill.text, hole_at(case.marked, case.language), language, 0.5) == case.shown
