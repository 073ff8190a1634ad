"""Where code is: what is caught is thrown elsewhere, and what a function alone knows is not known in another one."""

import re

import pytest
from support.refactor_case import doubts, reasons, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.places.doubts import Beside


@pytest.mark.parametrize(
    ("language", "form", "thrown"),
    [
        ("python", "try:\n    a()\nexcept {}:\n    b()\n", "raise {}(c)\n"),
        ("python", "try:\n    a()\nexcept {} as e:\n    b(e)\n", "assert_raises({}, c)\n"),
        ("java", "class A {{ void f() {{ try {{ a(); }} catch ({} e) {{ b(); }} }} }}\n",
         "class B {{ void g() {{ throw new {}(c); }} }}\n"),
        ("csharp", "class A {{ void F() {{ try {{ G(); }} catch ({} e) {{ H(); }} }} }}\n",
         "class B {{ void G() {{ throw new {}(c); }} }}\n"),
        ("cpp", "void f() {{ try {{ a(); }} catch (const {}& e) {{ b(); }} }}\n", "void g() {{ throw {}(c); }}\n"),
        ("php", "<?php\ntry {{ a(); }} catch ({} $e) {{ b(); }}\n", "<?php\nthrow new {}($c);\n"),
        ("kotlin", "fun f() {{ try {{ a() }} catch (e: {}) {{ b() }}\n}}\n", "val x: {} = c\n"),
    ],
)  # fmt: skip
def test_another_error_that_is_caught_is_thrown_as_it_was(language: str, form: str, thrown: str) -> None:
    example = form.format("OldError"), form.format("NewError")
    text = form.format("OldError").replace("a()", "k()").replace("G()", "K()")
    edited = sure_edit(language, text, example, paths=("a", "b")).applied(text)
    assert edited == text.replace("OldError", "NewError")
    edit = sure_edit(language, thrown.format("OldError"), example, paths=("a", "b"))
    assert not edit.edits
    assert all(doubt == "it is elsewhere here, and what is caught in the example" for doubt in doubts(edit))


LOCAL = [
    ("python", "def f({}, a):\n    io.put(out, a)\n", "def g({}, c):\n    io.put(out, c)\n"),
    ("javascript", "function f({}, a) {{ io.put(out, a); }}\n", "function g({}, c) {{ io.put(out, c); }}\n"),
    ("go", "package p\n\nfunc f({} T, a int) {{\n\tio.Put(out, a)\n}}\n",
     "package p\n\nfunc g({} T, c int) {{\n\tio.Put(out, c)\n}}\n"),
    ("java", "class A {{ void f(T {}, int a) {{ io.put(out, a); }} }}\n",
     "class B {{ void g(T {}, int c) {{ io.put(out, c); }} }}\n"),
    ("rust", "fn f({}: T, a: i32) {{ io::put(out, a); }}\n", "fn g({}: T, c: i32) {{ io::put(out, c); }}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "form", "other"), LOCAL)
def test_a_name_that_nothing_binds_takes_the_place_of_a_local_one_nowhere_else(
    language: str, form: str, other: str
) -> None:
    before, text = form.format("out"), other.format("out")
    edit = sure_edit(language, text, (before, before[::-1].replace("tuo", "w", 1)[::-1]), paths=("a", "b"))
    assert not edit.edits
    assert doubts(edit) == ["nothing here binds `w`, which the edit uses instead of a local name"]


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("javascript", "t.throws(a, /b/);", "t.throws(a, {message: /b/});", "t.match(c, /d/);\nt.throws(e, /g/);"),
        ("typescript", "t.throws(a, /b/);", "t.throws(a, {message: /b/});", "t.match(c, /d/);\nt.throws(e, /g/);"),
        ("ruby", "t.throws(a, /b/)\n", "t.throws(a, {message: /b/})\n", "t.match(c, /d/)\nt.throws(e, /g/)\n"),
    ],
)  # fmt: skip
def test_what_a_regular_expression_is_handed_to_says_which_one_is_meant(
    language: str, before: str, after: str, text: str
) -> None:
    edited = sure_edit(language, text, (before, after), paths=("a", "b")).applied(text)
    assert edited == text.replace("/g/", "{message: /g/}")


def test_the_widest_form_makes_no_edit_again_inside_of_one() -> None:
    language, text = language_for("javascript", ""), "t.is(/c/, d);\nt.match(/e/);\n"
    rules = learn([Example("t.is(/a/, b);\n", "t.is(g(/a/), b);\n", "a")], language)
    edited = rewrite(rules, "b", text, language, beside=Beside(wide="all")).applied(text)
    assert edited == "t.is(g(/c/), d);\nt.match(g(/e/));\n"


