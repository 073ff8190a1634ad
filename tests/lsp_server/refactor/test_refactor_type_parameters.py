"""A type parameter is another type in each declaration that has one."""

import pytest
from support.refactor_case import doubts, reasons, sure_edit

GENERIC = {
    "typescript": ("interface {}<S, T> {{ a: Box<{}>; b: Jar<{}>; }}\n", "interface C { a: Box<any>; }\n"),
    "java": ("class {}<S, T> {{ Box<{}> a; Jar<{}> b; }}\n", "class C { Box<Id> a; }\n"),
    "rust": ("struct {}<S, T> {{ a: Box<{}>, b: Jar<{}> }}\n", "struct C { a: Box<Id> }\n"),
    "csharp": ("class {}<S, T> {{ Box<{}> a; Jar<{}> b; }}\n", "class C { Box<Id> a; }\n"),
    "cpp": ("template <class S, class T> struct {} {{ Box<{}> a; Jar<{}> b; }};\n", "struct C { Box<Id> a; };\n"),
}


@pytest.mark.parametrize("language", GENERIC)
def test_a_type_parameter_that_the_edit_uses_must_be_one_at_a_place(language: str) -> None:
    generic, plain = GENERIC[language]
    example = generic.format("A", "S", "S"), generic.format("A", "S, T", "S")
    text = generic.format("B", "S", "S") + plain
    edit = sure_edit(language, text, example, paths=("a", "b"))
    assert edit.applied(text) == generic.format("B", "S, T", "S") + plain
    assert reasons(edit)[-1] == "`T`, which the edit uses, is not known here"


@pytest.mark.parametrize("language", ["typescript", "java", "rust"])
def test_a_type_parameter_alone_is_meant_in_its_own_declaration(language: str) -> None:
    generic, _ = GENERIC[language]
    other = generic.format("B", "S", "S")
    before, after = (generic.format("A", one, "S") + other for one in ("S", "Not<S>"))
    edit = sure_edit(language, after, (before, after))
    assert edit.applied(after) == generic.format("A", "Not<S>", "Not<S>") + other
    assert set(doubts(edit)) == {"`S` is a type parameter of another declaration"}


def test_a_namespace_of_typescript_brings_no_other_names() -> None:
    generic, plain = GENERIC["typescript"]
    example = generic.format("A", "S", "S"), generic.format("A", "S, T", "S")
    text = f"import * as m from 'm';\n{plain}"
    assert sure_edit("typescript", text, example).applied(text) == text


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("typescript", "interface A<T extends Port = Port> { a: Port; }\n"),
        ("java", "class A<T extends Port> { Port a; }\n"),
        ("rust", "struct A<T: Port> { a: Box<Port> }\n"),
    ],
)
def test_the_bound_of_a_type_parameter_is_none(language: str, text: str) -> None:
    example = text.replace("A<", "B<"), text.replace("A<", "B<").replace("Port", "Quay")
    assert sure_edit(language, text, example).applied(text) == text.replace("Port", "Quay")
