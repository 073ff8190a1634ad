"""Which places fit a rule and may still mean something else: they are edited only if the user takes them."""

import pytest
from support.refactor_case import doubts, reasons, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import rules_of_code
from lsp_server.refactor.places.doubts import SURE

SYNTAX = "only its syntax is as in the example"
IN_ITS_FILE = "`{}`, which the edit uses, may be known in the example's file alone"
RECEIVER = "its receiver is another one than in the example, and may have another type"


STOPS = {
    "python": ("def f(pump):\n    pump.stop()\n", "def g(self, music):\n    self.pump.stop()\n    music.stop()\n"),
    "javascript": ("function f(pump) { pump.stop(); }\n", "function g(music) { this.pump.stop(); music.stop(); }\n"),
    "go": (
        "package p\n\nfunc f(pump P) { pump.stop() }\n",
        "package p\n\nfunc g(pump P, music M) { pump.stop(); music.stop() }\n",
    ),
    "java": (
        "class A { void f(Pump pump) { pump.stop(); } }\n",
        "class B { void g(Pump pump, Music music) { pump.stop(); music.stop(); } }\n",
    ),
    "php": (
        "<?php\nfunction f($pump) { $pump->stop(); }\n",
        "<?php\nfunction g($pump, $music) { $pump->stop(); $music->stop(); }\n",
    ),
}


@pytest.mark.parametrize("language", STOPS)
def test_a_method_of_one_word_of_another_receiver_is_doubtful(language: str) -> None:
    before, text = STOPS[language]
    edit = sure_edit(language, text, (before, before.replace("stop", "halt")))
    assert edit.applied(text) == text.replace("stop", "halt", 1)
    assert doubts(edit) == [RECEIVER]


def test_a_second_example_makes_its_receiver_sure() -> None:
    examples = [(one, one.replace("stop", "halt")) for one in (STOPS["python"][0], "def f(valve):\n    valve.stop()\n")]
    text = "def g(valve):\n    valve.stop()\n"
    assert doubts(sure_edit("python", text, examples[0])) == [RECEIVER]
    assert sure_edit("python", text, *examples).applied(text) == text.replace("stop", "halt")


@pytest.mark.parametrize("call", ["stop_at_end()", "stop(FAST)"])
def test_a_name_of_several_words_or_a_second_name_says_what_is_meant(call: str) -> None:
    before, text = f"def f(pump):\n    pump.{call}\n", f"def f(music):\n    music.{call}\n"
    edit = sure_edit("python", text, (before, before.replace("stop", "halt").replace("FAST", "SLOW")))
    assert edit.applied(text) == text.replace("stop", "halt").replace("FAST", "SLOW")


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("cpp", "void f() { for (int i = 0; i < 3; i++) g(i); }\n", "void f() { for (long i = 0; i < 3; i++) g(i); }\n",
         "int k;\n"),
        ("python", "def test_a():\n    run()\n", "def test_a(app):\n    run()\n", "def test_b():\n    stop()\n"),
        ("javascript", "go(a => { run(); });\n", "go(async a => { run(); });\n", "go(a => { stop(); });\n"),
        ("go", "package p\n\nfunc f() { g([]byte(x)) }\n", "package p\n\nfunc f() { g([]rune(x)) }\n",
         "package p\n\nvar b []byte\n"),
        ("typescript", "const a = f as any;\n", "const a = f as unknown;\n", "const b = g as any;\n"),
        ("javascript", "function f() {\n  a();\n  return true;\n}\n", "function f() {\n  a();\n}\n",
         "function g() {\n  b();\n  return true;\n}\n"),
    ],
)  # fmt: skip
def test_a_rule_of_syntax_alone_edits_nothing_elsewhere(language: str, before: str, after: str, text: str) -> None:
    edit = sure_edit(language, text, (before, after))
    assert edit.applied(text) == text
    assert doubts(edit) == [SYNTAX]


def test_a_rule_of_syntax_alone_is_sure_in_the_function_of_the_example() -> None:
    before = "void f() { int a; int b; }\nvoid g() { int c; }\n"
    after = before.replace("int a", "long a")
    edit = sure_edit("cpp", after, (before, after))
    assert edit.applied(after) == after.replace("int b", "long b")
    assert doubts(edit) == [SYNTAX]


