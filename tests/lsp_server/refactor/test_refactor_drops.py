"""Edits that take away the name of a loop, a `with` or a `catch`: what else uses it keeps the place as it is."""

import re

import pytest
from support.refactor_case import reasons, sure_edit


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "name"),
    [
        ("python", "try:\n    a()\nexcept E as e:\n    b()\n", "try:\n    a()\nexcept E:\n    b()\n",
         "try:\n    c()\nexcept E as e:\n    d(%s)\n", "e"),
        ("python", "with a(b) as f:\n    g()\n", "with a(b):\n    g()\n", "with a(c) as f:\n    h(%s)\n", "f"),
        ("java", "class A { void f() { for (int i = 0; i < n; i++) { a(); } } }\n",
         "class A { void f() { while (b()) { a(); } } }\n",
         "class B { void g() { for (int i = 0; i < n; i++) { c(%s); } } }\n", "i"),
        ("go", "package p\n\nfunc f() {\n\tfor i := range a {\n\t\tb()\n\t}\n}\n",
         "package p\n\nfunc f() {\n\tfor range a {\n\t\tb()\n\t}\n}\n",
         "package p\n\nfunc g() {\n\tfor i := range c {\n\t\td(%s)\n\t}\n}\n", "i"),
        ("rust", "fn f() { for i in a.all() { b(); } }\n", "fn f() { while a.all() { b(); } }\n",
         "fn g() { for i in c.all() { d(%s); } }\n", "i"),
    ],
)  # fmt: skip
def test_a_name_that_a_block_still_uses_is_not_taken_away(
    language: str, before: str, after: str, text: str, name: str
) -> None:
    edit = sure_edit(language, text % name, (before, after))
    assert not edit.edits
    assert f"`{name}`, which the edit takes away, is used here" in reasons(edit)
    assert sure_edit(language, text % "", (before, after)).edits