@pytest.mark.parametrize(
    ("language", "imported", "form", "new"),
    [
        ("php", "<?php\nuse Old;\n", "function f(): {} {{ }}\n", "iterable"),
        ("typescript", "import {Old} from './old';\n", "let x: {};\n", "string"),
        ("java", "import a.Old;\n", "class A {{ {} x; }}\n", "int"),
        ("kotlin", "import a.Old\n", "val x: {} = f()\n", "Int"),
        ("rust", "use a::Old;\n", "fn f() -> {} {{}}\n", "u32"),
        ("python", "from a import Old\n", "def f(x: {}):\n    pass\n", "int"),
        ("cpp", "using a::Old;\n", "{} x;\n", "int"),
    ],
)
def test_an_import_is_no_place_of_an_edit_that_leaves_the_import_of_its_example(
    language: str, imported: str, form: str, new: str
) -> None:
    example = imported + form.format("Old"), imported + form.format(new)
    code = re.sub(r"\b[fx]\b", "g", form)
    text = imported + code.format("Old")
    edit = sure_edit(language, text, example, paths=("a", "b"))
    assert edit.applied(text) == imported + code.format(new)
    assert not reasons(edit)


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "doubt"),
    [
        ("go", "package p\n\nfunc f() { w.CloseAll() }\n", "package p\n\nfunc f() { w.ShutAll() }\n",
         "package p\n\nfunc g() { defer w.CloseAll() }\n", "it is deferred here, and elsewhere in the example"),
        ("rust", "struct S { f: Box<Fn(u8) -> Id> }\n", "struct S { f: Box<dyn Fn(u8) -> Id> }\n",
         "fn g<F>(f: F) where F: Fn(u8) -> Id {}\n", "it is a bound of a type here, and elsewhere in the example"),
        ("rust", "#[derive(Debug)]\nstruct A;\n", "#[derive(Debug, Default)]\nstruct A;\n",
         "#[derive(Debug)]\nstruct B;\n", "another declaration may not need it"),
        ("rust", "fn f() { g(&x, vec![1]); }\n", "fn f() { g(&x, &[1]); }\n",
         "fn h() { let mut e = vec![]; k(&mut e); }\n", "it is elsewhere here, and an argument in the example"),
        ("go", "package p\n\nfunc f() { g(Bag{A: 1}) }\n", "package p\n\nfunc f() { g(&Bag{A: 1}) }\n",
         "package p\n\nfunc h() { e := Bag{A: 2}; k(&e) }\n", "it is elsewhere here, and an argument in the example"),
        ("rust", "const A: Wide = 1;\n", "const A: Narrow = 1;\n", "struct S { id: Wide }\n",
         "it is elsewhere here, and the type of a constant in the example"),
        ("java", "class A { static final Wide A = one(); }\n", "class A { static final Narrow A = one(); }\n",
         "class B { void f(Wide id) {} }\n", "it is elsewhere here, and the type of a constant in the example"),
        ("java", "class A { Bag<Coin> b = new Bag<Coin>(); }\n", "class A { Bag<Coin> b = new Bag<>(); }\n",
         "class B { void f() { g(new Bag<Coin>()); } }\n", "it is an argument here, and no argument in the example"),
        ("typescript", "const b: Bag<Coin> = new Bag<Coin>();\n", "const b: Bag<Coin> = new Bag();\n",
         "g(new Bag<Coin>());\n", "it is an argument here, and no argument in the example"),
    ],
)  # fmt: skip
def test_another_position_is_doubtful(language: str, before: str, after: str, text: str, doubt: str) -> None:
    edit = sure_edit(language, text, (before, after))
    assert edit.applied(text) == text
    assert doubts(edit) == [doubt]


def test_what_an_attribute_of_rust_gets_instead_of_another_is_sure_and_what_it_gets_beside_is_not() -> None:
    before, text = (
        "#[derive(Eq, Show)]\nstruct A;\n",
        "#[derive(Show)]\nstruct B;\n#[derive(Copy, Eq, Show)]\nstruct C;\n",
    )
    edit = sure_edit("rust", text, (before, before.replace("Show", "Debug")))
    assert edit.applied(text) == text.replace("Show", "Debug")
    edit = sure_edit("rust", text, (before, before.replace("Show", "Show, Debug")))
    assert edit.applied(text) == text
    assert doubts(edit) == ["another declaration may not need it"] * 2


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "last"),
    [
        ("go", "package p\n\nfunc f() error {\n\tif err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n",
         "package p\n\nfunc f() error {\n\tif err != nil {\n\t\treturn wrap(err)\n\t}\n\treturn nil\n}\n",
         "package p\n\nfunc g() error {\n\tif err := h(); err != nil {\n\t\treturn err\n\t}\n\treturn err\n}\n",
         "\treturn err\n}\n"),
        ("javascript", "if (err) {\n  done(err);\n}\n", "if (err) {\n  done(wrap(err));\n}\n",
         "if (err !== null) done(err);\ndone(err);\n", "done(err);\n"),
        ("python", "if x is not None:\n    f(x)\n", "if x is not None:\n    f(wrap(x))\n",
         "if y is not None:\n    f(y)\nf(y)\n", "f(y)\n"),
        ("java", "class A { void f() { if (x != null) { g(x); } } }\n",
         "class A { void f() { if (x != null) { g(wrap(x)); } } }\n",
         "class B { void h() { if (y != null) { g(y); } g(y); } }\n", "g(y); } }\n"),
    ],
)  # fmt: skip
def test_what_is_tested_before_it_is_wrapped_is_wrapped_behind_a_test(
    language: str, before: str, after: str, text: str, last: str
) -> None:
    edit = sure_edit(language, text, (before, after))
    assert doubts(edit) == ["it is elsewhere here, and behind a test of its value in the example"]
    assert edit.applied(text).endswith(last)
    assert edit.applied(text).count("wrap(") == 1


