"""What an edit must not break, what is no example, and what does not refuse one."""

import pytest
from support.refactor_case import edit_of, reasons, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example, NoRule
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import described, with_contexts


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("python", "def f(a, log):\n    run(a)\n", "def f(a):\n    run(a)\n", "def f(a, log):\n    log(a)\n"),
        (
            "javascript",
            "go(async t => { run(); });\n",
            "go(async () => { run(); });\n",
            "go(async t => { t.ok(); });\n",
        ),
        (
            "typescript",
            "f(function (a, log) { run(a); });\n",
            "f(function (a) { run(a); });\n",
            "f(function (a, log) { log(a); });\n",
        ),
    ],
)
def test_a_parameter_that_is_used_is_not_taken_away(language: str, before: str, after: str, text: str) -> None:
    edit = edit_of(language, [(before, after)], text)
    assert edit.applied(text) == text
    assert any("which the edit takes away, is used here" in reason for reason in reasons(edit))


def test_a_parameter_is_taken_away_where_nothing_uses_it() -> None:
    before, after = "def f(a, log):\n    run(a)\n", "def f(a):\n    run(a)\n"
    text = "def f(a, log):\n    stop(a)\n"
    assert edit_of("python", [(before, after)], text).applied(text) == "def f(a):\n    stop(a)\n"


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("javascript", "function f() { a(); trace(1); }\n", "function g() { if (x) trace(1); }\n"),
        ("java", "class A { void f() { a(); trace(1); } }\n", "class B { void g() { if (x) trace(1); } }\n"),
        ("cpp", "void f() { a(); trace(1); }\n", "void g() { while (x) trace(1); }\n"),
        ("php", "<?php\nfunction f() { a(); trace(1); }\n", "<?php\nfunction g() { if ($x) trace(1); }\n"),
    ],
)
def test_a_deletion_leaves_no_statement_without_its_body(language: str, before: str, text: str) -> None:
    edit = edit_of(language, [(before, before.replace(" trace(1);", ""))], text)
    assert edit.applied(text) == text
    assert any("around it needs it" in reason for reason in reasons(edit))


def test_a_syntax_error_elsewhere_refuses_no_example() -> None:
    before = "def broken(:\n\n\ndef f():\n    load_all(1)\n"
    text = "load_all(2)\n"
    assert edit_of("python", [(before, before.replace("load_all", "read_all"))], text).applied(text) == "read_all(2)\n"


def test_a_syntax_error_in_the_change_does() -> None:
    with pytest.raises(NoRule, match="syntax error"):
        edit_of("python", [("load_all(1)\n", "load_all(1\n")], "load_all(2)\n")


def test_prose_is_no_example() -> None:
    before = 'def f():\n    """Return all of the names here."""\n'
    with pytest.raises(NoRule, match="several words is no example"):
        edit_of("python", [(before, before.replace("names", "words"))], before)


def test_a_long_rule_is_cut_in_the_listing() -> None:
    long = ", ".join(f"value_{number}" for number in range(60))
    (rule,) = learn([Example(f"load({long})\n", f"read({long})\n")], language_for("python", "")).rules
    assert len(described(rule)) < 700


INSTANCES = {
    "python": ("class A:\n    def f(self): CALL(x)\n", "self.",
               "class B:\n    def f(self): g(lambda: CALL(y))\n", "@s\ndef g(): CALL(z)\n"),
    "rust": ("impl A { fn f(&self) { CALL(x); } }\n", "self.",
             "impl B { fn f(&self) { g(|| CALL(y)); } }\n", "impl C { fn f() { CALL(z); } }\n"),
    "php": ("<?php\nclass A { function f() { CALL($x); } }\n", "$this->",
            "<?php\nclass B { function f() { g(function () { CALL($y); }); } }\n",
            "<?php\nclass C { static function f() { CALL($z); } }\n"),
    "javascript": ("class A { f() { CALL(x); } }\n", "this.",
                   "class B { f() { g(() => CALL(y)); } }\n", "const f = () => { CALL(z); };\n"),
    "java": ("class A { void f() { CALL(x); } }\n", "this.",
             "class B { void f() { g(() -> CALL(y)); } }\n", "class C { static void f() { CALL(z); } }\n"),
    "csharp": ("class A { void F() { CALL(x); } }\n", "this.",
               "class B { void F() { G(() => CALL(y)); } }\n", "class C { static void F() { CALL(z); } }\n"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "receiver", "around"),
    [
        ("php", "self::", ("<?php\nclass A { static function f() { ", "} }\n", "<?php\nfunction g() { ", "}\n")),
        ("rust", "Self::", ("impl A { fn f() { ", "} }\n", "fn g() { ", "}\n")),
    ],
)
def test_a_class_is_named_by_self_only_inside_of_one(language: str, receiver: str, around: tuple[str, ...]) -> None:
    start, end, outside, last = around
    example = (f"{start}read_all(1); {end}", f"{start}{receiver}read_all(1); {end}")
    inside, text = f"{start}read_all(2); {end}", f"{outside}read_all(2); {last}"
    assert sure_edit(language, inside, example).applied(inside) == inside.replace("read_all", f"{receiver}read_all")
    assert reasons(sure_edit(language, text, example)) == [f"the edit adds `{receiver[:-2]}`, and there is none here"]