def test_a_conversion_is_a_method_of_any_type() -> None:
    before, text = "fn f(n: u8) { g(n.to_string()) }\n", "fn h(s: S) { g(s.to_string()) }\n"
    edit = sure_edit("rust", text, (before, before.replace("n.to_string()", "Number::text(n)")))
    assert edit.applied(text) == text
    assert doubts(edit) == [RECEIVER]


def test_a_header_is_read_in_the_language_of_the_rule() -> None:
    language = language_for("", "a.h")
    assert language.id == "c"
    rules = learn([Example("int a = fail(1);\n", "int a = raise(1);\n")], language_for("cpp", ""))
    text = "class A { int f() { return Status::fail(2); } int g() { return fail(3); } };\n"
    assert rewrite(rules, "a.h", text, language, beside=SURE).applied(text) == text.replace("fail(3)", "raise(3)")


def test_a_place_with_a_syntax_error_beside_it_is_doubtful() -> None:
    before = "x = load_all(1)\n"
    text = "def f():\n    x = load_all(2 $ 3)\n\n\ndef g():\n    y = load_all(3)\n"
    edit = sure_edit("python", text, (before, before.replace("load_all", "read_all")))
    assert edit.applied(text) == text.replace("load_all(3)", "read_all(3)")
    assert doubts(edit) == ["a syntax error is beside it"]


@pytest.mark.parametrize(
    ("language", "before", "old", "new", "text"),
    [
        ("cpp", "void f() { x = NULL; }\n", "NULL", "nullptr", "void g() { a(k ? (b = s(k), &b) : NULL @ 2); }\n"),
        ("java", "class A { Foo x; }\n", "Foo", "Bar", "class B { void f() { Foo y = g(1 1, ); } }\n"),
    ],
)
def test_a_token_alone_is_sure_beside_a_syntax_error(language: str, before: str, old: str, new: str, text: str) -> None:
    assert sure_edit(language, text, (before, before.replace(old, new))).applied(text) == text.replace(old, new)


def test_another_spelling_of_the_same_tokens_is_sure() -> None:
    before = "<?php\nif ($a) { stop(); } else if ($d) { halt(); }\n"
    text = "<?php\nif ($b) { go(); } else if ($c) { run(); }\n"
    edit = sure_edit("php", text, (before, before.replace("else if", "elseif")))
    assert edit.applied(text) == text.replace("else if", "elseif")


def test_a_parameter_is_surely_added_where_the_body_uses_what_nothing_binds() -> None:
    before = "def test_a():\n    load(app)\n"
    text = "def test_b():\n    save(app)\n\n\ndef test_c():\n    save(None)\n"
    edit = sure_edit("python", text, (before, before.replace("()", "(app)", 1)))
    assert edit.applied(text) == text.replace("test_b()", "test_b(app)")
    bound = "app = make()\n\n\n" + text
    assert sure_edit("python", bound, (before, before.replace("()", "(app)", 1))).edits == ()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [("$X.stop()", "$X.halt()", "music.stop()\n"), ("for $X in $Y: go($X)", "all_of($Y)", "for a in b: go(a)\n")],
)
def test_what_a_person_writes_as_a_rule_has_no_doubts(old: str, new: str, text: str) -> None:
    language = language_for("python", "")
    edit = rewrite(rules_of_code(Example(old, new), language), "file", text, language, beside=SURE)
    assert edit.edits
    assert doubts(edit) == []


def test_a_doubtful_place_is_edited_if_it_is_taken() -> None:
    language = language_for("python", "")
    before, text = STOPS["python"]
    rules = learn([Example(before, before.replace("stop", "halt"))], language)
    edit = rewrite(rules, "file", text, language)
    assert edit.applied(text) == text.replace("stop", "halt")
    assert [(one.span.line, one.reason) for one in edit.doubtful] == [(2, RECEIVER)]


