"""The widest form of a rule: its places are listed, edited if the user asks for it, and sure after a second example."""

# ruff: noqa: E501  a file a line

import pytest
from support.refactor_case import doubts, reasons, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import described
from lsp_server.refactor.places.doubts import SURE, Beside
from lsp_server.refactor.rules.rule import RuleSet

KINDS = {
    "a qualifier": ("python", "import six\nx = six.text(1)\n", "six.", "", "import six\ny = six.items(2)\n"),
    "a module": (
        "go",
        "package p\n\nfunc f() { assert.Equal(t, 1) }\n",
        "assert.",
        "require.",
        "package p\n\nfunc g() { assert.NoError(t, e) }\n",
    ),
    "a receiver": ("php", "<?php\n$this->same(1, $b);\n", "$this->", "self::", "<?php\n$this->count(2, $c);\n"),
    "an operator": ("javascript", "if (a == 0) f();\n", "==", "===", "if (b == c.d) g();\n"),
    "a modifier": ("rust", "pub fn f() {}\n", "pub", "pub(crate)", "pub struct S;\n"),
    "protected of Java": (
        "java",
        "class A { protected int x; }\n",
        "protected",
        "private",
        "class B { protected void f() {} }\n",
    ),
    "protected of TypeScript": (
        "typescript",
        "class A { protected x = 1; }\n",
        "protected",
        "private",
        "class B { protected f() {} }\n",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_widest_form_of_an_edit_is_made_where_it_is_asked_for(kind: str) -> None:
    name, before, old, new, text = KINDS[kind]
    language = language_for(name, "")
    rules = learn([Example(before, before.replace(old, new))], language)
    listed = rewrite(rules, "file", text, language)
    assert listed.edits == ()
    (left_out,) = listed.left_out
    assert left_out.phrase.startswith("wide: only `")
    assert rewrite(rules, "file", text, language, beside=Beside(wide="all")).applied(text) == text.replace(old, new)


@pytest.mark.parametrize(
    ("language", "around"), [("python", "ASSERT\n"), ("java", "class A { void f() { ASSERT; } }\n")]
)
def test_whatever_is_asserted_becomes_what_one_assertion_became(language: str, around: str) -> None:
    before, after, text, changed = (
        around.replace("ASSERT", one) for one in ("assert a[1] > b", "check(a[1] > b)", "assert f(c)", "check(f(c))")
    )
    assert sure_edit(language, text, (before, after)).applied(text) == changed
    loose = (before, around.replace("ASSERT", "a[1] > b || fail()" if language == "java" else "a[1] > b or fail()"))
    assert sure_edit(language, text, loose).edits == ()
    said = around.replace("ASSERT", "assert f(c), d" if language == "python" else "assert f(c) : d")
    assert sure_edit(language, said, (before, after)).edits == ()


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_one_var_says_that_its_function_is_meant(language: str) -> None:
    before = "function f() { var a = g(1); var b = 2; }\nfunction h() { var c = 3; }\n"
    after = before.replace("var a", "const a")
    edit = sure_edit(language, after, (before, after))
    assert edit.applied(after) == after.replace("var b", "const b")
    assert doubts(edit) == ["only its syntax is as in the example"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("let b = 1;\nb = 2;\n", "`b` is set again here"),
        ("function f() {\n  const g = () => {\n    b++;\n  };\n  let b = 1;\n}\n", "`b` is set again here"),
        ("let { b, c: [d = 1] } = e;\nfor ([d] of e) f();\n", "`d` is set again here"),
        ("let b = 1, c = 2;\n({ c } = d);\n", "`c` is set again here"),
        ("for (let b = 0; b < 3; b += 1) f();\n", "`b` is set again here"),
        ("let b = 1;\nfor (b of c) f();\n", "`b` is set again here"),
        ("let b;\n", "it has no value here"),
        ("let b = {};\nb.c = 1;\nb[0]++;\nfor (b.d of e) f(() => { const b = 1; });\n", ""),
        ("let b = 1;\n{\n  let c = 1;\n  c = b;\n  for (const b of d) f(b = 2);\n}\n", ""),
    ],
)
def test_what_is_set_again_is_no_constant(text: str, reason: str) -> None:
    language = language_for("javascript", "")
    rules = learn([Example("let a = f(1);\n", "const a = f(1);\n")], language)
    edit = rewrite(rules, "file", text, language)
    assert edit.applied(text) == (text if reason else text.replace("let b", "const b", 1))
    assert not reason or reason in [one.reason for one in edit.left_out]


@pytest.mark.parametrize(
    ("text", "const", "let"),
    [
        ("var b = 1;\nf(b, c.b, () => b);\n", True, True),
        ("if (a) {\n  var b = 1;\n} else {\n  var b = 2;\n}\n", True, True),
        ("var b = function (b) { return b; };\n", True, True),
        ("var b = () => b();\n", True, True),
        ("for (var b = 0; b < 3; b++) f(b);\n", False, True),
        ("var b;\nb = 1;\n", False, True),
        ("while (a) {\n  var b;\n  b = f(b);\n}\n", False, False),
        ("if (a) { var b = 1; }\nf(b);\n", False, False),
        ("f(b);\nvar b = 1;\n", False, False),
        ("var b = b || {};\n", False, False),
        ("function f(b) {\n  var b = 1;\n}\n", False, False),
        ("var b = 1;\nvar b = 2;\n", False, False),
    ],
)
def test_var_becomes_another_keyword_only_where_it_stays_the_same_variable(text: str, const: bool, let: bool) -> None:
    for word, other, is_sure in (("const", "c = d.e", const), ("let", "c", let)):
        examples = [(f"var {one};\n", f"{word} {one};\n") for one in ("a = f(1)", other)]
        changed = sure_edit("javascript", text, *examples).applied(text)
        assert changed == (text.replace("var b", f"{word} b") if is_sure else text)


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "changed"),
    [
        ("php", "<?php\n$a = array(1, 2);\n", "<?php\n$a = [1, 2];\n", "<?php\nf(array($b => array()));\n",
         "<?php\nf([$b => []]);\n"),
        ("python", "try:\n    f()\nexcept A, e:\n    g(e)\n", "try:\n    f()\nexcept A as e:\n    g(e)\n",
         "try:\n    h()\nexcept (B, C), d:\n    i(d)\n    raise\n",
         "try:\n    h()\nexcept (B, C) as d:\n    i(d)\n    raise\n"),
        ("cpp", "void f() { g(NULL); }\n", "void f() { g(nullptr); }\n", "int* p = NULL;\n", "int* p = nullptr;\n"),
    ],
)  # fmt: skip
def test_another_spelling_of_the_same_is_sure_everywhere(
    language: str, before: str, after: str, text: str, changed: str
) -> None:
    assert sure_edit(language, text, (before, after)).applied(text) == changed


