"""Edits that move code into, or out of, a function or a loop: what jumps out of it is another thing then."""

import pytest
from support.refactor_case import reasons, sure_edit


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "word"),
    [
        ("javascript", "a.forEach(b => { c(b); });\n", "for (const b of a) { c(b); }\n",
         "d.forEach(b => { %sc(b); });\n", "return;"),
        ("typescript", "a.forEach((b: B) => { c(b); });\n", "for (const b of a) { c(b); }\n",
         "d.forEach((b: B) => { if (b) { %s } c(b); });\n", "return;"),
        ("java", "class A { void k() { for (B b : a) { c(b); } } }\n",
         "class A { void k() { a.forEach(b -> { c(b); }); } }\n",
         "class D { void k() { for (B b : e) { if (f) { %s } g(b); } } }\n", "continue;"),
        ("python", "for x in a:\n    f()\n    g()\n", "if a:\n    f()\n    g()\n",
         "for x in a:\n    if h:\n        pass\n        %s\n    k()\n", "break"),
        ("go", "package p\n\nfunc k() {\n\tfor a() {\n\t\tb()\n\t}\n}\n",
         "package p\n\nfunc k() {\n\tif a() {\n\t\tb()\n\t}\n}\n",
         "package p\n\nfunc l() {\n\tfor a() {\n\t\tif c {\n\t\t\t%s\n\t\t}\n\t}\n}\n", "break"),
    ],
)  # fmt: skip
def test_code_that_jumps_out_of_what_the_edit_takes_away_stays(
    language: str, before: str, after: str, text: str, word: str
) -> None:
    edit = sure_edit(language, text % word, (before, after))
    assert not edit.edits
    jump = word.rstrip(";")
    assert reasons(edit) == [f"`{jump}` is in it, and would leave something else after the edit"]
    assert sure_edit(language, text % "", (before, after)).edits


def test_what_jumps_inside_of_the_code_alone_is_moved() -> None:
    example = ("a.forEach(b => { c(b); });\n", "for (const b of a) { c(b); }\n")
    for body in ("e.map(f => { return b; });", "for (;;) { break; }", "switch (b) { case 1: break; }"):
        text = f"d.forEach(b => {{ {body} }});\n"
        assert sure_edit("javascript", text, example).applied(text) == f"for (const b of d) {{ {body} }}\n"


def test_a_jump_that_the_example_has_too_is_moved() -> None:
    before = "function f() { a.forEach(b => { if (b) return; }); }\n"
    after = "function f() { for (const b of a) { if (b) return; } }\n"
    text = "function g() { d.forEach(b => { if (c) return; }); }\n"
    changed = "function g() { for (const b of d) { if (c) return; } }\n"
    assert sure_edit("javascript", text, (before, after)).applied(text) == changed