SURE_ELSEWHERE = {
    "a parameter of a test that its body does not use goes": (
        "python",
        "def test_a(self, web):\n    f(self)\n",
        ", web",
        "",
        "def test_b(self, web):\n    g(self)\n",
        "def test_c(self, web):\n    g(web)\n",
    ),
    "the only parameter of an arrow function goes where nothing uses it": (
        "javascript",
        "test(async t => { f(); });\n",
        "t =>",
        "() =>",
        "before(async t => { g(); });\n",
        "before(async t => { g(t); });\n",
    ),
    "a test asks for what was a function of the file": (
        "python",
        "def web(): f()\n\ndef test_a(self):\n    g(web)\n",
        "test_a(self",
        "test_a(self, web",
        "def web(): f()\n\ndef test_a(self):\n    h(web)\n",
        "def test_b(self):\n    web = 1\n    h(web)\n",
    ),
    "the types of a new value are left to the compiler": (
        "java",
        "class A { Table<String> t = new Table<String>(); }\n",
        "new Table<String>",
        "new Table<>",
        "class B { Table<String> u = new Table<String>(); }\n",
        "class C { Table<String> v; List<String> w = new Rows<String>(); }\n",
    ),
    "a macro with the name of a keyword is code": (
        "rust",
        "fn f() { try!(g(1)); }\n",
        "try!(g(1))",
        "g(1)?",
        "fn h() { let x = try!(g(1)).y; }\n",
        "fn h() { g(1); }\n",
    ),
    "a receiver that varies is no module": (
        "javascript",
        "f(t => { t.a(1); t.b(2); });\n",
        "t.a(1);",
        "t.c(t.a(1));",
        "f(t => { t.a(1); t.b(2); });\n",
        "g(1);\n",
    ),
    "a receiver with a number is the same": (
        "python",
        "def f(sock):\n    sock.send(1)\n",
        "send",
        "sendall",
        "def g(sock2):\n    sock2.send(2)\n",
        "def g(queue):\n    queue.send(2)\n",
    ),
    "a class that gets something around it": (
        "typescript",
        "t.throws(f, m.Gone);\n",
        "m.Gone",
        "{is: m.Gone}",
        "t.throws(g, m.Gone);\n",
        "t.throws(g, {is: m.Gone, why: 1});\n",
    ),
}


@pytest.mark.parametrize("what", SURE_ELSEWHERE)
def test_a_place_is_sure_where_nothing_speaks_against_it(what: str) -> None:
    language, before, old, new, text, other = SURE_ELSEWHERE[what]
    example = (before, before.replace(old, new))
    assert sure_edit(language, text, example).applied(text) == text.replace(old, new)
    assert what.startswith("a class") or sure_edit(language, other, example).edits == ()


@pytest.mark.parametrize(
    ("language", "before", "old", "new", "text", "doubt"),
    [
        ("typescript", "try { f(); } catch (error) { g(error); }\n", "(error) {", "(error: any) {",
         "try { h(); } catch (error) { i(error); }\n", SYNTAX),
        ("python", "import m\nx = m.get(1)\n", "m.get", "get", "import m\ny = m.get(2)\n",
         IN_ITS_FILE.format("get")),
        ("javascript", "import { Get } from 'm';\nf(new Get(1));\n", "new Get", "new m.Get",
         "import { Get } from 'm';\ng(new Get(2));\n", IN_ITS_FILE.format("m")),
    ],
)  # fmt: skip
def test_what_only_the_example_s_file_says_is_doubtful_elsewhere(
    language: str, before: str, old: str, new: str, text: str, doubt: str
) -> None:
    edit = sure_edit(language, text, (before, before.replace(old, new)))
    assert edit.applied(text) == text
    assert doubts(edit) == [doubt]


@pytest.mark.parametrize(
    ("language", "before", "after"), [("python", "f(a)\n", "g(a)\n"), ("php", "<?php\nf($a);\n", "<?php\ng($a);\n")]
)
def test_the_code_of_others_is_doubtful_unless_the_example_is_there(language: str, before: str, after: str) -> None:
    known = language_for(language, "")
    for path, expected in (("src/a", ["`vendor` has code of others"]), ("vendor/b", [])):
        rules = learn([Example(before, after, path)], known)
        edit = rewrite(rules, "vendor/c/d", before, known, beside=SURE)
        assert doubts(edit) == expected
        assert edit.applied(before) == (before if expected else after)


