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
def test_each_virtual_method_of_a_class_with_a_base_follows(before: str, method: str) -> None:
    text = (
        "struct C : D {\n  virtual ~C();\n  virtual const char* name() const { return n; }\n"
        "  virtual std::string g(int a) const;\n  virtual void h() {}\n  virtual C& k() = default;\n};\n"
    )
    changed = (
        "struct C : D {\n  ~C() override;\n  const char* name() const override { return n; }\n"
        "  std::string g(int a) const override;\n  void h() override {}\n  C& k() override = default;\n};\n"
    )
    assert sure_edit("cpp", text, example_of(before, method)).applied(text) == changed


@pytest.mark.parametrize(("before", "method"), EXAMPLES)
def test_a_method_that_overrides_nothing_or_says_it_stays(before: str, method: str) -> None:
    text = "class C { virtual void f(); };\nclass E : F { virtual int g() = 0; virtual void h() final; };\n"
    edit = sure_edit("cpp", text, example_of(before, method))
    assert edit.edits == ()
    assert reasons(edit) == [
        "its class has no base, whose method it could override",
        "it has no body to override with",
        "it is `final` already",
    ]
