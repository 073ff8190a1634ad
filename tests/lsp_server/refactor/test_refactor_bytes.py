"""Whatever is in a file, an edit changes its places only, and undoing it gives back every byte."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refactor_case import edit_of, undone

EXAMPLES = {
    "add an argument": ("foo(a)", "foo(a, timeout=3)"),
    "swap": ("foo(a, b)", "foo(b, a)"),
    "wrap": ("x = foo(a)\n", "x = bar(foo(a))\n"),
    "replace": ("foo(a, b)", "Path(a) / b"),
    "try": ("foo(a)\n", "try:\n    foo(a)\nexcept E:\n    pass\n"),
    "delete": ("foo(1)\nbar(2)\n", "bar(2)\n"),
    "import": ("import os\nx = os.foo(a)\n", "from a import b\nx = b(a)\n"),
}
ARGUMENTS = st.sampled_from(
    ["a", "b + c", '"🙂"', "é", "foo(x)", "foo(x, y)", "(\n\t1,\n)", "'ä' # c\n", "*z", "k=1", "os.foo(q)"]
)
CALLS = st.lists(ARGUMENTS, max_size=3).map(lambda some: f"foo({', '.join(some)})")
LINES = st.one_of(
    CALLS,
    CALLS.map(lambda call: f"x = {call}"),
    CALLS.map(lambda call: f"if y:\n\t{call}\n\tpass"),
    CALLS.map(lambda call: f"os.{call}"),
    st.sampled_from(
        [
            "import os",
            "# 🙂 foo(1)",
            "",
            "def f(os):\n    foo(1)\n    os.foo(2)",
            "🙂 = (",
            "x = '''\n foo(1)\n'''",
            "foo(1)",
        ]
    ),
)
NEWLINES = st.sampled_from(["\n", "\r\n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    text = "\n".join(draw(st.lists(LINES, max_size=8))) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(NEWLINES))


@pytest.mark.parametrize("name", EXAMPLES)
@given(text=texts())
@settings(max_examples=40)
def test_undoing_an_edit_gives_back_every_byte(name: str, text: str) -> None:
    edit = edit_of("python", [EXAMPLES[name]], text)
    changed = edit.applied(text)
    assert undone(edit, text).applied(changed) == text
    assert all(first.end <= second.start for first, second in zip(edit.edits, edit.edits[1:], strict=False))
    assert bool(edit.edits) == bool(edit.places)


@given(text=texts())
@settings(max_examples=60)
def test_new_lines_end_as_those_of_the_file(text: str) -> None:
    changed = edit_of("python", [EXAMPLES["try"]], text).applied(text)
    if text.startswith(("foo", "x", "if", "os", "import")) and "\r\n" in text:
        assert changed.count("\n") == changed.count("\r\n")


@given(text=st.text(max_size=200))
@settings(max_examples=100)
def test_any_text_is_searched_without_harm(text: str) -> None:
    for language in ("python", "typescriptreact", "go"):
        edit = edit_of(language, [("foo(a)", "foo(a, b)")], text)
        assert undone(edit, text).applied(edit.applied(text)) == text
