"""A signature that got or lost a parameter: which calls follow it, where, and which are left alone."""

import pytest
from support.signature_edits import changed, followed

_FAR = "\n\nx = 1\ny = 2\n\n\n"


@pytest.mark.parametrize(
    ("new", "call", "wanted"),
    [
        ("(a, b, c)", "f(1, 2)", "f(1, 2, NEW)"),
        ("(a, c, b)", "f(1, 2)", "f(1, NEW, 2)"),
        ("(c, a, b)", "f(1, 2)", "f(NEW, 1, 2)"),
        ("(a, b, *, c)", "f(1, 2)", "f(1, 2, c=NEW)"),
        ("(a, b, c)", "f(1, b=2)", "f(1, b=2, c=NEW)"),
        ("(a, b, c)", "f(a=1, b=2)", "f(a=1, b=2, c=NEW)"),
        ("(a, b, c)", "f(\n    1,\n    2,\n)", "f(\n    1,\n    2,\n    NEW,\n)"),
        ("(a, c, b)", "f(\n    1,\n    2,\n)", "f(\n    1,\n    NEW,\n    2,\n)"),
        ("(a)", "f(1, 2)", "f(1)"),
        ("(b)", "f(1, 2)", "f(2)"),
        ("(a)", "f(1, b=2)", "f(1)"),
        ("(b)", "f(\n    1,\n    2,\n)", "f(\n    2,\n)"),
        ("(a, b, c, d)", "f(1, 2)", "f(1, 2, NEW, NEW)"),
        ("(c, a, d, b)", "f(1, 2)", "f(NEW, 1, NEW, 2)"),
        ("(a, b, *, c, d)", "f(1, 2)", "f(1, 2, c=NEW, d=NEW)"),
        ("(c, a)", "f(1, 2)", "f(NEW, 1)"),
        ("(b, c)", "f(1, 2)", "f(2, NEW)"),
        ("(b, c)", "f(a=1, b=2)", "f(b=2, c=NEW)"),
        ("(b, c)", "f(\n    1,\n    2,\n)", "f(\n    2,\n    NEW,\n)"),
        ("()", "f(1, 2)", "f()"),
    ],
)
def test_a_call_gets_or_loses_the_argument_at_its_place(new: str, call: str, wanted: str) -> None:
    text = f"def f(a, b):\n    return a{_FAR}{call}\n"
    assert followed("a.py", text, ("(a, b)", new)) == f"def f{new}:\n    return a{_FAR}{wanted}\n"


@pytest.mark.parametrize(
    ("new", "call"),
    [
        ("(a, b, c)", "f(*a)"),
        ("(a, b, c)", "f(1, **a)"),
        ("(a, b, c)", "f(1, 2, 3)"),
        ("(a, b, c)", "f(1)"),
        ("(a, b, c)", "x.f(1, 2)"),
        ("(a, b, c)", "def g(f):\n    f(1, 2)"),
        ("(a, b, c=1)", "f(1, 2)"),
        ("(a, b, *c)", "f(1, 2)"),
        ("(a, b, c", "f(1, 2)"),
        ("(a, b, c, d, e)", "f(1, 2)"),
        ("(a, c, d)", "f(1, 2)"),
        ("(a, c)", "f(1, 2)"),
        ("(a, b, c)", "def f(a):\n    pass\n\n\nf(1, 2)"),
        ("(a)", "f(1,  # why\n  2)"),
    ],
)
def test_a_call_that_no_tree_can_know_stays(new: str, call: str) -> None:
    text = f"def f(a, b):\n    return a{_FAR}{call}\n"
    assert followed("a.py", text, ("(a, b)", new)) == text.replace("(a, b)", new, 1)


_CLASSES = f"""class A:
    def __init__(self, x):
        self.x = x

    def run(self, n):
        return n

    def go(self):
        return self.run(1)


class B:
    def run(self, n):
        return self.run(n)
{_FAR}def use(a: A, b):
    a.run(2)
    b.run(3)
    return A(4)
"""


def test_a_method_is_called_by_receivers_of_its_class() -> None:
    after = followed("a.py", _CLASSES, ("run(self, n)", "run(self, n, k)"))
    assert [line.strip() for line in after.splitlines() if "NEW" in line] == [
        "return self.run(1, NEW)",
        "a.run(2, NEW)",
    ]