LOOPS = [
    ("python", "for i in range(len(a)):\n    f(a[i])\n", "for x in a:\n    f(x)\n",
     "for i in range(len(a)):\n    g(a[i])\n", "for x in a:\n    g(x)\n", "for i in range(len(a)):\n    g(a[i], i)\n"),
    ("go", "package p\n\nfunc f() {\n\tfor i := range a {\n\t\tg(a[i])\n\t}\n}\n",
     "package p\n\nfunc f() {\n\tfor _, x := range a {\n\t\tg(x)\n\t}\n}\n",
     "package p\n\nfunc h() {\n\tfor i := range a {\n\t\tk(a[i])\n\t}\n}\n",
     "package p\n\nfunc h() {\n\tfor _, x := range a {\n\t\tk(x)\n\t}\n}\n",
     "package p\n\nfunc h() {\n\tfor i := range a {\n\t\tk(a[i], i)\n\t}\n}\n"),
    ("rust", "fn f() { for i in 0..a.len() { g(a[i]); } }\n", "fn f() { for x in a { g(x); } }\n",
     "fn h() { for i in 0..a.len() { k(a[i]); } }\n", "fn h() { for x in a { k(x); } }\n",
     "fn h() { for i in 0..a.len() { k(a[i], i); } }\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "after", "text", "changed", "other"), LOOPS)
def test_a_loop_is_edited_with_what_uses_its_name_or_not_at_all(
    language: str, before: str, after: str, text: str, changed: str, other: str
) -> None:
    assert sure_edit(language, text, (before, after)).applied(text) == changed
    edit = sure_edit(language, other, (before, after))
    assert edit.applied(other) == other
    assert "`i`, which the edit takes away, is used here" in reasons(edit)


def test_the_name_of_a_loop_that_stays_one_is_not_taken_away() -> None:
    before = "package p\n\nfunc f() {\n\tfor i := 0; i < n; i++ {\n\t\ta(i)\n\t}\n}\n"
    text = before.replace("i", "j").replace("n;", "m;").replace("fjnc", "func")
    edit = sure_edit("go", text, (before, before.replace("i := 0; i < n; i++", "i := range n")))
    assert edit.applied(text) == text.replace("j := 0; j < m; j++", "j := range m")


VALUES = [
    ("java", "class A { void f() { %s } }\n", "int n = 0;", "int n;", "n = g();", "h(n);"),
    ("csharp", "class A { void F() { %s } }\n", "int n = 0;", "int n;", "n = g();", "h(n);"),
    ("javascript", "function f() { %s }\n", "let n = 0;", "let n;", "n = g();", "h(n);"),
    ("typescript", "function f() { %s }\n", "let n = 0;", "let n;", "n = g();", "h(n);"),
    ("cpp", "void f() { %s }\n", "int n = 0;", "int n;", "n = g();", "h(n);"),
    ("rust", "fn f() { %s }\n", "let mut n = 0;", "let n;", "n = g();", "h(n);"),
]


@pytest.mark.parametrize(("language", "form", "old", "new", "sets", "reads"), VALUES)
def test_a_variable_loses_its_first_value_only_where_it_is_set_before_it_is_read(
    language: str, form: str, old: str, new: str, sets: str, reads: str
) -> None:
    example = form % f"{old} {sets}", form % f"{new} {sets}"

    def other(one: str) -> str:
        return form % re.sub(r"\bn\b", "k", one)

    text = other(f"{old} {sets}")
    assert sure_edit(language, text, example).applied(text) == other(f"{new} {sets}")
    for late in (reads, f"if (h()) {{ {sets} }} {reads}", sets.replace("g()", "n + 1")):
        edit = sure_edit(language, other(f"{old} {late}"), example)
        assert not edit.edits
        assert "`k`, whose value the edit takes away, may be read here before it is set" in reasons(edit)


def test_an_example_that_reads_the_variable_without_its_value_says_that_it_has_one() -> None:
    example = "void f() { Name n = Name(); g(n); }\n", "void f() { Name n; g(n); }\n"
    text = "void h() { Name k = Name(); g(k); }\n"
    assert sure_edit("cpp", text, example).applied(text) == "void h() { Name k; g(k); }\n"


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("python", "def f(a=None):\n    b(a)\n", "def f(a):\n    b(a)\n", "def g(c=None):\n    d(c)\n"),
        ("javascript", "function f(a = null) { b(a); }\n", "function f(a) { b(a); }\n",
         "function g(c = null) { d(c); }\n"),
        ("php", "<?php\nfunction f($a = null) { b($a); }\n", "<?php\nfunction f($a) { b($a); }\n",
         "<?php\nfunction g($c = null) { d($c); }\n"),
        ("ruby", "def f(a = nil)\n  b(a)\nend\n", "def f(a)\n  b(a)\nend\n", "def g(c = nil)\n  d(c)\nend\n"),
    ],
)  # fmt: skip
def test_the_default_of_another_function_s_parameter_does_not_go(
    language: str, before: str, after: str, text: str
) -> None:
    edit = sure_edit(language, text, (before, after), paths=("a", "b"))
    assert not edit.edits
    assert reasons(edit) == ["doubtful: only its syntax is as in the example"]


@pytest.mark.parametrize(
    ("language", "form"),
    [
        ("python", "def test_{0}({1}):\n    q = {1}.make('a')\n    assert q\n"),
        ("javascript", "function test_{0}({1}) {{ const q = {1}.make('a'); q.go(); }}\n"),
        ("typescript", "function test_{0}({1}) {{ const q = {1}.make('a'); q.go(); }}\n"),
        ("ruby", "def test_{0}({1})\n  q = {1}.make('a')\n  q.go\nend\n"),
        ("php", "<?php\nfunction test_{0}(${1}) {{ $q = ${1}->make('a'); $q->go(); }}\n"),
    ],
)
def test_a_name_that_is_read_without_its_parameter_means_that_name_alone(language: str, form: str) -> None:
    old = form.format("a", "tank")
    example = (old, re.sub(r"\([^)]*\)", "()", old, count=1))
    text = form.format("b", "pump")
    assert sure_edit(language, text, example).applied(text) == text
