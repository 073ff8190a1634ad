"""Which annotations are missing, which the file itself says («» is a hole, «int?» likely), and what a type is."""

import pytest
from support.slot_texts import opened, snapshot_of

from lsp_server.slots.judge import is_type, leading_type, names_of_types

PYTHON = {
    "a parameter and what is returned": ("def f(a):\n    return g(a)\n", "def f(a: «») -> «»:\n    return g(a)\n"),
    "self and cls": ("class A:\n    def f(self, a): ...\n", "class A:\n    def f(self, a: «») -> «»: ...\n"),
    "a static method": (
        "class A:\n    @staticmethod\n    def f(a): ...\n",
        "class A:\n    @staticmethod\n    def f(a: «») -> «»: ...\n",
    ),
    "a default says the type": (
        "def f(a=0, b='', c=True, d=-1.5, e=b'', g=None): ...\n",
        "def f(a: «int» = 0, b: «str» = '', c: «bool» = True, d: «float» = -1.5, e: «bytes» = b'', g: «» = None)"
        " -> «»: ...\n",
    ),
    "stars": ("def f(*args, **kwargs): ...\n", "def f(*args: «», **kwargs: «») -> «»: ...\n"),
    "nothing is returned": ("def f():\n    g()\n    return\n", "def f() -> «None»:\n    g()\n    return\n"),
    "an inner function's return": (
        "def f():\n    def g() -> int:\n        return 1\n    g()\n",
        "def f() -> «None»:\n    def g() -> int:\n        return 1\n    g()\n",
    ),
    "a generator": ("def f():\n    yield 1\n", "def f() -> «»:\n    yield 1\n"),
    "it always raises": ("def f():\n    raise ValueError\n", "def f() -> «»:\n    raise ValueError\n"),
    "it raises in a block": (
        "def f():\n    with a:\n        raise ValueError\n",
        "def f() -> «»:\n    with a:\n        raise ValueError\n",
    ),
    "a stub says nothing": ('def f():\n    """Doc."""\n    pass\n', 'def f() -> «»:\n    """Doc."""\n    pass\n'),
    "a truth": ("def f(a: int):\n    return not a\n", "def f(a: int) -> «bool»:\n    return not a\n"),
    "truths in both branches": (
        "def f(a: X):\n    if a in b:\n        return True\n    else:\n        return isinstance(a, X)\n",
        "def f(a: X) -> «bool»:\n    if a in b:\n        return True\n    else:\n        return isinstance(a, X)\n",
    ),
    "it may end without a return": (
        "def f():\n    if a:\n        return 1\n",
        "def f() -> «»:\n    if a:\n        return 1\n",
    ),
    "equality may be anything": ("def f():\n    return a == b\n", "def f() -> «»:\n    return a == b\n"),
    "two types": ("def f():\n    if a:\n        return 1\n    return 'a'\n", None),
    "special methods": (
        "class A:\n    def __init__(self): ...\n    def __repr__(self): return g()\n",
        "class A:\n    def __init__(self) -> «None»: ...\n    def __repr__(self) -> «str»: return g()\n",
    ),
    "seen once": (
        "def f(size: int) -> int: ...\ndef g(size): ...\n",
        "def f(size: int) -> int: ...\ndef g(size: «int?») -> «»: ...\n",
    ),
    "seen three times": (
        "def f(size: X) -> X: ...\n" * 3 + "def g(size): ...\n",
        "def f(size: X) -> X: ...\n" * 3 + "def g(size: «X») -> «»: ...\n",
    ),
    "a name of one letter means little": (
        "def f(n: int) -> int: ...\ndef g(n): ...\n",
        "def f(n: int) -> int: ...\ndef g(n: «») -> «»: ...\n",
    ),
    "seen with two types": (
        "def f(size: int) -> X: ...\ndef f(size: str) -> X: ...\ndef g(size): ...\n",
        "def f(size: int) -> X: ...\ndef f(size: str) -> X: ...\ndef g(size: «») -> «»: ...\n",
    ),
    "None as a default is another type": (
        "def f(size: int) -> X: ...\n" * 3 + "def g(size=None): ...\n",
        "def f(size: int) -> X: ...\n" * 3 + "def g(size: «» = None) -> «»: ...\n",
    ),
    "a setter's value is its property's": (
        "class A:\n    @a.setter\n    def a(self, value):\n        self.b = value\n",
        "class A:\n    @a.setter\n    def a(self, value) -> «None»:\n        self.b = value\n",
    ),
    "a lambda has none": ("f = lambda a: a\n", "f = lambda a: a\n"),
}