STREAMS = {
    "cpp": ("void f() {{ g({}); }}\n", "Old(a) << b", "fresh(a, b)", "Old(c) << d << e"),
    "ruby": ("g({})\n", "Old.new(a) << b", "fresh(a, b)", "Old.new(c) << d << e"),
}


@pytest.mark.parametrize("language", STREAMS)
def test_the_start_of_more_of_the_same_is_doubtful(language: str) -> None:
    code, old, new, more = STREAMS[language]
    example = (code.format(old), code.format(new))
    edit = sure_edit(language, code.format(more), example)
    assert not edit.edits
    assert doubts(edit) == ["it is the start of more of the same here, and elsewhere in the example"]
    alone = code.format(more.removesuffix(" << e"))
    assert sure_edit(language, alone, example).applied(alone) == code.format("fresh(c, d)")


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("javascript", "if (raw.part) { go(); }\n", "use(raw.part);\nif (raw.part) { run(); }\n"),
        ("typescript", "if (raw.part) { go(); }\n", "use(raw.part);\nif (raw.part) { run(); }\n"),
        ("java", "class A { void f() { if (raw.part) { go(); } } }\n",
         "class B { void g() { use(raw.part); if (raw.part) { run(); } } }\n"),
        ("python", "if raw.part:\n    go()\n", "use(raw.part)\nif raw.part:\n    run()\n"),
    ],
)  # fmt: skip
def test_what_is_put_to_the_test_is_a_condition(language: str, before: str, text: str) -> None:
    edit = sure_edit(language, text, (before, before.replace("raw.part", "is_set(raw.part)")))
    last = text.rfind("raw.part")
    assert edit.applied(text) == text[:last] + "is_set(raw.part)" + text[last + 8 :]
    assert doubts(edit) == ["it is elsewhere here, and a condition in the example"]


ALONE = "it is a value here, and a statement of its own in the example"


@pytest.mark.parametrize(
    ("language", "old", "new", "around", "value"),
    [
        ("python", "load(1)", "check(load(1))", "{}\n", "a = {}\n"),
        ("javascript", "load(1)", "void load(1)", "{};\n", "const a = {};\n"),
        ("c", "load(1)", "(void)load(1)", "void f() {{ {}; }}\n", "int f() {{ return {}; }}\n"),
        ("go", "load(1)", "must(load(1))", "package p\n\nfunc f() {{ {} }}\n", "package p\n\nvar a = {}\n"),
        ("rust", "load(1)", "drop(load(1))", "fn f() {{ {}; }}\n", "fn f() -> u8 {{ {} }}\n"),
        ("kotlin", "load(1)", "check(load(1))", "fun f() {{ {} }}\n", "val a = {}\n"),
        ("php", "load(1)", "check(load(1))", "<?php\n{};\n", "<?php\n$a = {};\n"),
        ("python", "load(1)", "check(load(1)).now()", "{}\n", "a = {}\n"),
        ("typescript", "await load(1)", "check(await load(1)).is.now()", "{};\n", "const a = {};\n"),
        ("java", "load(1)", "check(load(1)).now()", "class A {{ void f() {{ {}; }} }}\n",
         "class A {{ int a = {}; }}\n"),
    ],
)  # fmt: skip
def test_a_value_is_not_surely_handed_over_where_a_statement_was(
    language: str, old: str, new: str, around: str, value: str
) -> None:
    example = (around.format(old), around.format(new))
    for place, expected in ((around, []), (value, [ALONE])):
        text = place.format(old)
        edit = sure_edit(language, text, example)
        assert doubts(edit) == expected
        assert edit.applied(text) == place.format(old if expected else new)


@pytest.mark.parametrize(
    ("language", "form", "old", "new"),
    [
        ("go", "package p\n\nvar a = map[A]struct{{}}{{\n\tb: {},\n\tc: {},\n}}\nvar d = []struct{{}}{{{}}}\n",
         "struct{}{}", "{}"),
        ("typescript", "const a = {{ b: {}, c: {} }};\nconst d = {};\n", "x as any", "x"),
        ("rust", "static A: [T; 2] = [{}, {}];\nstatic D: T = {};\n", "x as usize", "x"),
        ("cpp", "int a[] = {{ {}, {} }};\nint d = {};\n", "(int)x", "x"),
    ],
)  # fmt: skip
def test_a_rule_of_syntax_alone_is_sure_in_the_statement_of_its_example(
    language: str, form: str, old: str, new: str
) -> None:
    after = form.format(new, old, old)
    edit = sure_edit(language, after, (form.format(old, old, old), after))
    assert edit.applied(after) == form.format(new, new, old)
