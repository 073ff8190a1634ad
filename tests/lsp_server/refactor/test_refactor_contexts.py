"""A rule that is learned from an edit of a type or an expression is one for the same code in the other contexts too."""

# ruff: noqa: E501  a file a line

import pytest

from lsp_server.documents.edits import RecentEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.example import Example
from lsp_server.refactor.learn import learn
from lsp_server.refactor.notation import with_contexts
from lsp_server.refactor.recent import repeated_edit
from lsp_server.refactor.rewrite import rewrite

TEXTS = [
    ("python", "a: Optional[int] = 1\nb = Optional[int]\n", "Optional[int]", "Option[int]"),
    ("rust", "fn f(a: old::Thing) {}\nfn g() { let x = old::Thing::make(); h(old::Thing { a: 1 }) }\n",
     "old::Thing", "fresh::Thing"),
    ("rust", "fn g() { h(old::Thing) }\nfn f(a: old::Thing) -> old::Thing { a }\n", "old::Thing", "fresh::Thing"),
    ("go", "package p\n\nfunc f(a old.Thing) {\n\tx := old.Thing{}\n\ty := old.Thing(x)\n}\n", "old.Thing", "fresh.Thing"),
    ("go", "package p\n\nfunc f() {\n\ty := old.Thing\n}\n\nfunc g(a old.Thing, b []old.Thing) {}\n",
     "old.Thing", "fresh.Thing"),
    ("typescript", "let a: Old.Thing = b;\nnew Old.Thing();\nfunction f(c: Array<Old.Thing>) {}\n", "Old.Thing", "Fresh.Thing"),
    ("typescript", "let a = Old.Thing;\nlet b: Old.Thing = a;\n", "Old.Thing", "Fresh.Thing"),
    ("csharp", "class A { Old.Thing a; void F(Old.Thing b) { var c = Old.Thing.Make(); } }\n", "Old.Thing", "Fresh.Thing"),
    ("kotlin", "val a: Old.Thing = 1\nfun f(b: Old.Thing) { val c = Old.Thing }\n", "Old.Thing", "Fresh.Thing"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "old", "new"), TEXTS)
def test_a_learned_rule_fits_in_every_context(name: str, text: str, old: str, new: str) -> None:
    language = language_for(name, "")
    after = text.replace(old, new, 1)
    rules = with_contexts(learn([Example(text, after)], language), language)
    assert rewrite(rules, "file", after, language).applied(after) == text.replace(old, new)


@pytest.mark.parametrize(("name", "text", "old", "new"), TEXTS)
def test_the_next_edit_after_typing_is_in_every_context(name: str, text: str, old: str, new: str) -> None:
    after, start = text.replace(old, new, 1), text.index(old)
    found = repeated_edit([RecentEdit(text, after, start, start + len(old), start + len(new), 1)], name, "file")
    assert found is not None
    assert found.edit.applied(after) == text.replace(old, new)


def test_another_member_is_listed_in_both_contexts() -> None:
    text = "fn g() { h(old::Thing); h(old::make(1)) }\nfn f(a: old::Other) {}\n"
    language = language_for("rust", "")
    after = text.replace("old::Thing", "fresh::Thing")
    rules = with_contexts(learn([Example(text, after)], language), language)
    done = rewrite(rules, "file", after, language)
    assert not done.edits
    assert [one.reason for one in done.left_out] == ["its member is another one than in the example"] * 2
