"""The user renamed something: its uses are the next edits."""

# ruff: noqa: E501  a file a line

import pytest
from support.typist import Typist, next_lines, next_places

from lsp_server.refactor.recent import former_places

RENAMED = [
    ("python", "def f(OLD, b):\n    x = 1\n    y = 2\n    z = OLD + b.count\n    return z\n\n\ndef g(count):\n    return count\n"),
    ("typescript", "class A {\n  private OLD = 1;\n  f(count: number) {\n    const x = 1;\n    return this.OLD + count;\n  }\n}\nconst y = { count: 1 };\n"),
    ("go", "package p\n\nfunc f() int {\n\tOLD := 1\n\tx := 2\n\ty := 3\n\treturn OLD + x.count + y\n}\n\nfunc g(count int) int {\n\treturn count\n}\n"),
    ("python", "from m import OLD\n\n\n\nx = y.count\nOLD(x)\n"),
    ("rust", "fn f() -> u8 {\n    let OLD = 1;\n    let x = 2;\n    let y = 3;\n    let count = OLD + x;\n    count + y\n}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text"), RENAMED, ids=[f"{row[0]}-{row[1][:6]}" for row in RENAMED])
def test_the_uses_of_a_renamed_declaration_are_the_next_edits(language: str, text: str) -> None:
    typist = Typist(text.replace("OLD", "count"))
    start = text.index("OLD")
    typist.change(start, len("count"), "")
    for index, key in enumerate("total"):
        typist.change(start + index, 0, key)
    found = next_places(typist, language)
    assert found is not None
    assert found.recent.name == "count → total"
    (place,) = found.one_by_one.places
    assert place.applied(typist.text) == text.replace("OLD", "total")


_LOCAL = "def f(count):\n    a = 1\n    b = 2\n    g(count)\n    c = 3\n    d = 4\n    return count\n"


@pytest.mark.parametrize("steps", [("g(count", "f(count"), ("f(count", "g(count"), ("f(count", "return count")])
def test_what_is_renamed_one_after_the_other_is_one_rename(steps: tuple[str, str]) -> None:
    typist = Typist(_LOCAL)
    for step in steps:
        typist.replace(step, step.replace("count", "total"))
    found = next_places(typist)
    assert found is not None
    assert found.recent.examples == 2
    (place,) = found.one_by_one.places
    assert place.applied(typist.text) == _LOCAL.replace("count", "total")


@pytest.mark.parametrize("use", ["g(count", "return count"])
def test_a_use_alone_that_gets_another_name_offers_nothing(use: str) -> None:
    typist = Typist(_LOCAL)
    typist.replace(use, use.replace("count", "total"))
    assert next_lines(typist) == []


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (_LOCAL, "f(count", "f(a"),
        ("def f():\n    x = 1\n    return x\n\n\ndef f():\n    y = 1\n    return y\n\n\nf()\n", "def f", "def g"),
        ("def f():\n    x = 1\n\n\n\ndef g(x):\n    return x\n", "x = 1", "y = 1"),
    ],
)
def test_a_name_that_is_taken_or_declared_twice_or_not_used_offers_nothing(text: str, old: str, new: str) -> None:
    typist = Typist(text)
    typist.replace(old, new)
    assert next_lines(typist) == []


def test_the_former_edit_may_be_a_rename() -> None:
    typist = Typist("# one\n\n\n" + _LOCAL)
    typist.replace("f(count", "f(total")
    typist.replace("# one", "# a longer one")
    found = former_places(typist.edits.all, "python", "file")
    assert found is not None
    assert found.found.edit.applied(typist.text).endswith(_LOCAL.replace("count", "total"))