def test_a_second_example_of_the_widest_form_makes_it_sure() -> None:
    language = language_for("javascript", "")
    texts = ("if (a == 0) f();\n", "if (b == c.d) g();\n", "while (e == g()) h();\n")
    rules = learn([Example(one, one.replace("==", "===")) for one in texts[:2]], language)
    assert [described(rule) for rule in rules.rules] == ["$V0 == $V1 → $V0 === $V1"]
    assert rules.wide == ()
    assert rewrite(rules, "file", texts[2], language).applied(texts[2]) == texts[2].replace("==", "===")


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "foo(a, True)\n", "foo(a)\n"),
        ("python", "x = get(url)\n", "x = get(url, timeout=10)\n"),
        ("python", "def f(sock):\n    sock.send(1)\n", "def f(sock):\n    sock.sendall(1)\n"),
        ("python", "x = wait(5)\n", "x = wait(9)\n"),
        ("python", "x = os.path.join(a, b)\n", "x = Path(a) / b\n"),
        ("rust", "fn f() { paint!(1); }\n", "fn f() { oil::paint!(1); }\n"),
        ("cpp", "int a = read(1);\n", "int a = load(1);\n"),
    ],
)
def test_what_would_fit_everywhere_has_no_widest_form(language: str, before: str, after: str) -> None:
    assert learn([Example(before, after)], language_for(language, "")).wide == ()


