"""Annotations, attributes and decorators that go: wherever they are among others, but for those of parameters."""

import pytest
from support.refactor_case import doubts, sure_edit

GONE = [
    ("java", "@Old", "class A {{\n  {} public void f(int a) {{ g(a); }}\n}}\n",
     "{}\npublic class B {{\n  @Other(1) {} int c;\n  {}\n  @Other\n  static String d(String e) {{ return e; }}\n}}\n"),
    ("kotlin", "@Old", "class A {{\n  {} private fun f(a: Int) {{ g(a) }}\n}}\n",
     "{}\nclass B {{\n  @Other {} val c = 1\n  {}\n  fun d(): String = e\n}}\n"),
    ("csharp", "[Old]", "class A {{\n  {} public void F(int a) {{ G(a); }}\n}}\n",
     "{}\nclass B {{\n  [Other] {} int c;\n  {}\n  public int D {{ get; }}\n}}\n"),
    ("php", "#[Old]", "<?php\nclass A {{\n  {} public function f($a) {{ g($a); }}\n}}\n",
     "<?php\n{}\nclass B {{\n  #[Other] {} private $c;\n  {}\n  function d() {{ return 1; }}\n}}\n"),
    ("swift", "@old", "class A {{\n  {} private func f(a: Int) {{ g(a) }}\n}}\n",
     "{}\nclass B {{\n  @other {} var c = 1\n  {}\n  func d() -> Int {{ return 1 }}\n}}\n"),
    ("python", "@old", "{}\ndef f(a):\n    g(a)\n",
     "{}\nclass B:\n    @other\n    {}\n    def d(self, e):\n        return e\n"),
    ("typescript", "@Old()", "class A {{\n  {} private f(a: number) {{ g(a); }}\n}}\n",
     "{}\nclass B {{\n  @Other() {} c = 1;\n  {}\n  d() {{ return 1; }}\n}}\n"),
    ("rust", "#[old]", "{}\nfn f(a: u8) {{ g(a) }}\n",
     "{}\nstruct B {{\n    #[other] {} c: u8,\n    {}\n    d: u8,\n}}\n"),
]  # fmt: skip


def without(form: str) -> str:
    """Return a text without what stands for an annotation, and without its line if nothing else is there."""
    lines = [line for line in form.splitlines(keepends=True) if line.strip() != "{}"]
    return "".join(lines).replace("{} ", "").format()


@pytest.mark.parametrize(("language", "old", "before", "form"), GONE, ids=[row[0] for row in GONE])
def test_an_annotation_that_goes_says_nothing_of_what_it_is_on(language: str, old: str, before: str, form: str) -> None:
    text = form.format(old, old, old)
    assert sure_edit(language, text, (before.format(old), without(before))).applied(text) == without(form)


@pytest.mark.parametrize(
    ("language", "old", "before", "form"),
    [
        ("java", "@Old", "class A {{\n  {} void f() {{ g(); }}\n}}\n", "class B {{\n  void d({} int e) {{ }}\n}}\n"),
        ("kotlin", "@Old", "class A {{\n  {} fun f() {{ g() }}\n}}\n", "class B {{\n  fun d({} e: Int) {{ }}\n}}\n"),
        ("csharp", "[Old]", "class A {{\n  {} void F() {{ G(); }}\n}}\n", "class B {{\n  void D({} int e) {{ }}\n}}\n"),
        ("php", "#[Old]", "<?php\n{} function f() {{ g(); }}\n", "<?php\nfunction d({} $e) {{ }}\n"),
    ],
)
def test_the_annotation_of_a_parameter_is_another_one(language: str, old: str, before: str, form: str) -> None:
    text = form.format(old)
    for example, place, here, there in (
        (before, text, "a parameter's", "elsewhere"),
        (form, before.format(old), "elsewhere", "a parameter's"),
    ):
        edit = sure_edit(language, place, (example.format(old), without(example)))
        assert not edit.edits
        assert doubts(edit) == [f"it is {here} here, and {there} in the example"]
    other = form.replace("d(", "h(").replace("D(", "H(")
    assert sure_edit(language, text, (other.format(old), without(other))).applied(text) == without(form)


@pytest.mark.parametrize(
    ("language", "old", "form"),
    [
        ("java", '@SuppressWarnings("a")', "class {0} {{\n  {1} void f() {{ }}\n}}\n"),
        ("kotlin", '@Suppress("a")', "class {0} {{\n  {1} fun f() {{ }}\n}}\n"),
        ("rust", "#[inline]", "struct {0};\n{1}\nfn f() {{ }}\n"),
        ("python", "@staticmethod", "class {0}:\n    {1}\n    def f(a):\n        pass\n"),
        ("swift", "@discardableResult", "class {0} {{\n  {1} func f() {{ }}\n}}\n"),
    ],
)
def test_what_an_annotation_says_of_one_declaration_is_meant_for_that(language: str, old: str, form: str) -> None:
    text = form.format("B", old)
    edit = sure_edit(language, text, (form.format("A", old), without(form.replace("{1}", "{}").replace("{0}", "A"))))
    assert not edit.edits
    assert doubts(edit) == ["only its syntax is as in the example"]
