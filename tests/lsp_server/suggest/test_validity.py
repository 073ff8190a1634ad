"""The syntax judge cuts a fill back to what adds no syntax error."""

import pytest
from support.marked import at_cursor, opened

from lsp_server.hole.hole import cut_hole
from lsp_server.languages.parsing import errors
from lsp_server.suggest.shape import SyntaxJudge


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
