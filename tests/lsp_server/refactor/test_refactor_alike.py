"""What is left of the code that an edit takes away is counted, and the members of other values are listed."""

import pytest
from support.refactor_case import reasons, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.alike import alike, taken_away
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.places.doubts import Beside


@pytest.mark.parametrize(
    ("language", "before", "after", "words"),
    [
        ("php", "<?php\nif ($a) { f(); } else if ($b) { g(); }\n",
         "<?php\nif ($a) { f(); } elseif ($b) { g(); }\n", "else if"),
        ("cpp", "struct A { virtual ~A() { f(); } };\n", "struct A { ~A() override { f(); } };\n", "virtual"),
        ("rust", "fn f() { let match_count = g(0); }\n", "fn f() { let line_count = g(0); }\n", "match_count"),
        ("javascript", "t.fail('it never threw');\n", "t.pass();\n", "it never threw"),
        ("python", "x = load(path)\n", "x = load(path, True)\n", ""),
        ("python", "x = load(path, True)\n", "x = load(path)\n", ""),
    ],
)  # fmt: skip
def test_the_words_that_an_edit_takes_away(language: str, before: str, after: str, words: str) -> None:
    rules = learn([Example(before, after)], language_for(language, ""))
    assert " ".join(leaf.text for leaf in taken_away(rules.rules[0])) in (words, f"fail {words}", f"fail ( ' {words}")


def test_imports_comments_and_definitions_do_not_count() -> None:
    rules = learn([Example("x = old_name(1)\n", "x = new_name(1)\n")], language_for("python", ""))
    text = "from m import old_name\n\n\ndef old_name():  # old_name\n    return 'old_name'\n"
    assert list(alike([rules], [("a.py", text)], 60.0)) == []
    [line] = alike([rules], [("a.py", text + "\n\ntry_it(old_name)\n")], 60.0)
    assert line.startswith("1 more place has `old_name`")


def test_an_argument_of_several_words_is_counted_where_another_call_has_it() -> None:
    rules = learn([Example("go(s.url, {a});\n", "go({a});\n")], language_for("javascript", ""))
    text = "run(s.url);\nrun(s.url.size, 1);\nx = s.url;\nrun(`${s.url}`);\n"
    [line] = alike([rules], [("a.js", text)], 60.0)
    assert line.startswith("1 more place has `s.url`")


def test_macros_without_a_module_are_counted_where_another_one_got_it() -> None:
    before = "fn f() { debug!(1); }\n"
    rules = learn([Example(before, before.replace("debug", "log::debug"))], language_for("rust", ""))
    text = "macro_rules! own { () => {} }\nfn g() { warn!(2); own!(); println!(3); log::info!(4); }\n"
    [line] = alike([rules], [("a.rs", text)], 60.0)
    assert line.startswith("1 more place calls `warn!` without a module")
    assert list(alike([rules], [("a.rs", text.replace("warn!", "log::warn!"))], 60.0)) == []


OF_VALUES = {
    "python": ("def f(a):\n    b(a.load())\n", ".load()", ".load()[0]", "def g(c):\n    b(c.load())\n"),
    "javascript": (
        "function f(a) { b(a.load); }\n",
        "a.load",
        "a.load.size()",
        "function g(c) { b(c.load); }\n",
    ),
    "go": (
        "package p\n\nfunc f(a A) { b(a.load(x)) }\n",
        "(x)",
        "(x, y)",
        "package p\n\nfunc g(c A) { b(c.load(x)) }\n",
    ),
    "java": (
        "class A { void f(B a) { b(a.load(x)); } }\n",
        "a.load(x)",
        "a.load(x).get()",
        "class A { void g(B c) { b(c.load(x)); } }\n",
    ),
    "rust": ("fn f(a: A) { b(a.load()); }\n", ".load()", ".load().get()", "fn g(c: A) { b(c.load()); }\n"),
}


@pytest.mark.parametrize("language", OF_VALUES)
def test_a_member_of_a_value_may_be_meant_of_other_values_and_not_of_modules(language: str) -> None:
    before, old, new, text = OF_VALUES[language]
    known = language_for(language, "")
    rules = learn([Example(before, before.replace(old, new))], known)
    assert reasons(rewrite(rules, "file", text, known)) == ["wide: only `load` is as in the example"]
    changed = text.replace(old.replace("a.", "c."), new.replace("a.", "c."))
    assert rewrite(rules, "file", text, known, beside=Beside(wide="all")).applied(text) == changed


def test_a_member_of_a_module_is_that_module_s_own() -> None:
    before = "import a\n\nb(a.load())\n"
    text = "import c\n\nb(c.load())\n"
    assert not reasons(sure_edit("python", text, (before, before.replace(".load()", ".load()[0]"))))


def test_a_value_that_may_be_missing_may_be_so_before_its_other_members() -> None:
    before = "function f(a) { b(a.load); }\n"
    edit = sure_edit("typescript", "function g(a) { b(a.size); }\n", (before, before.replace("a.load", "a?.load")))
    assert reasons(edit) == ["wide: only `a` is as in the example"]
