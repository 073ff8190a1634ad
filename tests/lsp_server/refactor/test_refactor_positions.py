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