def test_a_place_that_is_left_out_for_a_reason_of_its_own_keeps_it() -> None:
    language = language_for("python", "")
    example = Example("import six\nx = six.text(1)\n", "import six\nx = text(1)\n")
    text = "def f(six):\n    return six.text(2)\n"
    edit = rewrite(learn([example], language), "file", text, language)
    assert [one.reason for one in edit.left_out] == ["`six` is a parameter here"]
    assert rewrite(learn([example], language), "file", text, language, beside=Beside(wide="all")).edits == ()


@pytest.mark.parametrize(
    ("language", "before", "old", "new", "text", "left"),
    [
        ("javascript", "let a = f(1);\n", "let", "const", "for (let b of c) g(b);\n", "let b;\n"),
        ("typescript", "let a = f(1);\n", "let", "const", "const d = () => {\n  let b = 1;\n};\n", "let b;\n"),
        (
            "cpp",
            "int* f() { return NULL; }\n",
            "NULL",
            "nullptr",
            "int* p = NULL;\n",
            "#ifdef __cplusplus\n#endif\nint* p = NULL;\n",
        ),
        (
            "php",
            "<?php\n$a = function ($b) { return 1; };\n",
            "function",
            "static function",
            "<?php\nf(function () use (&$c): array { g($c); });\n",
            "<?php\nf(function () { return $this->c; });\n",
        ),
    ],
)
def test_a_keyword_that_means_the_same_is_sure_wherever_it_does(
    language: str, before: str, old: str, new: str, text: str, left: str
) -> None:
    assert sure_edit(language, text, (before, before.replace(old, new))).applied(text) == text.replace(old, new)
    (reason,) = reasons(sure_edit(language, left, (before, before.replace(old, new))))
    assert reason in (
        "it has no value here",
        "`$this` is used here",
        "C, which has no `nullptr`, reads this file too",
    )


FOLDERS = {
    "an operator": ("javascript", "if (a == b) f();\n", "if (c == d.e) f();\n", "==", "===", "while (g == h) f();\n"),
    "a keyword": ("rust", "pub fn f() {}\n", "pub struct S;\n", "pub", "pub(crate)", "pub const A: u8 = 1;\n"),
    "a modifier": (
        "java",
        "class A { protected int x; }\n",
        "class B { protected void f() {} }\n",
        "protected",
        "private",
        "class C { protected long y; }\n",
    ),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_two_examples_of_syntax_alone_are_sure_in_the_folder_that_they_share(kind: str) -> None:
    name, first, second, old, new, text = FOLDERS[kind]
    language = language_for(name, "")
    examples = [Example(one, one.replace(old, new), path) for one, path in ((first, "a/b/c"), (second, "a/d"))]
    rules = learn(examples, language)
    near, far = (rewrite(rules, path, text, language, beside=SURE) for path in ("a/e/f", "g/h"))
    assert near.applied(text) == text.replace(old, new)
    assert far.edits == ()
    assert doubts(far) == ["it is in another folder than the examples, and only its syntax is as in them"]


def test_two_examples_with_the_same_names_have_no_wider_rule() -> None:
    texts = ("import six\nx = six.text(1)\n", "import six\nx = f(six.text)\n")
    rules = learn([Example(one, one.replace("six.text", "text")) for one in texts], language_for("python", ""))
    assert "six.$W0 → $W0" not in map(described, rules.rules)
    assert "six.$W0 → $W0" in map(described, rules.wide)


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "changed"),
    [
        ("python", "raise Bad(e)\n", "raise Bad(e, at=at)\n", "raise Worse(d, 1)\n", "raise Worse(d, 1, at=at)\n"),
        ("python", "x = h.a(b)\n", "x = h.a(b, c=1)\n", "y = h.d(e).f()\n", "y = h.d(e, c=1).f()\n"),
        ("javascript", "throw new A(b);\n", "throw new A(b, c);\n", "throw new D(e);\n", "throw new D(e, c);\n"),
        ("php", "<?php\nthrow new A($b);\n", "<?php\nthrow new A($b, 1);\n", "<?php\nthrow new C($d);\n",
         "<?php\nthrow new C($d, 1);\n"),
    ],
)  # fmt: skip
def test_an_argument_that_is_added_may_be_meant_for_other_errors_or_functions_of_the_module(
    language: str, before: str, after: str, text: str, changed: str
) -> None:
    rules = learn([Example(before, after)], language_for(language, ""))
    assert rewrite(rules, "file", text, language_for(language, "")).edits == ()
    assert rewrite(rules, "file", text, language_for(language, ""), beside=Beside(wide="all")).applied(text) == changed