TYPESCRIPT = {
    "a function": ("function f(a, b?, ...c) { g(); }\n", "function f(a: «», b?: «», ...c: «»): «void» { g(); }\n"),
    "a default needs none": ("function f(a = 0) { return true; }\n", "function f(a = 0): «boolean» { return true; }\n"),
    "a promise of nothing": (
        "async function f() { await g(); }\n",
        "async function f(): «Promise<void>» { await g(); }\n",
    ),
    "a constructor and a setter": (
        "class A {\n  constructor(a) {}\n  set b(c) { d(); }\n}\n",
        "class A {\n  constructor(a: «») {}\n  set b(c: «») { d(); }\n}\n",
    ),
    "a callback takes its types from the call": (
        "on((a) => a, function (b) {});\n",
        "on((a) => a, function (b) {});\n",
    ),
    "a named arrow": ("const f = (a) => { g(a); };\n", "const f = (a: «»): «void» => { g(a); };\n"),
    "an arrow with a type": ("const f: F = (a) => { g(a); };\n", "const f: F = (a) => { g(a); };\n"),
    "a comparison": ("const f = (): any => 1;\nfunction g() { return a === b; }\n", None),
}


@pytest.mark.parametrize(("text", "expected"), PYTHON.values(), ids=PYTHON)
def test_python(text: str, expected: str | None) -> None:
    assert opened(text, "annotations") == (expected or text.replace("):", ") -> «»:"))


@pytest.mark.parametrize(("text", "expected"), TYPESCRIPT.values(), ids=TYPESCRIPT)
def test_typescript(text: str, expected: str | None) -> None:
    assert opened(text, "annotations", "/project/a.ts") == (expected or text.replace("g()", "g(): «boolean»"))


def test_other_languages_have_no_missing_annotations() -> None:
    text = "function f(a) {}\n"
    assert opened(text, "annotations", "/project/a.js") == text


PYTHON_FUNCTION = """
import typing
from collections.abc import Callable
import numpy as np

class Box: ...
"""
TYPESCRIPT_FUNCTION = 'import { Node, type Tree as Wood } from "./tree";\ninterface Box<T> { a: T }\n'


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("int", "int"),
        ("int, b: str", "int"),
        ("int) -> None:", "int"),
        ("int = 0", "int"),
        ("dict[str, int] | None", "dict[str, int] | None"),
        ("Callable[[int], Box]", "Callable[[int], Box]"),
        ("typing.Iterable['Box']", "typing.Iterable['Box']"),
        ("np.ndarray", "np.ndarray"),
        ("Unknown", None),
        ("other.Box", None),
        ("Any", None),
        ("make()", None),
        ("3", None),
        ("list[int", None),
        ("int and str", None),
    ],
)
def test_where_a_type_ends_in_python(fill: str, expected: str | None) -> None:
    snapshot = snapshot_of(PYTHON_FUNCTION)
    text = leading_type(fill, snapshot.language)
    assert (text if is_type(text, snapshot.language, names_of_types(snapshot)) else None) == expected


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("string", "string"),
        ("string, b: number", "string"),
        ("void {", "void"),
        ("Promise<Box<Node>> {", "Promise<Box<Node>>"),
        ("{ a: Wood }", "{ a: Wood }"),
        ("(a: string) => void", "(a: string) => void"),
        ("'a' | 'b'", "'a' | 'b'"),
        ("T[] = []", "T[]"),
        ("Tree", None),
        ("any", None),
        ("Unknown.Node", None),
    ],
)
def test_where_a_type_ends_in_typescript(fill: str, expected: str | None) -> None:
    snapshot = snapshot_of(TYPESCRIPT_FUNCTION, "/project/a.ts")
    text = leading_type(fill, snapshot.language)
    assert (text if is_type(text, snapshot.language, names_of_types(snapshot)) else None) == expected