def test_a_constructor_is_called_by_the_name_of_its_class() -> None:
    after = followed("a.py", _CLASSES, ("(self, x)", "(self, x, y)"))
    assert [line.strip() for line in after.splitlines() if "NEW" in line] == ["return A(4, NEW)"]


@pytest.mark.parametrize(
    ("path", "head", "new", "call", "wanted"),
    [
        ("a.js", "function f(a) {}", "f(a, b)", "f(1)", "f(1, NEW)"),
        ("a.js", "const f = (a) => a;", "(a, b)", "f(1)", "f(1, NEW)"),
        ("a.ts", "function f(a: A): void {}", "f(a: A, b: B)", "f(1);", "f(1, NEW);"),
        ("a.ts", "class A { constructor(private a: A) {} }", "(private a: A, b: B)", "new A(1);", "new A(1, NEW);"),
        ("a.go", "package m\n\nfunc f(a int) {}", "f(a int, b int)", "func g() { f(1) }", "func g() { f(1, NEW) }"),
        ("a.rs", "fn f(a: i32) {}", "f(a: i32, b: i32)", "fn g() { f(1) }", "fn g() { f(1, NEW) }"),
        (
            "a.rs",
            "impl R { fn m(&self, a: i32) {} }",
            "(&self, a: i32, b: i32)",
            "impl R { fn g(&self) { self.m(1); R::m(self, 1); } }",
            "impl R { fn g(&self) { self.m(1, NEW); R::m(self, 1); } }",
        ),
    ],
)
def test_it_is_so_in_other_languages(path: str, head: str, new: str, call: str, wanted: str) -> None:
    gap, old = "\n\n\n\n", head[head.index("(") : head.index(")") + 1]
    new = new[new.index("(") :]
    assert followed(path, head + gap + call, (old, new)).partition(gap)[2] == wanted


def test_a_parameter_that_may_be_a_renamed_one_is_none_of_two_changes() -> None:
    text = f"def f(a, b):\n    return a{_FAR}f(1, 2)\n"
    assert followed("a.py", text, ("(a, b)", "(c, b)")) == text.replace("(a, b)", "(c, b)")


def test_a_second_parameter_that_comes_later_finds_calls_that_lack_one_or_both() -> None:
    text = f"def f(a):\n    return a{_FAR}f(1){_FAR}f(2)\n"
    after = followed("a.py", text, ("f(a)", "f(a, b)"), ("f(1)", "f(1, 5)"), ("(a, b)", "(a, b, c)"))
    assert after.endswith(f"{_FAR}f(1, 5, NEW){_FAR}f(2, NEW, NEW)\n")


def test_calls_that_are_left_are_still_found_after_one_was_taken() -> None:
    text = f"def f(a):\n    return a{_FAR}f(1){_FAR}f(2)\n"
    change, _ = changed("a.py", text, ("f(a)", "f(a, b)"), ("f(1)", "f(1, 5)"))
    assert change is not None
    assert len(change.places) == 1


def test_an_edit_elsewhere_ends_it() -> None:
    text = f"def f(a):\n    return a{_FAR}f(1){_FAR}z = 2\n"
    assert changed("a.py", text, ("f(a)", "f(a, b)"), ("z = 2", "z = 3"))[0] is None


def test_it_says_where_a_variable_has_the_name_of_the_parameter() -> None:
    text = f"def f(a):\n    return a{_FAR}def g(b):\n    f(1)\n\n\ndef h(c):\n    f(2)\n    b = c\n"
    change, _ = changed("a.py", text, ("f(a)", "f(a, b)"))
    assert change is not None
    assert [call.place.bound for call in change.places] == [(True,), (False,)]


def test_line_ends_stay_what_they_are() -> None:
    text = f"def f(a):\n    return a{_FAR}f(\n    1,\n)\n".replace("\n", "\r\n")
    assert "f(\r\n    1,\r\n    NEW,\r\n)" in followed("a.py", text, ("f(a)", "f(a, b)"))


_FIELDS_GO = "package m\n\ntype T struct {\n\tA int\n\tB string\n}\n\n\nvar _ = 1\n\n\n"
_FIELDS_RUST = "struct T {\n    a: i32,\n    b: i32,\n}\n\n\n\n"
_FIELDS_PYTHON = "@dataclass(frozen=True)\nclass T:\n    a: int\n    b: int\n    n: ClassVar[int] = 0\n"


