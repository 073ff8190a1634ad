"""Renamed variables and parameters: which others of their name are meant, and where the new name is not free."""

import pytest
from support.refactor_case import doubts, sure_edit

TAKEN = [
    ("python", "def f({0}):\n    return {0}\ndef g({1}, pump):\n    return {1} + pump\ndef h({0}):\n    return {0}\n"),
    ("javascript", "function f({0}) {{ return {0}; }}\nfunction g({1}, pump) {{ return {1} + pump; }}\n"
     "function h({0}) {{ return {0}; }}\n"),
    ("java", "class A {{\n  int f(int {0}) {{ return {0}; }}\n  int g(int {1}, int pump) {{ return {1} + pump; }}\n"
     "  int h(int {0}) {{ return {0}; }}\n}}\n"),
    ("go", "package p\n\nfunc f({0} int) int {{ return {0} }}\nfunc g({1}, pump int) int {{ return {1} + pump }}\n"
     "func h({0} int) int {{ return {0} }}\n"),
    ("rust", "fn f({0}: A) -> A {{ {0} }}\nfn g({1}: A, pump: A) -> A {{ {1} + pump }}\nfn h({0}: A) -> A {{ {0} }}\n"),
    ("php", "<?php\nfunction f(${0}) {{ return ${0}; }}\nfunction g(${1}, $pump) {{ return ${1} + $pump; }}\n"
     "function h(${0}) {{ return ${0}; }}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "form"), TAKEN)
def test_a_parameter_keeps_its_name_where_another_one_has_the_new_one(language: str, form: str) -> None:
    after = form.format("pump", "tank")
    edit = sure_edit(language, after, (form.format("tank", "tank"), after))
    assert edit.applied(after) == after
    assert set(doubts(edit)) == {"`pump` is something else there"}


METHODS = "package p\n\nfunc ({0} *Tank) Fill(n int) {{ {0}.n += n }}\n"


@pytest.mark.parametrize(
    ("method", "is_meant"),
    [
        ("func ({} *Tank) Drain() {{ {}.n = 0 }}\n", True),
        ("func ({} Tank) Level() int {{ return {}.n }}\n", True),
        ("func ({} *Tank[T]) Level() int {{ return {}.n }}\n", True),
        ("func ({} *Pump) Drain() {{ {}.n = 0 }}\n", False),
        ("func drain({} *Tank) {{ {}.n = 0 }}\n", False),
        ("func ({} *Tank) Move(tank int) {{ {}.n = tank }}\n", False),
    ],
)
def test_the_methods_of_a_type_of_go_call_their_receiver_alike(method: str, is_meant: bool) -> None:
    old, new = METHODS.format("t"), METHODS.format("tank")
    below = method.format("t", "t")
    edit = sure_edit("go", new + below, (old + below, new + below))
    assert edit.applied(new + below) == new + (method.format("tank", "tank") if is_meant else below)