def test_an_own_method_of_objects_is_hardly_meant_where_self_becomes_static() -> None:
    examples = [
        (
            f"<?php\nclass A {{ function a() {{ $this->{call}; }} }}\n",
            f"<?php\nclass A {{ function a() {{ self::{call}; }} }}\n",
        )
        for call in ("eq(1, 2)", "ne(1)")
    ]
    calls = "$this->has(1); $this->own(2); $this->all(3);"
    text = f"<?php\nclass B {{ function b() {{ {calls} }} function own() {{}} static function all() {{}} }}\n"
    edit = sure_edit("php", text, *examples)
    assert edit.applied(text) == text.replace("$this->has", "self::has").replace("$this->all", "self::all")
    assert doubts(edit) == ["`own` is a method of its own class"]


@pytest.mark.parametrize(
    ("language", "old", "new", "override"),
    [
        ("java", "public ", "", "@Override public void b() {}"),
        ("csharp", "protected ", "private ", "protected override void b() {}"),
        ("typescript", "protected ", "private ", "protected override b() {}"),
    ],
)
def test_a_method_that_overrides_another_one_stays_as_visible(language: str, old: str, new: str, override: str) -> None:
    types = ("", "") if language == "typescript" else ("void ", "int ")
    mark = "@A " if language == "java" else ""
    examples = [f"class A {{ {mark}{old}{one}{name}() {{}} }}\n" for one, name in zip(types, "cd", strict=True)]
    text = f"class B {{\n  {override}\n  {mark}{old}{types[1]}e() {{}}\n}}\n"
    edit = sure_edit(language, text, *((one, one.replace(old, new)) for one in examples))
    assert edit.applied(text) == text.replace(f"{old}{types[1]}e", f"{new}{types[1]}e")
    assert reasons(edit) == ["it overrides a method, which is as visible as before"]


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("java", "class B { Coin a; bank.Coin b; }\n", "bank.Coin"),
        ("cpp", "void g(Coin a, bank::Coin b);\n", "bank::Coin"),
        ("rust", "fn g(a: Coin, b: bank::Coin) {}\n", "bank::Coin"),
        ("typescript", "function g(a: Coin, b: bank.Coin) {}\n", "bank.Coin"),
        ("go", "package p\n\nfunc g(a Coin, b bank.Coin) {}\n", "bank.Coin"),
        ("scala", "class B { def g(a: Coin, b: bank.Coin): Int = 1 }\n", "bank.Coin"),
        ("swift", "func g(a: Coin, b: Bank.Coin) {}\n", "Bank.Coin"),
    ],
)
def test_a_type_with_a_qualifier_may_be_another_one(language: str, text: str, name: str) -> None:
    before = text.replace(name, "Coin")
    edit = sure_edit(language, text, (before, before.replace("Coin", "Note", 1)))
    assert edit.applied(text) == text.replace("Coin", "Note", 1)
    assert doubts(edit) == [f"it is a part of `{name}` here, which may be another type"]


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "import lib\n\n\ndef f(a: Port = 1): ...\n", "import lib\n\n\ndef f(a: lib.One[Port] = 1): ...\n"),
        ("typescript", "function f(a: Port = P) {}\n", "function f(a: One<Port> = P) {}\n"),
        ("go", "package p\n\nfunc f(a Port) {}\n", "package p\n\nfunc f(a One[Port]) {}\n"),
        ("rust", "fn f(a: &Port) {}\n", "fn f(a: &One<Port>) {}\n"),
    ],
)
def test_the_type_of_a_parameter_is_no_parameter(language: str, before: str, after: str) -> None:
    text = before.replace("f(", "g(")
    assert sure_edit(language, text, (before, after), paths=("a", "b")).applied(text) == after.replace("f(", "g(")


