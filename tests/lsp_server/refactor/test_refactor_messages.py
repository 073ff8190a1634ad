"""Texts that an edit brings: a message that names what is around its example is not meant elsewhere."""

import pytest
from support.refactor_case import doubts, sure_edit

NAMED = [
    ("python", "def f():\n    if not {}:\n        raise {}\n", "Failure()", "Failure('no tank')"),
    ("go", "package p\n\nfunc f() error {{\n\tif err := {}; err != nil {{\n\t\t{}\n\t}}\n\treturn nil\n}}\n",
     "return err", 'return wrap("opening the tank", err)'),
    ("go", "package p\n\nfunc f() error {{\n\ta, err := {}\n\tif err != nil {{\n\t\t{}\n\t}}\n\treturn nil\n}}\n",
     "return err", 'return wrap("opening the tank", err)'),
    ("rust", "fn f() {{ let a = {}.{}; }}\n", "find().unwrap()", 'find().expect("a tank")'),
    ("javascript", "function f() {{\n  if (!{}) {{\n    throw new Failure();\n  }}\n}}\n",
     "new Failure()", "new Failure('no tank')"),
    ("java", "class A {{ void f() {{ if ({}) {{ throw new Failure(); }} }} }}\n",
     "new Failure()", 'new Failure("no tank")'),
]  # fmt: skip


def filled(form: str, what: str, old: str) -> str:
    """Return a form with a call that opens something, and with the code that is edited where it has room for that."""
    return form.format(f"open_{what}(1)", old)


@pytest.mark.parametrize(("language", "form", "old", "new"), NAMED)
def test_a_text_that_names_what_is_around_the_example_is_not_meant_elsewhere(
    language: str, form: str, old: str, new: str
) -> None:
    before = filled(form, "tank", old)
    example = before, before.replace(old, new)
    again = before.replace("(1)", "(2)")
    assert sure_edit(language, again, example).applied(again) == example[1].replace("(1)", "(2)")
    edit = sure_edit(language, filled(form, "pump", old), example)
    assert not edit.edits
    assert "the text that the edit brings names `tank`, which is not here" in doubts(edit)
