"""Edits that take away the name of a loop, a `with` or a `catch`: what else uses it keeps the place as it is."""

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
