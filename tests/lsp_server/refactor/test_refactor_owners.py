"""Edits that use a member of the type around them, and methods of a trait."""

import pytest
from support.refactor_case import doubts, sure_edit

_LACKS = "its class declares no `options`, which the edit uses"

_CLASSES = {
    "python": "class %s:\n%s    def f(self, options):\n        g(options)\n",
    "javascript": "class %s {\n%s  f(options) {\n    g(options);\n  }\n}\n",
    "typescript": "class %s {\n%s  f(options: Bag) {\n    g(options);\n  }\n}\n",
    "php": "class %s {\n%s    function f($options) {\n        g($options);\n    }\n}\n",
}
_FIELDS = {
    "python": "    def __init__(self):\n        self.options = {}\n\n",
    "javascript": "  options = {};\n\n",
    "typescript": "  private options: Bag = {};\n\n",
    "php": "    private $options;\n\n",
}
_OLD = {"python": "g(options)", "javascript": "g(options)", "typescript": "g(options)", "php": "g($options)"}
_NEW = {
    "python": "g(self.options)",
    "javascript": "g(this.options)",
    "typescript": "g(this.options)",
    "php": "g($this->options)",
}


def _class(language: str, name: str, fields: str) -> str:
    return ("<?php\n" if language == "php" else "") + _CLASSES[language] % (name, fields)


@pytest.mark.parametrize("language", _CLASSES)
def test_a_member_that_the_class_of_a_place_lacks_is_doubtful(language: str) -> None:
    old, new = _OLD[language], _NEW[language]
    before = _class(language, "A", _FIELDS[language])
    for fields, expected in (("", [_LACKS]), (_FIELDS[language], [])):
        text = _class(language, "B", fields)
        edit = sure_edit(language, text, (before, before.replace(old, new)))
        assert {*doubts(edit)} == {*expected}
        assert edit.applied(text) == (text if expected else text.replace(old, new))


def test_a_member_that_another_method_uses_is_inherited() -> None:
    before = _class("python", "A", _FIELDS["python"])
    text = "class B(A):\n    def f(self, options):\n        g(options)\n\n    def h(self):\n        self.options.k()\n"
    edit = sure_edit("python", text, (before, before.replace("g(options)", "g(self.options)")))
    assert edit.applied(text) == text.replace("g(options)", "g(self.options)")


def test_a_member_is_not_read_where_it_is_set() -> None:
    before = _class("python", "A", _FIELDS["python"])
    text = "class B:\n    def f(self, options):\n        self.options = g(options)\n"
    edit = sure_edit("python", text, (before, before.replace("g(options)", "g(self.options)")))
    assert doubts(edit) == ["`options`, which the edit uses, is set here"]


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("impl Put for B {\n    fn visit(&self, b: Bag) -> Id { b.c() }\n}\n", None),
        ("trait Put {\n    fn visit(&self, b: Bag) -> Id { b.c() }\n}\n", None),
        ("impl Take for B {\n    fn visit(&self, b: Bag) -> Id { b.c() }\n}\n", "it is a method of `Take` here"),
        ("impl B {\n    fn visit(&self, b: Bag) -> Id { b.c() }\n}\n", "it is no method of a trait here"),
    ],
)
def test_a_method_of_a_trait_is_another_one_in_another_trait(text: str, doubt: str | None) -> None:
    before = "impl<T> Put<T> for A {\n    fn visit(&self, b: Bag) -> Id { b.a() }\n}\n"
    edit = sure_edit("rust", text, (before, before.replace("visit", "serialize")))
    assert doubts(edit) == ([doubt] if doubt else [])
    assert edit.applied(text) == (text if doubt else text.replace("visit", "serialize"))


def test_examples_in_two_traits_say_that_all_are_meant() -> None:
    text = "impl %s for A {\n    fn visit(&self, b: Bag) -> Id { b.a() }\n}\n"
    examples = [(text % name, (text % name).replace("visit", "serialize")) for name in ("Put", "Take")]
    other = text % "Give"
    assert sure_edit("rust", other, *examples).applied(other) == other.replace("visit", "serialize")
