"""Lines of a fill: where one ends inside a token, and where a text repeats the code below."""

import pytest

from engine.fill.lines import Below, GrowingLine, line_end

BELOW = Below.of("def one():\n", "\n\n    return result\n\ndef other():\n    pass\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (":\n", ":"),
        (")\n\n    ", ")"),
        (",\r\n", ","),
        ("\n", ""),
        ("\r\n", ""),
        ("a\rb", "a\rb"),
        ("all", "all"),
        ("", ""),
        ("\u00e9\n\u00e9", "\u00e9"),
    ],
)
def test_a_line_ends_before_its_newline_in_text_and_in_bytes(text: str, line: str) -> None:
    assert text[: line_end(text)] == line
    data = text.encode()
    assert data[: line_end(data)] == line.encode()


def test_a_token_that_ends_the_first_line_counts_and_those_after_it_do_not() -> None:
    line = GrowingLine()
    found = [line.add(text, share) for text, share in ((" a", 0.5), (":\n    ", 0.5), ("b", 0.1))]
    assert found == pytest.approx([0.5, 0.25, 0.25])


def test_white_space_before_the_line_does_not_count() -> None:
    line = GrowingLine()
    assert line.add("\n   ", 0.1) == 1.0
    assert line.add(" a\n", 0.5) == 0.5


@pytest.mark.parametrize(
    ("text", "middle"),
    [
        ("x = 1\n    return result\n\ndef other():\n", "x = 1"),
        ("x = 1\n\n    return result\ndef other():\n    pa", "x = 1"),
        ("return result\n\ndef other():\n", ""),
        ("if x:\n        return 1\n    return result\n\n\ndef other():\n", "if x:\n        return 1"),
    ],
)
def test_a_text_is_cut_where_it_surely_repeats_what_is_below(text: str, middle: str) -> None:
    repeat = BELOW.repeat(text)
    assert repeat is not None
    assert repeat.is_sure
    assert text[: repeat.at] == middle


@pytest.mark.parametrize(
    "text", ["x = 1\n    return result\n    more\n", "x = 1\n        return result\n", "x = 1\n", ""]
)
def test_other_lines_or_another_indentation_are_no_repeat(text: str) -> None:
    assert BELOW.repeat(text) is None


@pytest.mark.parametrize(("text", "lines"), [("x = 1\n    ret", 0), ("x = 1\n    return result\n", 1)])
def test_one_line_alone_may_be_a_repeat_and_is_not_sure(text: str, lines: int) -> None:
    repeat = BELOW.repeat(text)
    assert repeat is not None
    assert (repeat.at, repeat.lines, repeat.is_sure) == (len("x = 1"), lines, False)


def test_the_rest_of_the_line_ends_the_text_where_it_comes_again() -> None:
    inside = Below.of("    call(", ", b)\n    more()\n")
    repeat = inside.repeat("a, b)\n")
    assert repeat is not None
    assert repeat.is_sure
    assert repeat.at == len("a")
    assert inside.repeat("a)\n") is None


def test_nothing_below_is_never_repeated() -> None:
    assert Below.of("", "").repeat("a\n\nb\n") is None
    assert Below.of("", "\n\n").repeat("a\n\nb\n") is None


@pytest.mark.parametrize(
    ("prefix", "suffix", "text", "middle"),
    [
        ("def one():\n    ", "", "x = 1\n    y = 2\n\n# Test\n", "x = 1\n    y = 2"),
        ("def one():\n", "", "    if x:\n        y()\n    z()\nprint(", "    if x:\n        y()\n    z()"),
        ("    if x:\n        ", "\n    return y\n", "y = 1\nclass A:", "y = 1"),
        ("x = 1\n", "\ny = 2\n", "z = 3\n```\nThis", "z = 3"),
    ],
)
def test_a_text_ends_where_it_leaves_what_the_hole_is_in(prefix: str, suffix: str, text: str, middle: str) -> None:
    repeat = Below.of(prefix, suffix, "python").repeat(text)
    assert repeat is not None
    assert repeat.is_sure
    assert text[: repeat.at] == middle


@pytest.mark.parametrize(
    ("prefix", "suffix", "text", "language"),
    [
        ("x = 1\n", "", "def f():\n    y()\nz()\n", "python"),
        ("    if x:\n        ", "\n    return y\n", "y = 1\n    z = 2\n", "python"),
        ("value = call(", "", "\n    a,\n)\n", "python"),
        ("text\n", "", "more\n```\ncode\n", "markdown"),
    ],
)
def test_a_text_goes_on_where_its_lines_may_be(prefix: str, suffix: str, text: str, language: str) -> None:
    assert Below.of(prefix, suffix, language).repeat(text) is None
