"""Statements that are put into others, taken out of them, or moved."""

import pytest
from support.refactor_case import edit_of, rules_of, sure_edit

from lsp_server.refactor.learn.example import NoRule

NESTED = [
    ("python", "def f(a, b):\n    if a.x:\n        return b\n",
     "def f(a, b):\n    if ready():\n        if a.x:\n            return b\n"),
    ("javascript", "function f(a, b) { if (a.x) { return b; } }\n",
     "function f(a, b) { if (ready()) { if (a.x) { return b; } } }\n"),
    ("java", "class Q { int f(A a, int b) { while (a.x) { run(b); } } }\n",
     "class Q { int f(A a, int b) { while (ready()) { while (a.x) { run(b); } } } }\n"),
    ("go", "package p\n\nfunc f(a A, b B) {\n\tfor _, x := range a.all {\n\t\trun(x, b)\n\t}\n}\n",
     "package p\n\nfunc f(a A, b B) {\n\tfor up() {\n\t\tfor _, x := range a.all {\n\t\t\trun(x, b)\n\t\t}\n\t}\n}\n"),
    ("php", "<?php\nfunction f($a, $b) { if ($a->x) run($b); }\n",
     "<?php\nfunction f($a, $b) { if (ready()) if ($a->x) run($b); }\n"),
    ("cpp", "void f(A a, B b) { if (a.x) run(b); }\n", "void f(A a, B b) { if (ready()) if (a.x) run(b); }\n"),
    ("csharp", "class Q { void F(A a, B b) { foreach (var x in a.X) { Run(b); } } }\n",
     "class Q { void F(A a, B b) { foreach (var y in Z()) { foreach (var x in a.X) { Run(b); } } } }\n"),
    ("rust", "fn f(a: A, b: B) { if a.x { run(b); } }\n", "fn f(a: A, b: B) { if ready() { if a.x { run(b); } } }\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "inner", "outer"), NESTED)
def test_a_statement_in_one_of_its_own_kind_is_one_change(language: str, inner: str, outer: str) -> None:
    for before, after in ((inner, outer), (outer, inner)):
        assert len(rules_of(language, (before, after))) == 1
        assert edit_of(language, [(before, after)], before).applied(before).split() == after.split()


MOVED = [
    ("python", "def f():\n    a.x(1)\n    if b:\n        c()\n    d()\n",
     "def f():\n    if b:\n        c()\n    a.x(1)\n    d()\n"),
    ("typescript", "function f() { a.x(1); if (b) { c(); } d(); }\n",
     "function f() { if (b) { c(); } a.x(1); d(); }\n"),
    ("java", "class Q { void f() { a.x(1); while (b) { c(); } d(); } }\n",
     "class Q { void f() { while (b) { c(); } a.x(1); d(); } }\n"),
    ("rust", "fn f() { a.x(1); for i in b { c(i); } d(); }\n", "fn f() { for i in b { c(i); } a.x(1); d(); }\n"),
    ("go", "package p\n\nfunc f() {\n\ta.X(1)\n\tdefer c()\n\td()\n}\n\nfunc g() {\n\te()\n}\n",
     "package p\n\nfunc f() {\n\tdefer c()\n\td()\n}\n\nfunc g() {\n\ta.X(1)\n\te()\n}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "after"), MOVED)
def test_a_statement_that_moves_is_not_taken_away_elsewhere(language: str, before: str, after: str) -> None:
    with pytest.raises(NoRule):
        rules_of(language, (before, after))


ARGUMENTS = [
    ("python", "def f(a, b):\n    open(a.n, a)\n",
     "def f(a, b):\n    try:\n        open(a.n, a)\n    finally:\n        w(a)\n",
     "def g(b, a):\n    open(b.n, b)\n", "def g(b, a):\n    try:\n        open(b.n, b)\n    finally:\n        w(b)\n"),
    ("javascript", "function f(a, b) { open(a.n, a); }\n", "function f(a, b) { if (a.up) { open(a.n, a); } }\n",
     "function g(b, a) { open(b.n, b); }\n", "function g(b, a) { if (b.up) { open(b.n, b); } }\n"),
    ("java", "class Q { void f(A a, A b) { open(a.n, a); } }\n",
     "class Q { void f(A a, A b) { if (a.up) { open(a.n, a); } } }\n",
     "class Q { void g(A b, A a) { open(b.n, b); } }\n",
     "class Q { void g(A b, A a) { if (b.up) { open(b.n, b); } } }\n"),
    ("cpp", "void f(A a, A b) { open(a.n, a); }\n", "void f(A a, A b) { while (a.up) { open(a.n, a); } }\n",
     "void g(A b, A a) { open(b.n, b); }\n", "void g(A b, A a) { while (b.up) { open(b.n, b); } }\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "after", "text", "wanted"), ARGUMENTS)
def test_a_variable_that_the_edit_takes_out_of_arguments_is_the_places_own(
    language: str, before: str, after: str, text: str, wanted: str
) -> None:
    assert sure_edit(language, text, (before, after)).applied(text).split() in (text.split(), wanted.split())


PAIRS = [
    ("python", "def f(a):\n    a.x()\n    return a.y\n",
     "def f(a):\n    if on():\n        a.x()\n        return a.y\n"),
    ("javascript", "function f(a) { a.x(); return a.y; }\n", "function f(a) { if (on()) { a.x(); return a.y; } }\n"),
    ("java", "class Q { int f(A a) { a.x(); return a.y; } }\n",
     "class Q { int f(A a) { if (on()) { a.x(); return a.y; } } }\n"),
    ("rust", "fn f(a: A) { a.x(); b(a); }\n", "fn f(a: A) { if on() { a.x(); b(a); } }\n"),
    ("cpp", "void f(A a) { auto x = a.y(); }\n", "void f(A a) { try { auto x = a.y(); } catch (...) { b(); } }\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "after"), PAIRS)
def test_what_was_put_into_another_statement_is_not_put_there_twice(language: str, before: str, after: str) -> None:
    assert edit_of(language, [(before, after)], before).applied(before).split() == after.split()
    text = after.replace("f(", "g(")
    assert not edit_of(language, [(before, after)], text).edits


def test_the_body_of_a_loop_of_ruby_has_statements() -> None:
    before = "def f(a)\n  while a.more\n    a.next(1)\n  end\nend\n"
    assert rules_of("ruby", (before, before.replace("a.next", "x = a.next"))) == ["a.next($$R0_0) → x = a.next($$R0_0)"]
    with pytest.raises(NoRule, match="only added"):
        rules_of("ruby", (before, before.replace("a.next(1)\n", "a.next(1)\n    a.seen\n")))


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "def f(c, d):\n    run(c.q(c, d))\n", "def f(c, d):\n    c.q(c, d)\n"),
        (
            "csharp",
            "class Q { void F(T c, T d) { Run(c.q(c, d)); } }\n",
            "class Q { void F(T c, T d) { c.q(c, d); } }\n",
        ),
        (
            "php",
            "<?php\nfunction f($c, $d) { run($c->q($c, $d)); }\n",
            "<?php\nfunction f($c, $d) { $c->q($c, $d); }\n",
        ),
        ("kotlin", "fun f(c: T, d: T) { run(c.q(c, d)) }\n", "fun f(c: T, d: T) { c.q(c, d) }\n"),
    ],
)
def test_a_call_that_loses_what_is_around_it_is_one_change(language: str, before: str, after: str) -> None:
    assert len(rules_of(language, (before, after))) == 1
    assert edit_of(language, [(before, after)], before).applied(before).split() == after.split()


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("kotlin", "fun f(a: T) { val x = a.p() }\n", "fun f(a: T) { if (on()) { val x = a.p() } }\n"),
        (
            "ruby",
            "def f(a)\n  b(1)\n  return a + 1\nend\n",
            "def f(a)\n  if on()\n    b(1)\n    return a + 1\n  end\nend\n",
        ),
    ],
)
def test_a_value_that_has_a_node_around_it_is_found_again_after_the_edit(
    language: str, before: str, after: str
) -> None:
    assert not edit_of(language, [(before, after)], after.replace("f(", "g(")).edits


@pytest.mark.parametrize("sign", ["&", "*"])
def test_a_type_and_a_name_that_meet_are_two_words(sign: str) -> None:
    example = f"void f() {{ Bag{sign} a = g(); }}\n", "void f() { Bag a = g(); }\n"
    text = f"void h() {{ Bag{sign} a = k(); }}\n"
    assert edit_of("cpp", [example], text).applied(text) == "void h() { Bag a = k(); }\n"
