"""Pasted code gets the names, quotes and indentation of its surroundings where there is no doubt, and stays else."""

import pytest
from support.typist import Typist

from lsp_server.refactor.paste import adapted, is_paste

_HERE = '''import httpx


def load(session, url):
    """Load it."""
    first = session.get(url)
    name = "a" + "b" + "c" + "d"
    @@
    return first
'''


def _pasted(text: str, pasted: str, language: str = "python") -> str:
    """Return the text after `pasted` was put in the place of "@@" and adapted."""
    start = text.index("@@")
    typist = Typist(text.replace("@@", ""))
    typist.change(start, 0, pasted)
    edit = typist.edits.newest
    assert edit is not None
    if not is_paste(edit):
        return typist.text
    return adapted(edit, language, "file").applied(typist.text)


def _expected(text: str, lines: str) -> str:
    return text.replace("@@", lines)


def test_names_at_the_same_places_of_the_same_calls_are_put_in() -> None:
    assert _pasted(_HERE, "again = self.client.get(uri)\n    again.close()") == _expected(
        _HERE, "again = session.get(url)\n    again.close()"
    )


@pytest.mark.parametrize(
    "pasted",
    [
        "again = self.client.get(uri)\n    print(other)",  # nothing stands for `other`
        "again = self.client.fetch(uri)\n    again.close()",  # nobody calls fetch
        "one = a.get(x)\n    two = b.get(x)",  # a and b cannot both be session
        "one = a.get(x)\n    two = a.get(y)",  # x and y cannot both be url
    ],
)
def test_names_that_are_not_one_to_one_stay(pasted: str) -> None:
    assert _pasted(_HERE, pasted) == _expected(_HERE, pasted)


def test_two_names_of_the_file_for_one_name_leave_it_alone() -> None:
    here = _HERE.replace('"a"', "session.get(name)")
    pasted = "again = client.get(uri)\n    again.close()"
    assert _pasted(here, pasted) == _expected(here, pasted)


def test_a_name_that_is_not_known_where_the_code_is_pasted_is_not_used() -> None:
    here = "def f(session, url):\n    session.get(url)\n\n\ndef g():\n    a = 1\n    @@\n    return a\n"
    pasted = "b = client.get(uri)\n    print(b)"
    assert _pasted(here, pasted) == _expected(here, pasted)


def test_known_names_stay() -> None:
    pasted = "again = httpx.get(url)\n    again.close()"
    assert _pasted(_HERE, pasted) == _expected(_HERE, pasted)


def test_quotes_are_those_of_the_file() -> None:
    pasted = "again = session.get('x', \"it's\", 'say \"')\n    print(f'{again}', b'y')"
    right = 'again = session.get("x", "it\'s", \'say "\')\n    print(f\'{again}\', b"y")'
    assert _pasted(_HERE, pasted) == _expected(_HERE, right)


def test_indentation_is_that_of_the_lines_around() -> None:
    here = _HERE.replace("    @@\n", "@@")
    pasted = "        if first:\n                print(first)\n        print(url)\n"
    right = "    if first:\n        print(first)\n    print(url)\n"
    assert _pasted(here, pasted) == _expected(here, right)


def test_tabs_become_spaces() -> None:
    pasted = "if first:\n\t\tprint(first)\n\tprint(url)"
    assert _pasted(_HERE, pasted) == _expected(_HERE, "if first:\n        print(first)\n    print(url)")


def test_indentation_that_the_lines_around_leave_open_stays() -> None:
    here = "def f():\n    a = 1\n@@\n\nb = 2\n"
    pasted = "        c = 1\n        d = 2"
    assert _pasted(here, pasted) == _expected(here, pasted)


def test_a_block_without_statements_says_where_its_lines_belong() -> None:
    here = "function f(a) {\n  g(a);\n}\n\nfunction h(a) {\n@@}\n"
    pasted = "      if (a) {\n            g(a);\n      }\n"
    right = "  if (a) {\n    g(a);\n  }\n"
    assert _pasted(here, pasted, "typescript") == _expected(here, right)


def test_no_comment_and_no_docstring_decides_how_deep_a_step_is() -> None:
    prose = "/*\n * Notes:\n *     a\n */\n// Or (\n//         b\nconst s = `\nlist:\n        c\nmore:\n        d\n`;\n"
    prose += "/*\nlist:\n        c\nmore:\n        d\n*/\n"
    here = prose + "function f(a) {\n  g(a);\n}\n\nfunction h(a) {\n@@}\n"
    pasted = "      if (a) {\n            g(a);\n      }\n"
    right = "  if (a) {\n    g(a);\n  }\n"
    assert _pasted(here, pasted, "typescript") == _expected(here, right)


def test_text_in_strings_over_several_lines_is_not_moved() -> None:
    pasted = "x = '''\n  a\n        b'''\n    print(x)"
    assert _pasted(_HERE, pasted) == _expected(_HERE, pasted)


def test_one_line_and_typed_lines_are_no_paste() -> None:
    typist = Typist("a\n\n")
    typist.change(2, 0, "print(x)")
    assert typist.edits.newest is not None
    assert not is_paste(typist.edits.newest)
    typist = Typist("a\n\n")
    for index, key in enumerate("b(1)\nc(2)\n"):
        typist.change(2 + index, 0, key)
    assert typist.edits.newest is not None
    assert not is_paste(typist.edits.newest)
