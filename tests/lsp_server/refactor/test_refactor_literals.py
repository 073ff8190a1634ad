"""What an edit puts around a literal, and functions that format: other values may need something else."""

import pytest
from support.refactor_case import doubts, sure_edit

CALLS = [
    ("python", "{}\n"),
    ("javascript", "{};\n"),
    ("java", "class A {{ void f() {{ {}; }} }}\n"),
    ("rust", "fn f() {{ {}; }}\n"),
    ("go", "package p\n\nfunc f() {{ {} }}\n"),
    ("php", "<?php\n{};\n"),
]


@pytest.mark.parametrize(("language", "form"), CALLS)
@pytest.mark.parametrize("value", ["made", "make()"])
def test_what_comes_around_a_literal_is_doubtful_around_another_value(language: str, form: str, value: str) -> None:
    value = f"${value}" if language == "php" and "(" not in value else value
    example = form.format('fill_tank("oil")'), form.format('fill_tank(kind("oil"))')
    text = form.format('fill_tank("gas")')
    assert sure_edit(language, text, example).applied(text) == form.format('fill_tank(kind("gas"))')
    edit = sure_edit(language, form.format(f"fill_tank({value})"), example)
    assert not edit.edits
    kind = "a call" if "(" in value else "another value"
    assert doubts(edit) == [f"it has {kind} where the example has a text"]


@pytest.mark.parametrize(
    ("language", "form", "old", "new"),
    [
        ("go", "package p\n\nfunc f(t *T) {{ t.{} }}\n", "Fatalf", "Fatal"),
        ("go", "package p\n\nfunc f(t *T) {{ t.{} }}\n", "Errorf", "Error"),
        ("c", "void f() {{ {}; }}\n", "say_itf", "say_it"),
        ("python", "{}\n", "log.say_itf", "log.say_it"),
        ("php", "<?php\n{};\n", "say_itf", "say_it"),
    ],
)
def test_a_function_that_formats_has_as_many_arguments_as_in_the_example(
    language: str, form: str, old: str, new: str
) -> None:
    for one, other in ((old, new), (new, old)):
        example = form.format(f"{one}(a)"), form.format(f"{other}(a)")
        text = form.format(f"{one}(b)")
        assert sure_edit(language, text, example).applied(text) == form.format(f"{other}(b)")
        edit = sure_edit(language, form.format(f'{one}("%d", b)'), example)
        assert not edit.edits
        assert doubts(edit) == ["the example formats more or fewer arguments"]


@pytest.mark.parametrize(
    ("language", "form", "made"),
    [
        ("javascript", "{};\n", "{{kind: {}}}"),
        ("typescript", "{};\n", "{{kind: {}}}"),
        ("python", "{}\n", '{{"kind": {}}}'),
        ("ruby", "{}\n", "{{kind: {}}}"),
    ],
)
def test_a_name_may_be_in_an_object_as_a_literal_is(language: str, form: str, made: str) -> None:
    fill = "fill_tank({})"
    example = form.format(fill.format('"oil"')), form.format(fill.format(made.format('"oil"')))
    text = form.format(fill.format("gas"))
    assert sure_edit(language, text, example).applied(text) == form.format(fill.format(made.format("gas")))
