"""A module of Python whose import became that of another one takes its imports and its uses along."""

import pytest
from support.refactor_case import doubts, reasons, sure_edit

from lsp_server.refactor.learn.example import NoRule

CODE = "import old\n\n\ndef f(x):\n    return old.get(x)\n"
EXAMPLE = (CODE, CODE.replace("import old", "import new"))


@pytest.mark.parametrize("example", [EXAMPLE, (CODE, CODE.replace("old", "new"))])
def test_imports_and_uses_follow(example: tuple[str, str]) -> None:
    text = "import old\nimport old as o\nfrom old import A\n\n\ndef g():\n    return o, A, old.get(1).old\n"
    assert sure_edit("python", text, example).applied(text) == text.replace("old", "new").replace(".new", ".old")


def test_uses_left_in_the_example_follow() -> None:
    assert sure_edit("python", EXAMPLE[1], EXAMPLE).applied(EXAMPLE[1]) == CODE.replace("old", "new")


def test_what_only_has_the_name_stays() -> None:
    text = "from pkg import old\n\n\ndef g(old, y):\n    return old.a, y.old, h(old=1), 'old'\n"
    edit = sure_edit("python", text, EXAMPLE)
    assert edit.applied(text) == text
    assert not reasons(edit)


def test_a_part_of_the_module_is_doubtful() -> None:
    text = "import old\nfrom old.web import A\n\nold.get(A)\n"
    edit = sure_edit("python", text, EXAMPLE)
    assert edit.applied(text) == "import new\nfrom old.web import A\n\nnew.get(A)\n"
    assert doubts(edit) == ["`old.web` may be no module of `new`"]


def test_a_file_that_has_the_new_name_for_something_else_is_doubtful() -> None:
    text = "import old\n\n\ndef new():\n    return old.get(1)\n"
    edit = sure_edit("python", text, EXAMPLE)
    assert edit.applied(text) == text
    assert set(doubts(edit)) == {"`new` is something else here"}


def test_an_import_that_nothing_uses_says_nothing_of_others() -> None:
    with pytest.raises(NoRule, match="only imports changed"):
        sure_edit("python", CODE, ("import old\nf()\n", "import new\nf()\n"))
