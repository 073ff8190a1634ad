"""A method of C++ that says that it overrides another one says it of the others, whatever they are called."""

import pytest
from support.refactor_case import reasons, sure_edit

EXAMPLES = [
    ("class A : public B { virtual ~A() { x(); } };\n", "~A() override { x(); }"),
    ("class A : public B { virtual void f(int a); };\n", "void f(int a) override;"),
]


def example_of(before: str, method: str) -> tuple[str, str]:
    start, end = before.index("virtual"), before.rindex(" }")
    return before, before[:start] + method + before[end:]


@pytest.mark.parametrize(("before", "method"), EXAMPLES)
def test_each_method_that_a_base_in_the_file_has_follows(before: str, method: str) -> None:
    base = (
        "struct D {\n  virtual ~D();\n  virtual const char* name() const;\n  virtual std::string g(int a) const;\n"
        "  void h() override;\n  virtual C& k();\n};\n"
    )
    text = base + (
        "struct C : public D {\n  virtual ~C();\n  virtual const char* name() const { return n; }\n"
        "  virtual std::string g(int a) const;\n  virtual void h() {}\n  virtual C& k() = default;\n};\n"
    )
    changed = base + (
        "struct C : public D {\n  ~C() override;\n  const char* name() const override { return n; }\n"
        "  std::string g(int a) const override;\n  void h() override {}\n  C& k() override = default;\n};\n"
    )
    assert sure_edit("cpp", text, example_of(before, method)).applied(text) == changed


@pytest.mark.parametrize(("before", "method"), EXAMPLES)
def test_a_method_whose_base_is_elsewhere_or_has_another_may_be_new(before: str, method: str) -> None:
    text = "struct D { virtual void f(); };\nstruct C : E, D { virtual void h(); virtual ~C(); void f(); };\n"
    edit = sure_edit("cpp", text, example_of(before, method))
    assert edit.edits == ()
    assert set(reasons(edit)) >= {"wide: only `virtual` is as in the example"}


@pytest.mark.parametrize(("before", "method"), EXAMPLES)
def test_a_method_that_overrides_nothing_or_says_it_stays(before: str, method: str) -> None:
    text = "class C { virtual void f(); };\nclass E : F { virtual int g() = 0; virtual void h() final; };\n"
    edit = sure_edit("cpp", text, example_of(before, method))
    assert edit.edits == ()
    assert "wide: only `virtual` is as in the example" not in reasons(edit)