INTERFACES = {
    "php": ("<?php\ninterface A { public function f($a); }\n", "<?php\ninterface B { public function g(): int; }\nclass C { public function g() {} }\n"),
    "java": ("interface A { public void f(); }\n", "interface B { public int g(int a); }\nclass C { public int g() { return 1; } }\n"),
    "csharp": ("interface A { public void F(); }\n", "interface B { public int G(int a); }\nclass C { public int G() { return 1; } }\n"),
}  # fmt: skip


@pytest.mark.parametrize("language", INTERFACES)
def test_what_the_members_of_an_interface_are_anyway_goes_from_all_of_them(language: str) -> None:
    before, text = INTERFACES[language]
    edit = sure_edit(language, text, (before, before.replace("public ", "")))
    assert edit.applied(text) == text.replace("public ", "", 1)
    (left_out,) = reasons(edit)
    assert left_out.startswith("wide: ")


def test_an_abstract_method_of_a_class_is_none_of_an_interface() -> None:
    text = "abstract class B { public abstract int f(); }\n"
    edit = sure_edit("java", text, ("interface A { public abstract int f(); }\n", "interface A { int f(); }\n"))
    assert edit.edits == ()
    assert doubts(edit) == ["it is elsewhere here, and a member of an interface in the example"]


def test_the_namespace_of_one_function_of_c_may_be_meant_for_the_others() -> None:
    before = "void f() { fputs(a, b); }\n"
    other = "void g() { h(strlen(a)); }\n"
    text = "void g() {\n  memcpy(a, b,  c);\n  a.remove(f(b));\n}\nvoid rename(int a) { rename(a); }\n"
    one, two = ((one, one.replace(name, f"std::{name}")) for one, name in ((before, "fputs"), (other, "strlen")))
    listed = sure_edit("cpp", text, one)
    assert listed.edits == ()
    assert reasons(listed) == ["wide: only that it is a function of C's library is as in the example"]
    assert sure_edit("cpp", text, one, two).applied(text) == text.replace("memcpy", "std::memcpy")
    shared = sure_edit("cpp", f"#ifdef __cplusplus\n#endif\n{text}", one, two)
    assert shared.edits == ()
    assert "C, which has no `std`, reads this file too" in reasons(shared)


def test_else_if_of_php_is_written_as_one_word_in_all_chains() -> None:
    before = "<?php\nif ($a) { f(); } else if ($b) { g(); } else if ($c) { h(); }\n"
    text = "<?php\nif ($x) { f(); }\nelse if ($y) {\n    g(1);\n} else if($z) { i(); } else { j(); }\n"
    edit = sure_edit("php", text, (before, before.replace("else if", "elseif", 1)))
    assert edit.applied(text) == text.replace("else if", "elseif")


