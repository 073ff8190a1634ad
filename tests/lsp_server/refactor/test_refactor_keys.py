"""Arguments and elements that an edit reads once more, and keys: both say which ones are meant."""

import pytest
from support.refactor_case import rules_of, sure_edit


@pytest.mark.parametrize(
    ("language", "form", "old", "new"),
    [
        ("python", "{}\n", "f(a={x})", "f(a=g({x}))"),
        ("python", "{}\n", "f({{'a': {x}}})", "f({{'a': g({x})}})"),
        ("javascript", "{};\n", "f({{a: {x}}})", "f({{a: g({x})}})"),
        ("typescript", "{};\n", "f({{'a': {x}}})", "f({{'a': g({x})}})"),
        ("ruby", "{}\n", "f(a: {x})", "f(a: g({x}))"),
        ("ruby", "{}\n", "f({{'a' => {x}}})", "f({{'a' => g({x})}})"),
        ("go", "package p\n\nvar z = {}\n", "T{{a: {x}}}", "T{{a: g({x})}}"),
        ("csharp", "class A {{ void B() {{ {}; }} }}\n", "f(a: {x})", "f(a: g({x}))"),
        ("kotlin", "fun b() {{ {}\n}}\n", "f(a = {x})", "f(a = g({x}))"),
        ("php", "<?php\n{};\n", "f(a: ${x})", "f(a: g(${x}))"),
        ("php", "<?php\n{};\n", "f(['a' => ${x}])", "f(['a' => g(${x})])"),
    ],
)
def test_the_value_of_another_key_is_another_one(language: str, form: str, old: str, new: str) -> None:
    def code(one: str, name: str, key: str = "a") -> str:
        one = one.replace("(a", f"({key}").replace("{a", f"{{{key}").replace("'a'", f"'{key}'")
        return form.format(one.format(x=name))

    example = code(old, "x"), code(new, "x")
    assert sure_edit(language, code(old, "y"), example).applied(code(old, "y")) == code(new, "y")
    assert not sure_edit(language, code(old, "y", "k"), example).edits


@pytest.mark.parametrize(
    ("language", "form", "old", "new"),
    [
        ("python", "{}\n", "f(a, {x})", "f(a, {x}, g({x}))"),
        ("python", "{}\n", "f(a={x})", "f(a={x}, b=g({x}))"),
        ("javascript", "{};\n", "f(a, {x})", "f(a, g({x}), {x})"),
        ("javascript", "{};\n", "f({{a: {x}}})", "f({{a: {x}, b: g({x})}})"),
        ("ruby", "{}\n", "f(a: {x})", "f(a: {x}, b: g({x}))"),
        ("go", "package p\n\nvar z = {}\n", "T{{a: {x}}}", "T{{a: {x}, b: g({x})}}"),
        ("java", "class A {{ void b() {{ {}; }} }}\n", "f(a, {x})", "f({x}.g(), a, {x})"),
        ("php", "<?php\n{};\n", "F::f($a, '', ${x})", "F::f($a, ${x}->g(), ${x})"),
        ("rust", "fn b() {{ {}; }}\n", "f(a, {x})", "f(a, {x}, &{x})"),
    ],
)
def test_an_argument_that_the_edit_reads_once_more_is_the_one_of_the_place(
    language: str, form: str, old: str, new: str
) -> None:
    example = form.format(old.format(x="x")), form.format(new.format(x="x"))
    text = form.format(old.format(x="y"))
    assert sure_edit(language, text, example).applied(text) == form.format(new.format(x="y"))


@pytest.mark.parametrize("more", ["c=3", "c='d'"])
def test_other_named_arguments_follow_the_added_one(more: str) -> None:
    text = f"f(a=y, {more})\n"
    for value in ("g(x)", "'k'", "[2]"):
        edited = sure_edit("python", text, ("f(a=x)\n", f"f(a=x, b={value}, e={value})\n")).applied(text)
        assert sorted(edited[2:-2].split(", ")) == sorted(
            ["a=y", f"b={value}".replace("x", "y"), f"e={value}".replace("x", "y"), more]
        )


def test_a_variable_of_php_alone_is_no_example() -> None:
    assert rules_of("php", ("<?php\nreturn $x;\n", "<?php\nreturn g($x);\n")) == ["return $x → return g($x)"]