@pytest.mark.parametrize(
    ("path", "head", "edit", "call", "wanted"),
    [
        ("a.py", _FIELDS_PYTHON, ("b: int\n", "b: int\n    c: int\n"), "T(1, 2)", "T(1, 2, NEW)"),
        ("a.py", _FIELDS_PYTHON, ("b: int\n", "b: int\n    c: int\n"), "T(a=1, b=2)", "T(a=1, b=2, c=NEW)"),
        ("a.py", _FIELDS_PYTHON, ("    b: int\n", ""), "T(1, 2)", "T(1)"),
        (
            "a.py",
            "@attrs.define(kw_only=True)\nclass T:\n    _a: int = attrs.field()\n",
            ("_a", "_b: int\n    _a"),
            "T(a=1)",
            "T(a=1, b=NEW)",
        ),
        ("a.go", _FIELDS_GO, ("\tB", "\tC int\n\tB"), 'var x = T{A: 1, B: "b"}', 'var x = T{A: 1, C: NEW, B: "b"}'),
        ("a.go", _FIELDS_GO, ("B string\n", "B string\n\tC int\n"), 'var x = &T{1, "b"}', 'var x = &T{1, "b", NEW}'),
        (
            "a.go",
            _FIELDS_GO,
            ("B string\n", "B string\n\tC int\n"),
            'var x = T{\n\tA: 1,\n\tB: "b",\n}',
            'var x = T{\n\tA: 1,\n\tB: "b",\n\tC: NEW,\n}',
        ),
        ("a.go", _FIELDS_GO, ("\tA int\n", ""), 'var x = T{A: 1, B: "b"}', 'var x = T{B: "b"}'),
        (
            "a.rs",
            _FIELDS_RUST,
            ("b: i32,\n", "b: i32,\n    c: i32,\n"),
            "fn f(b: i32) { T { a: 1, b } }",
            "fn f(b: i32) { T { a: 1, b, c: NEW } }",
        ),
        (
            "a.rs",
            _FIELDS_RUST,
            ("b: i32,\n", "b: i32,\n    c: i32,\n"),
            "impl T { fn f() { Self { a: 1, b: 2 } } }",
            "impl T { fn f() { Self { a: 1, b: 2, c: NEW } } }",
        ),
    ],
)
def test_a_literal_or_a_constructor_follows_the_fields_of_its_type(
    path: str, head: str, edit: tuple[str, str], call: str, wanted: str
) -> None:
    text = head + _FAR.replace("x = 1\ny = 2\n", "") + call + "\n"
    assert followed(path, text, edit).endswith(f"\n{wanted}\n")


@pytest.mark.parametrize(
    ("path", "head", "edit", "call"),
    [
        ("a.py", _FIELDS_PYTHON, ("b: int\n", "b: int\n    c: int = 3\n"), "T(1, 2)"),
        ("a.py", _FIELDS_PYTHON, ("b: int\n", "b: int\n    c: ClassVar[int]\n"), "T(1, 2)"),
        ("a.py", _FIELDS_PYTHON.replace("T:", "T(Base):"), ("b: int\n", "b: int\n    c: int\n"), "T(1, 2)"),
        ("a.py", _FIELDS_PYTHON.partition("\n")[2], ("b: int\n", "b: int\n    c: int\n"), "T(1, 2)"),
        ("a.go", _FIELDS_GO, ("B string\n", "B string\n\tC int\n"), "var x = T{A: 1}"),
        ("a.go", _FIELDS_GO, ("B string\n", "B string\n\tC int\n"), "var x = T{}"),
        ("a.rs", _FIELDS_RUST, ("b: i32,\n", "b: i32,\n    c: i32,\n"), "fn f(t: T) { T { a: 1, ..t } }"),
    ],
)
def test_a_literal_that_leaves_fields_out_and_a_type_with_other_ones_stay(
    path: str, head: str, edit: tuple[str, str], call: str
) -> None:
    text = head + "\n\n\n" + call + "\n"
    assert followed(path, text, edit) == text.replace(*edit, 1)


def test_a_field_of_rust_with_the_variable_of_its_name_is_written_once() -> None:
    change, _ = changed(
        "a.rs", f"{_FIELDS_RUST}fn f(b: i32) {{ T {{ a: 1, b }} }}\n", ("b: i32,\n", "b: i32,\n    c: i32,\n")
    )
    assert change is not None
    assert [call.place.written(["c"]) for call in change.places] == [", c"]
    assert [call.place.written(["d"]) for call in change.places] == [", c: d"]
