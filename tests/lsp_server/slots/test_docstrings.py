"""Where a docstring is missing, and what it looks like in the file's own style."""

import pytest
from support.slot_texts import opened, snapshot_of

from lsp_server.slots.find import find_slots, in_style

DOCUMENTED = {
    "one line": (
        "a.py",
        'def f():\n    """Do f."""\n    return 1\n\ndef g():\n    return 2\n',
        'def f():\n    """Do f."""\n    return 1\n\ndef g():\n    """«»"""\n    return 2\n',
    ),
    "other quotes, and the text on a line of its own": (
        "a.py",
        "def f():\n    '''\n    Do f.\n    '''\n    return 1\n\ndef g():\n    return 2\n",
        "def f():\n    '''\n    Do f.\n    '''\n    return 1\n\ndef g():\n    '''\n    «»\n    '''\n    return 2\n",
    ),
    "a class": (
        "a.py",
        'class A:\n    """A."""\n\nclass B:\n    x = 1\n',
        'class A:\n    """A."""\n\nclass B:\n    """«»"""\n    x = 1\n',
    ),
    "a file without any": ("a.py", "def f():\n    return 1\n", "def f():\n    return 1\n"),
    "a setter": (
        "a.py",
        'class A:\n    """A."""\n    @b.setter\n    def b(self, c):\n        d()\n',
        'class A:\n    """A."""\n    @b.setter\n    def b(self, c):\n        d()\n',
    ),
    "JSDoc on one line": (
        "a.ts",
        "/** Does f. */\nexport function f() {}\n\nexport function g() {}\n",
        "/** Does f. */\nexport function f() {}\n\n/** «» */\nexport function g() {}\n",
    ),
    "JSDoc on several lines": (
        "a.js",
        "class A {\n  /**\n   * Does b.\n   */\n  b() {}\n\n  c() {}\n}\n",
        "/**\n * «»\n */\nclass A {\n  /**\n   * Does b.\n   */\n  b() {}\n\n  /**\n   * «»\n   */\n  c() {}\n}\n",
    ),
    "another comment is none": ("a.ts", "// Does f.\nfunction f() {}\n", "// Does f.\nfunction f() {}\n"),
    "Go's begins with the name": (
        "a.go",
        "package a\n\n// F does.\n// More.\nfunc F() {}\n\nfunc G() {}\n",
        "package a\n\n// F does.\n// More.\nfunc F() {}\n\n// G «»\nfunc G() {}\n",
    ),
}


@pytest.mark.parametrize(("path", "text", "expected"), DOCUMENTED.values(), ids=DOCUMENTED)
def test_a_missing_docstring_is_found(path: str, text: str, expected: str) -> None:
    assert opened(text, "docstrings", f"/project/{path}") == expected


def test_what_the_file_does_not_document_elsewhere_is_not_in_style() -> None:
    documented = 'def f():\n    """Do f."""\n    return 1\n\n'
    snapshot = snapshot_of(documented + "def g():\n    return 1\n\ndef _h():\n    return 1\n")
    slots = find_slots(snapshot, "docstrings")
    assert [slot.title for slot in slots] == ["the docstring of `g`", "the docstring of `_h`"]
    assert [slot.title for slot in in_style(snapshot, slots, "docstrings")] == ["the docstring of `g`"]
