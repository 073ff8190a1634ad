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


_CALLBACKS = {
    "javascript": (
        "a.map(function (b) { return c(b); });\n",
        "a.map((b) => { return c(b); });\n",
        "d.map(function (e) { return %s; });\n",
        "d.map((e) => { return %s; });\n",
    ),
    "typescript": (
        "const a = (b: B) => { return c(b); };\n",
        "const a = function (b: B) { return c(b); };\n",
        "const d = (e: B) => { return %s; };\n",
        "const d = function (e: B) { return %s; };\n",
    ),
    "java": (
        "class A { void k() { a(new B() { public C c() { return d(1); } }); } }\n",
        "class A { void k() { a(() -> { return d(1); }); } }\n",
        "class E { void l() { a(new B() { public C c() { return %s; } }); } }\n",
        "class E { void l() { a(() -> { return %s; }); } }\n",
    ),
}


def _widened(language: str, code: str) -> tuple[str, str, list[str]]:
    """Return a text after two examples of another form of function, what it was meant to be, and why not."""
    before, after, old, new = _CALLBACKS[language]
    second = tuple(side.replace("c(b)", "b.f + 1").replace("d(1)", "g") for side in (before, after))
    edit = sure_edit(language, old % code, (before, after), (second[0], second[1]))
    return edit.applied(old % code), new % code, reasons(edit)


@pytest.mark.parametrize(
    ("language", "code", "word"),
    [
        ("javascript", "this.h(e)", "this"),
        ("javascript", "arguments[1]", "arguments"),
        ("javascript", "(() => this)()", "this"),
        ("typescript", "this.h", "this"),
        ("java", "h(this)", "this"),
    ],
)
def test_code_whose_this_would_be_another_one_stays(language: str, code: str, word: str) -> None:
    text, meant, why = _widened(language, code)
    assert text != meant
    assert why == [f"`{word}` is in it, and would be something else after the edit"]


@pytest.mark.parametrize(
    ("language", "code"),
    [("typescript", "function () { return this.i; }"), ("javascript", "h.this"), ("java", "arguments.h()")],
)
def test_a_this_of_its_own_is_no_reason(language: str, code: str) -> None:
    text, meant, why = _widened(language, code)
    assert (text, why) == (meant, [])