@pytest.mark.parametrize("language", INSTANCES)
def test_an_object_of_its_own_is_named_only_where_code_has_one(language: str) -> None:
    example, receiver, has_one, has_none = INSTANCES[language]
    before, after, text = (one.replace("CALL", "read_all") for one in (example, example, has_one))
    after = after.replace("read_all", f"{receiver}read_all")
    assert sure_edit(language, text, (before, after)).applied(text) == text.replace("read_all", f"{receiver}read_all")
    refused = sure_edit(language, has_none.replace("CALL", "read_all"), (before, after))
    assert refused.edits == ()
    assert reasons(refused) == [f"the edit adds `{receiver.strip('$.->')}`, and there is none here"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("javascript", "function g() { CALL(z); }\n"),
        ("javascript", "items.forEach(function (one) { CALL(one); });\n"),
        ("javascript", "class B { static x = CALL(1); }\n"),
        ("java", "class B { static int x = CALL(1); }\n"),
        ("java", "class B { static { CALL(2); } }\n"),
        ("csharp", "class B { static int P => CALL(1); }\n"),
        ("python", "class B:\n    def g(self, x=CALL(2)): pass\n"),
    ],
)
def test_what_is_called_without_an_object_has_none(language: str, text: str) -> None:
    example, receiver, _, _ = INSTANCES[language]
    before, text = (one.replace("CALL", "read_all") for one in (example, text))
    refused = sure_edit(language, text, (before, before.replace("read_all", f"{receiver}read_all")))
    assert refused.edits == ()
    assert reasons(refused) == [f"the edit adds `{receiver.strip('.')}`, and there is none here"]


@pytest.mark.parametrize(
    "around", ["app.read = function () { CALL };\n", "x = { f: function () { CALL } };\n", "class B { x = CALL; }\n"]
)
def test_a_function_that_is_set_as_a_member_has_an_object(around: str) -> None:
    text = around.replace("CALL", "read_all(y)")
    before = INSTANCES["javascript"][0].replace("CALL", "read_all")
    edit = sure_edit("javascript", text, (before, before.replace("read_all", "this.read_all")))
    assert edit.applied(text) == text.replace("read_all", "this.read_all")


def test_a_type_gets_no_arguments_where_it_has_some() -> None:
    before, text = "def f(a: t.IO): ...\n", "def g(b: t.IO, c: t.IO[str], d: m.Any[t.IO]): ...\n"
    edit = edit_of("python", [(before, before.replace("t.IO", "t.IO[bytes]"))], text)
    assert edit.applied(text) == "def g(b: t.IO[bytes], c: t.IO[str], d: m.Any[t.IO[bytes]]): ...\n"
    assert reasons(edit) == ["it has arguments of its own here"]


def test_a_field_without_a_name_is_no_use_of_its_type_in_a_literal_of_go() -> None:
    known, before = language_for("go", ""), "package p\n\nvar a *Bag\n"
    rules = with_contexts(learn([Example(before, before.replace("Bag", "q.Bag"))], known), known)
    text = "package p\n\nvar b = &Box{Bag: Bag{}}\nvar c = map[int]int{Bag: 1}\n"
    edit = rewrite(rules, "file", text, known)
    assert edit.applied(text) == text.replace("Bag{", "q.Bag{").replace("Bag: 1", "q.Bag: 1")
    assert reasons(edit) == ["it is the name of a field here"]


@pytest.mark.parametrize("place", ["Coin.Side a;", "Object a = Coin.class;", "Object a = new Coin.Side();"])
def test_a_type_with_arguments_comes_only_where_one_can_be(place: str) -> None:
    before, text = "class A { Coin a; }\n", f"class B {{ List<Coin> b; {place} }}\n"
    edit = edit_of("java", [(before, before.replace("Coin", "Box<Gold>"))], text)
    assert edit.applied(text) == text.replace("<Coin>", "<Box<Gold>>")
    assert reasons(edit) == ["a type with arguments cannot be here"]


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("cpp", "void f(Bag a) {}\n", "void f(const Bag& a) {}\n", "void g(Bag b) { %s c(b); }\n"),
        ("java", "class A { void f(Bag a) {} }\n", "class A { void f(final Bag a) {} }\n",
         "class B { void g(Bag b) { %s c(b); } }\n"),
    ],
)  # fmt: skip
def test_a_parameter_that_its_function_sets_again_is_not_constant(
    language: str, before: str, after: str, text: str
) -> None:
    assert reasons(edit_of(language, [(before, after)], text % "b = d();")) == ["`b` is set again here"]
    assert edit_of(language, [(before, after)], text % "d();").edits
