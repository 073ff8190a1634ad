"""An edit that takes more out of a value: every place that has such a value is edited, or listed with a reason."""

# ruff: noqa: E501  a file a line

import pytest
from support.refactor_case import edit_of, reasons, rules_of

OTHER = "its receiver or its arguments are others than in the example"


@pytest.mark.parametrize(
    ("language", "text", "old", "new", "places", "listed"),
    [
        ("go", "package p\n\nfunc f() {\n\tx := a.Get()\n}\nfunc g() {\n\ty := a.Get()\n}\nfunc h() {\n\tz := b.Get()\n}\n",
         "x :=", "x, _ :=", {"y := a": "y, _ := a"}, [OTHER]),
        ("go", "package p\n\nfunc f() {\n\tvar x = a.Get()\n}\nfunc g() {\n\tvar y = a.Get()\n\tz := a.Get()\n\tw := 5\n}\n",
         "var x", "var x, _", {"var y": "var y, _"}, ["its value is not bound as in the example"]),
        ("go", "package p\n\nfunc f() {\n\tif x := a.Get(); x {\n\t}\n\tif y := b.Get(); y {\n\t}\n}\n",
         "x :=", "x, _ :=", {}, [OTHER]),
        ("go", "package p\n\nfunc f() {\n\tfor x := range a.Get() {\n\t}\n\tfor y := range a.Get() {\n\t}\n\tfor z := range b.Get() {\n\t}\n}\n",
         "for x", "for _, x", {"for y": "for _, y"}, [OTHER]),
        ("python", "x = a.get()\ny = a.get()\nz = b.get()\nuse(a.get())\n",
         "x =", "x, n =", {"y =": "y, n ="}, [OTHER, "its value is not bound as in the example"]),
        ("python", "for x in a.get():\n    pass\nfor y in a.get():\n    pass\nfor z in b.get():\n    pass\n",
         "for x", "for x, n", {"for y": "for y, n"}, [OTHER]),
        ("python", "with a.get() as x:\n    pass\nwith a.get() as y:\n    pass\nwith b.get() as z:\n    pass\n",
         "as x", "as (x, n)", {"as y": "as (y, n)"}, [OTHER]),
        ("python", "x = rows[0]\ny = cols[0]\nx = 5\n", "x = r", "x, n = r", {}, []),
        ("rust", "fn f() { let x = a.get(); }\nfn g() { let y = a.get(); }\nfn h() { let z = b.get(); let mut w = a.get(); let v = 5; }\n",
         "let x", "let (x, n)", {"let y": "let (y, n)"}, [OTHER, "its value is not bound as in the example"]),
        ("rust", "fn f() { let x = a.get(); }\nfn g() { let y = 5; }\n", "let x", "let Some(x)", {}, []),
        ("typescript", "function f() { const x = a.get(); }\nfunction g() { const y = a.get(); const z = b.get(); let w = a.get(); }\n",
         "const x", "const [x, n]", {"const y": "const [y, n]"}, [OTHER, "its value is not bound as in the example"]),
        ("typescript", "const x = a.get();\nconst y = b.get();\n", "const x", "const { x }", {},
         ["its value is not bound as in the example"]),
        ("csharp", "class A { void f() { var x = a.get(); var z = b.get(); } }", "var x", "var (x, n)", {}, [OTHER]),
        ("cpp", "void f() { auto x = a.get(); auto z = b.get(); }\n", "auto x", "auto [x, n]", {}, [OTHER]),
        ("kotlin", "fun f() { val x = a.get() }\nfun g() { val y = a.get()\n val z = b.get() }\n",
         "val x", "val (x, n)", {"val y": "val (y, n)"}, [OTHER]),
        ("php", "<?php\n$x = $a->get();\n$y = $a->get();\n$z = $b->get();\n",
         "$x", "[$x, $n]", {"$y": "[$y, $n]"}, [OTHER]),
        ("ruby", "x = a.get(1)\ny = a.get(2)\nz = b.get(3)\n",
         "x =", "x, n =", {"y =": "y, n ="}, ["its receiver is another one than in the example"]),
    ],
)  # fmt: skip
def test_more_is_taken_out_of_the_same_value_and_others_are_listed(
    language: str, text: str, old: str, new: str, places: dict[str, str], listed: list[str]
) -> None:
    after = text.replace(old, new, 1)
    done = edit_of(language, [(text, after)], after)
    expected = after
    for before, edited in places.items():
        expected = expected.replace(before, edited)
    assert done.applied(after) == expected
    assert reasons(done) == listed


GO = """package p

func a() {
	x := get(1)
}
func b() {
	y := get(2)
}
func c(err error) {
	y := get(3)
}
func d() {
	y := get(4)
	err := y.Do()
}
"""


def test_a_name_that_is_in_use_or_would_be_read_by_nothing_is_not_declared_in_go() -> None:
    after = GO.replace("x :=", "x, err :=")
    done = edit_of("go", [(GO, after)], after)
    assert done.applied(after) == after
    assert reasons(done) == [
        "nothing here reads `err`, which the edit binds",
        "`err`, which the edit binds, is in use here",
        "`err`, which the edit binds, is in use here",
    ]


def test_a_name_that_the_edit_reads_itself_is_declared_and_its_statement_stays_on_one_line() -> None:
    before = "package p\n\nfunc f() error {\n\tx := get(1)\n\tuse(x)\n}\nfunc g() error {\n\ty := get(2)\n}\n"
    check = "\tif err != nil {\n\t\treturn err\n\t}\n"
    after = before.replace("x := get(1)\n", f"x, err := get(1)\n{check}")
    done = edit_of("go", [(before, after)], after)
    assert done.applied(after) == after.replace("y := get(2)\n", f"y, err := get(2)\n{check}")


def test_a_name_that_python_has_elsewhere_is_not_bound_again_unless_the_edit_bound_it() -> None:
    text = "x = get(1)\ny = get(2)\ndef f(n):\n    z = get(3)\ndef g():\n    w = get(4)\n    print(n)\ndef h():\n    v = get(5)\n"
    after = text.replace("x =", "x, n =")
    done = edit_of("python", [(text, after)], after)
    # The file's own `n` is that of the edit; the function g reads it.
    assert done.applied(after) == after.replace("v =", "v, n =")
    assert reasons(done) == ["`n`, which the edit binds, is in use here"] * 3


def test_an_assignment_to_a_declared_name_declares_none() -> None:
    before = "let x, err;\nx = get(1);\nfunction f(z) { z = get(2); }\n"
    assert rules_of("typescript", (before, before.replace("x = get", "[x, err] = get"))) == [
        "$X0 = get($$R0_0) → [$X0, err] = get($$R0_0)"
    ]
    after = before.replace("x = get", "[x, err] = get")
    assert "[z, err] = get(2)" in edit_of("typescript", [(before, after)], after).applied(after)