REPLACED = {
    "a field of PHP": ("php", "<?php\nself::$server->flush(1);\n", "self::$server->", "Server::", "<?php\nself::$server->add($b);\n$this->add($b);\n"),
    "a field of Python": ("python", "self.client.get(url)\n", "self.client.", "self.api.", "self.client.post(1, data)\nself.post(2)\n"),
    "a field of TypeScript": ("typescript", "this.client.get(url);\n", "this.client.", "this.api.", "this.client.post(1, data);\nthis.post(2);\n"),
    "a class that stays": ("php", "<?php\nStore::open(1);\n", "Store::", "Store::get()->", "<?php\nStore::close($b, 2);\nOther::close(1);\n"),
    "a path": ("rust", "fn f() { cmp::min(1, x); }\n", "cmp::", "std::cmp::", "fn f() { cmp::max(x, 2); }\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPLACED)
def test_a_receiver_that_says_what_it_is_is_replaced_before_all_its_members(kind: str) -> None:
    name, before, old, new, text = REPLACED[kind]
    assert sure_edit(name, text, (before, before.replace(old, new))).applied(text) == text.replace(old, new)


MOVED = {
    "php": ("<?php\nDB::find(1);\n", "DB::", "DB::open('x')->", "<?php\nDB::drop(2);\n"),
    "go": ("package p\n\nfunc f() { assert.Equal(t, 1) }\n", "assert.", "require.", "package p\n\nfunc g() { assert.Nil(e) }\n"),
}  # fmt: skip


@pytest.mark.parametrize("language", MOVED)
def test_where_a_member_may_have_moved_alone_the_others_are_wide(language: str) -> None:
    before, old, new, text = MOVED[language]
    edit = sure_edit(language, text, (before, before.replace(old, new)))
    assert edit.edits == ()
    assert [reason.partition(": ")[0] for reason in reasons(edit)] == ["wide"]


@pytest.mark.parametrize(
    ("language", "before", "old", "new", "text"),
    [
        ("go", "package p\n\nvar a map[key]any\n", "[key]", "[any]", "package p\n\nvar b map[key]int\n"),
        ("python", "a = b - c\n", "b -", "c -", "d = b - e\n"),
        ("javascript", "a = b - c;\n", "b -", "c -", "d = b - e;\n"),
        ("rust", "fn f() { a = b - c; }\n", "b -", "c -", "fn g() { d = b - e; }\n"),
    ],
)
def test_what_takes_the_place_of_a_token_is_no_variable_of_the_widest_form(
    language: str, before: str, old: str, new: str, text: str
) -> None:
    known = language_for(language, "")
    (wide,) = learn([Example(before, before.replace(old, new))], known).wide
    edit = rewrite(RuleSet(language, (), wide=(wide,)), "file", text, known, beside=Beside(wide="all"))
    assert edit.applied(text) == text.replace(old, new)


@pytest.mark.parametrize("receiver", ["A", "*A"])
def test_a_receiver_of_go_needs_no_blank_name_and_parameters_do_beside_others(receiver: str) -> None:
    before = f"package p\n\nfunc (_ {receiver}) f() {{}}\n"
    text = "package p\n\nfunc (_ B) g() {}\n\nfunc (_ *C) h(_ D, e F, _, g H) {}\n\nfunc i(_, j K) {}\n"
    edit = sure_edit("go", text, (before, before.replace("_ ", "")))
    assert edit.applied(text) == text.replace("(_ B)", "(B)").replace("(_ *C)", "(*C)")
    assert reasons(edit) == ["the other parameters have names"] * 3


@pytest.mark.parametrize("form", ["Optional[{}]", "typing.Optional[{}]", "{} | None"])
def test_a_parameter_of_python_whose_default_is_none_may_be_none_whatever_its_type(form: str) -> None:
    head = "import typing\nfrom typing import Optional\n\n\n"
    text = head + "def g(a, b: int = None, *, c: list[Id] = None, d: Id = 3, e: object = None): ...\n"
    example = [f"{head}def f(a: {one} = None): ...\n" for one in ("Port", form.format("Port"))]
    edit = sure_edit("python", text, (example[0], example[1]))
    new = text.replace("b: int", f"b: {form.format('int')}").replace("list[Id]", form.format("list[Id]"))
    assert edit.applied(text) == new
    assert reasons(edit) == ["it may be None already"]
    assert sure_edit("python", new, (example[0], example[1])).applied(new) == new


@pytest.mark.parametrize(
    ("old", "new"), [("a: Port = 0", "a: Port | None = 0"), ("a: Port = None", "a: Port | Id = None")]
)
def test_another_type_of_a_parameter_says_nothing_of_others(old: str, new: str) -> None:
    text = "def g(a: Way = None, b: Way = 0): ...\n"
    assert sure_edit("python", text, (f"def f({old}): ...\n", f"def f({new}): ...\n")).applied(text) == text