def test_a_name_that_loses_its_module_is_doubtful_in_another_file_wherever_it_is() -> None:
    text = "import * as lib from 'lib';\nclass B extends lib.Port<any> {}\n"
    example = "import * as lib from 'lib';\nclass A { a: lib.Port<any>; }\n"
    edit = sure_edit("typescript", text, (example, example.replace("lib.Port", "Port")), paths=("a.ts", "b.ts"))
    assert doubts(edit) == ["`Port`, which the edit uses, may be known in the example's file alone"]


CALLBACKS = {
    "python": ("{}\n", "old({})", "fresh(lambda z: y(z, {}))"),
    "typescript": ("{}\n", "old({});", "fresh((z: Z) => y(z, {}));"),
    "go": ("package p\n\nfunc f() {{\n\t{}\n}}\n", "old({})", "fresh(func(z int) {{ y(z, {}) }})"),
    "rust": ("fn f() {{ {} }}\n", "old({});", "fresh(|z| y(z, {}));"),
    "java": ("class A {{ void f() {{ {} }} }}\n", "old({});", "fresh(z -> y(z, {}));"),
    "csharp": ("class A {{ void F() {{ {} }} }}\n", "Old({});", "Fresh(z => Y(z, {}));"),
    "kotlin": ("fun f() {{ {} }}\n", "old({})", "fresh {{ z -> y(z, {}) }}"),
    "kotlin, a loop": ("fun f() {{ {} }}\n", "old({})", "for (z in y(1)) y(z, {})"),
    "scala": ("object A {{ def f = {} }}\n", "old({})", "fresh(z => y(z, {}))"),
    "swift": ("func f() {{ {} }}\n", "old({})", "fresh {{ z in y(z, {}) }}"),
    "ruby": ("def f\n  {}\nend\n", "old({})", "fresh {{ |z| y(z, {}) }}"),
    "cpp": ("void f() {{ {} }}\n", "old({});", "fresh([](int z) {{ y(z, {}); }});"),
    "php": ("<?php\nfunction f() {{ {} }}\n", "old({});", "fresh(function ($z) {{ return y($z, {}); }});"),
}


@pytest.mark.parametrize("language", CALLBACKS)
def test_what_a_function_of_the_edit_itself_binds_is_no_name_of_the_examples_file(language: str) -> None:
    code, old, new = CALLBACKS[language]
    before, after, text, changed = (code.format(side.format(value)) for value in ('"a"', '"b"') for side in (old, new))
    assert sure_edit(language.partition(",")[0], text, (before, after)).applied(text) == changed


@pytest.mark.parametrize("language", ["csharp", "kotlin", "java"])
def test_a_place_that_uses_such_a_name_is_left_out(language: str) -> None:
    code, old, new = CALLBACKS[language]
    before, after, text = (code.format(side.format(value)) for side, value in ((old, "1"), (new, "1"), (old, "z")))
    edit = sure_edit(language, text, (before, after))
    assert edit.applied(text) == text
    assert reasons(edit) == ["`z`, which the edit binds, is used here"]


EXPORTED = {
    "go": ("package p\n\nfunc f(a A, pump P, music M) {{ {} }}\n", "a.Pump.Stop", "pump.Stop", "music.Stop"),
    "csharp": ("class C {{ void F(A a, P pump, M music) {{ G({}); }} }}\n", "a.Pump.Stop", "pump.Stop", "music.Stop"),
}


@pytest.mark.parametrize("language", EXPORTED)
def test_a_field_that_others_see_is_called_as_the_variable_is(language: str) -> None:
    form, old, alike, other = EXPORTED[language]
    example = (form.format(old), form.format(old.replace("Stop", "Halt()")))
    for place, expected in ((alike, alike.replace("Stop", "Halt()")), (other, other)):
        edit = sure_edit(language, form.format(place), example, paths=("p/a", "p/b"))
        assert edit.applied(form.format(place)) == form.format(expected)


def test_a_type_says_what_is_meant_also_where_its_parameter_has_its_name() -> None:
    example = ("class A { void f(_ _) {} }\n", "class A { void f(Mark mark) {} }\n")
    edit = sure_edit("java", "class B { void g(_ _) {} }\n", example)
    assert doubts(edit) == ["nothing in it uses `mark`, which the edit adds"]
