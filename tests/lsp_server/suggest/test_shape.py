"""Shaping keeps the part of a raw fill that fits around the cursor, and adds no syntax error."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.marked import at_cursor, opened

from lsp_server.hole.hole import cut_hole
from lsp_server.languages.language import errors
from lsp_server.suggest.shape import SyntaxJudge, shape


@attrs.frozen
class Case:
    name: str
    marked: str
    fill: str
    shown: str | None
    language: str = "python"


CASES = [
    Case("a good fill stays", "x = ¦\n", "foo(1)", "foo(1)"),
    Case("nothing is nothing", "¦\n", "", None),
    Case("white space is nothing", "¦\n", "  \n\n ", None),
    Case("a fill of one line ends at its line end", "x = ¦\n", "1\ny = 2", "1"),
    Case("white space at the end is removed", "x = ¦\n", "1  ", "1"),
    Case("broken characters end it", "x = ¦\n", "12\ufffd3", "12"),
    # What follows on the line.
    Case("the closing bracket exists", "x = foo(¦)\n", "a, b)", "a, b"),
    Case("the fill's own bracket stays", "x = foo(¦)\n", "bar(a)", "bar(a)"),
    Case("one of two brackets exists", "x = foo(bar(¦)\n", "a, b))", "a, b)"),
    Case("no bracket exists", "x = foo(¦\n", "a, b)", "a, b)"),
    Case("the list is closed", "x = [¦]\n", "1, 2]", "1, 2"),
    Case("the end of the header exists", "def f(¦):\n    pass\n", "a, b): return 1", "a, b"),
    Case("the closing quote exists", 'x = "¦"\n', 'hello")', "hello"),
    Case("the closing quote is missing", 'x = "¦\n', 'hello"', 'hello"'),
    Case("an escaped quote closes nothing", 'x = "¦"\n', 'say \\"hi\\""', 'say \\"hi\\"'),
    Case("a bracket in a string closes nothing", "x = foo(¦)\n", '")", a)', '")", a'),
    Case("the rest of a string exists", 'print("he¦llo")\n', 'y llo")', "y "),
    Case("a name exists", "for ¦items:\n", "x in items:", "x in "),
    Case("a name and more exists", "for ¦ in items:\n", "x in items:", "x"),
    Case("a comment exists", "x = ¦  # note\n", "1  # note", "1"),
    Case("a semicolon exists", "fn f() {\n    let x = ¦;\n}\n", "foo(a);", "foo(a)", "rust"),
    Case("a bracket and a semicolon exist", "const a = foo(¦);\n", "b => b.c);", "b => b.c", "javascript"),
    # What follows below.
    Case("the line below is not repeated", "def f():\n    ¦\n    return x\n", "x = 1\n    return x", "x = 1"),
    Case("a repeated line is nothing", "def f():\n    ¦\n    return x\n", "return x\n", None),
    Case("a line completed to the one below", "def f():\n    ret¦\n    return x\n", "urn x", None),
    Case("a brace below is not repeated", "a {\n  ¦\n}\n", "color: red;\n}", "color: red;", "css"),
    Case("a brace of its own stays", "¦\n}\n", "if (x) {\n  y();\n}", "if (x) {\n  y();\n}", "javascript"),
    Case("the brackets of a dict below", "x = {\n    ¦\n}\n", '"b": 2,\n}\ny = 3', '"b": 2,'),
    # Indentation.
    Case("indentation is not doubled", "def f():\n    ¦\n", "    x = 1\n    return x", "x = 1\n    return x"),
    Case(
        "indentation that is doubled in all lines",
        "def f():\n    ¦\n",
        "    if x:\n            y()\n        z()",
        "if x:\n        y()\n    z()",
    ),
    Case("missing indentation is added", "def f():\n¦\n", "return 1", "    return 1"),
    Case("the rest of the indentation is added", "def f():\n    if x:\n      ¦\n", "return 1", "  return 1"),
    Case("a step of the user's own stays", "def f():\n      ¦\n", "return 1", "return 1"),
    Case("a dedent ends it", "def f():\n    ¦\n", "return 1\n\n\ndef g():\n    pass", "return 1"),
    Case("a nested body stays", "def f():\n    ¦\n", "if a:\n        b\n    c", "if a:\n        b\n    c"),
    Case("tabs stay tabs", "func f() {\n\t¦\n}\n", "if a {\n\t\tb()\n\t}", "if a {\n\t\tb()\n\t}", "go"),
    Case("blank lines before it are removed", "def f():\n    ¦\n", "\n\n    return 1", "return 1"),
    # Repetition.
    Case("a line repeated", "¦\n", "a = 1\n" * 5, "a = 1"),
    Case("two lines repeated", "¦\n", "a = 1\nb = 2\n" * 4, "a = 1\nb = 2"),
    Case("a stutter", "x = a.¦\n", ".".join(["bc"] * 9), "bc"),
    # Syntax.
    Case("what does not parse is cut back", "x = ¦\n", "a + ) b", "a"),
    Case("one bracket too many", "x = ¦\n", "foo(a))", "foo(a)"),
    Case("a line that does not parse is dropped", "¦\n", "x = 1\ny = = 2", "x = 1"),
    Case("no part parses", "x = 1\n¦\n", ") ] }", None),
    Case("unclosed on both sides", "x = foo(¦\ny = 2\n", "a, b", "a, b"),
    Case("a call that goes on", "x = ¦\n", "foo(bar", "foo(bar"),
    Case("a header whose body is missing", "if a:\n    b\nels¦\n", "e:", "e:"),
    Case("a header of a body that exists", "if x ¦\n    foo()\n", "> 3:", "> 3:"),
    Case("a header in braces", "tr¦\n", "y {", "y {", "javascript"),
    Case("a header in Lua", "if x ¦\n", "then", "then", "lua"),
    Case("a header in Ruby", "def a¦\n", "rea(r)", "rea(r)", "ruby"),
    Case("a header in a shell", "for f in *; ¦\n", "do", "do", "shellscript"),
    Case("an error elsewhere does not matter", "y = = 1\n\n\nx = ¦\n", "foo(1)", "foo(1)"),
    # Other kinds of documents.
    Case("CRLF stays CRLF", "x = foo(\r\n    ¦\r\n)\r\n", "a,\n    b,", "a,\r\n    b,"),
    Case("no grammar: by brackets and lines", "foo (bar¦)\nend\n", " baz)\nend", " baz", "plaintext"),
    Case("a comment goes to its end", "# the ¦\n", "name of it\nx = 1", "name of it"),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_fill_is_shaped(case: Case) -> None:
    snapshot, offset = at_cursor(case.marked, case.language)
    assert shape(case.fill, cut_hole(snapshot, offset), snapshot, max_lines=12) == case.shown


def test_no_more_lines_than_allowed_are_shown() -> None:
    snapshot, offset = at_cursor("¦\n")
    assert shape("a = 1\nb = 2\nc = 3", cut_hole(snapshot, offset), snapshot, max_lines=2) == "a = 1\nb = 2"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_shaping_a_shaped_fill_changes_nothing(case: Case) -> None:
    snapshot, offset = at_cursor(case.marked, case.language)
    if case.shown is not None and "\n" not in case.shown:
        assert shape(case.shown, cut_hole(snapshot, offset), snapshot, max_lines=12) == case.shown


PIECES = ["x", "foo", "(", ")", "[", "]", " ", ", ", '"', " = ", "items:", "1", ";", "\n", "    ", "return "]
code = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
rests = st.lists(st.sampled_from([piece for piece in PIECES if piece != "\n"]), max_size=4).map("".join)


@given(code, code, rests)
@settings(max_examples=200)
def test_a_fill_never_ends_with_the_text_after_the_cursor(before: str, fill: str, rest: str) -> None:
    snapshot, offset = at_cursor(f"{before}¦{rest}\n")
    shown = shape(fill, cut_hole(snapshot, offset), snapshot, max_lines=12)
    assert shown is None or shown.strip()
    has_word_or_mark = any(char not in "()[]{}\"'`;:,. " for char in rest) or rest.strip() in (";", ":", ",")
    if shown is not None and has_word_or_mark:
        assert not shown.rstrip().endswith(rest.strip())


def cleanest(marked: str, fill: str, language: str = "python") -> str | None:
    snapshot, offset = at_cursor(marked, language)
    return SyntaxJudge(snapshot, cut_hole(snapshot, offset)).cleanest(fill)


def test_a_clean_fill_is_kept_whole() -> None:
    assert cleanest("¦\n", "if a:\n    b()\nelse:\n    c()") == "if a:\n    b()\nelse:\n    c()"


def test_whole_lines_are_dropped_before_parts_of_one() -> None:
    assert cleanest("¦\n", "a = 1\nb = 2\nc = ) 3") == "a = 1\nb = 2"


def test_the_only_line_is_cut_at_a_token() -> None:
    assert cleanest("x = ¦\n", "a + b ) c") == "a + b"


def test_a_fill_that_is_wrong_from_the_start_is_dropped() -> None:
    assert cleanest("x = 1\n¦\n", ")))") is None


def test_a_fill_that_repairs_an_error_is_kept() -> None:
    assert cleanest("x = foo(¦\ny = 2\n", "a)") == "a)"


@pytest.mark.parametrize("fill", ["a, b", "bar(", "[a, b", "bar(a, [b"])
def test_brackets_of_unfinished_code_may_stay_open(fill: str) -> None:
    assert cleanest("x = foo(¦\n", fill) == fill


def test_without_a_grammar_everything_is_kept() -> None:
    assert cleanest("¦", ")))", "plaintext") == ")))"


def test_an_unclosed_bracket_is_one_error_however_much_follows() -> None:
    tree = opened("x = foo(a, b\ny = 2\n").tree
    assert tree is not None
    assert len(errors(tree.root_node)) == 1


def test_code_that_parses_has_no_errors() -> None:
    tree = opened("x = 1\n").tree
    assert tree is not None
    assert errors(tree.root_node) == []
