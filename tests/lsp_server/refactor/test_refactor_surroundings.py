"""What is around a place decides: other arguments, the result of the function, and what only looks alike."""

import pytest
from support.refactor_case import edit_of, reasons, repeated

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_example_itself_is_never_a_place(newline: str) -> None:
    before = newline.join(["# ä", "f(x, y)", "f(y, z)", "f(x, z)", ""])
    after = before.replace("f(x, y)", "f(y, x)")
    language = language_for("python", "")
    rules = learn([Example(before, after)], language)
    done = rewrite(rules, "a.py", after, language).applied(after)
    assert done == newline.join(["# ä", "f(y, x)", "f(z, y)", "f(z, x)", ""])


def test_an_import_that_the_example_lost_is_still_that_import_in_its_own_file() -> None:
    before = "import old\n\nold.read(a)\nold.read(b)\n"
    after = "import new\n\nnew.read(a)\nold.read(b)\n"
    assert repeated("python", before, after, after) == "import new\n\nnew.read(a)\nnew.read(b)\n"


def test_a_keyword_that_the_example_did_not_have_is_not_handed_to_another_function() -> None:
    text = 'import logging\nprint("two", flush=True)\nprint("three", file=err)\nprint("four")\n'
    done = edit_of("python", [('import logging\nprint("one")\n', 'import logging\nlogging.info("one")\n')], text)
    assert done.applied(text) == text.replace('print("four")', 'logging.info("four")')
    assert [reason.partition(",")[0] for reason in reasons(done)] == [
        "the example has no argument `flush`",
        "the example has no argument `file`",
    ]


def test_a_keyword_stays_where_the_same_function_is_called() -> None:
    before, after = "log.warn(a)\n", "log.warning(a)\n"
    assert repeated("python", before, after, "log.warn(b, exc_info=True)\n") == "log.warning(b, exc_info=True)\n"


RUST = """
fn one() -> io::Result<u8> { Ok(read(a).unwrap()) }
fn two() -> Result<u8, io::Error> { Ok(read(b).unwrap()) }
fn three() -> String { read(c).unwrap() }
fn four() { read(d).unwrap(); }
fn five() -> io::Result<u8> { run(|x| read(x).unwrap()) }
fn six() -> Option<u8> { Some(read(e).unwrap()) }
fn seven() -> io::Result<u8> { Ok(log!("{}", read(f).unwrap())) }
fn eight() -> Result<u8, Other> { Ok(read(g).unwrap()) }
"""


def test_a_question_mark_goes_only_where_the_function_returns_such_a_result() -> None:
    example = "fn zero() -> Result<u8, io::Error> { Ok(read(a).unwrap()) }"
    done = edit_of("rust", [(example, example.replace(".unwrap()", "?"))], RUST)
    assert done.applied(RUST) == RUST.replace("read(a).unwrap()", "read(a)?").replace("read(b).unwrap()", "read(b)?")
    assert [reason.removeprefix("the edit adds `?`, and ") for reason in reasons(done)] == [
        "the function here returns String",
        "the function here returns nothing",
        "the closure here does not say what it returns",
        "the function here returns Option<u8>",
        "it is inside of a macro, whose tokens have no syntax",
        "the function here returns Result<u8, Other>",
    ]


GO = """package p

func a() (*T, error) { panic(err) }
func b() ([]byte, error) { panic(err) }
func c() (int, error) { panic(err) }
func d() error { panic(err) }
func e() { panic(err) }
"""


def test_values_are_returned_only_where_the_function_of_go_returns_such() -> None:
    example = "package p\n\nfunc x() (*T, error) { panic(err) }\n"
    done = edit_of("go", [(example, example.replace("panic(err)", "return nil, err"))], GO)
    lines = done.applied(GO).splitlines()
    assert [line[5] for line in lines if "return nil, err" in line] == ["a", "b"]
    assert [reason.rpartition("here ")[2] for reason in reasons(done)] == [
        "returns int, error",
        "returns error",
        "returns nothing",
    ]


def test_python_returns_and_yields_only_in_functions() -> None:
    example = "def f():\n    stop(x)\n"
    text = "stop(x)\n\n\nclass A:\n    stop(x)\n\n\ndef g():\n    stop(x)\n"
    for statement in ("return stop(x)", "yield stop(x)"):
        done = edit_of("python", [(example, example.replace("stop(x)", statement))], text)
        word = statement.split()[0]
        assert done.applied(text) == text[: -len("stop(x)\n")] + f"{statement}\n"
        assert reasons(done) == [f"the edit adds `{word}`, and there is no function here"] * 2


def test_await_goes_into_async_arrows_alone() -> None:
    example = "async function f() { get(a) }"
    text = "const g = async () => { get(b) }\nconst h = () => { get(c) }\n"
    done = edit_of("typescript", [(example, example.replace("get(a)", "await get(a)"))], text)
    assert done.applied(text) == text.replace("get(b)", "await get(b)")
    assert reasons(done) == ["the edit adds `await`, and the function here is not async"]


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("python", "async def f():\n    old(await g(a))\n", "old(b)\n"),
        ("javascript", "async function f() { old(await g(a)); }\n", "old(b);\n"),
        ("rust", "fn f() -> Result<A, B> { old(g(a)?); }\n", "fn h() { old(b); }\n"),
        ("csharp", "class A { async Task F() { Old(await G(a)); } }\n", "class A { void H() { Old(b); } }\n"),
    ],
)
def test_what_the_example_has_on_both_sides_asks_nothing_of_a_place(language: str, before: str, text: str) -> None:
    after = before.replace("old(", "young(").replace("Old(", "Young(")
    done = edit_of(language, [(before, after)], text)
    assert done.applied(text) == text.replace("old(", "young(").replace("Old(", "Young(")


def test_break_goes_into_loops_alone() -> None:
    example = "for x in y:\n    leave(1)\n"
    text = "for a in b:\n    leave(1)\nif c:\n    leave(1)\n"
    done = edit_of("python", [(example, example.replace("leave(1)", "break"))], text)
    assert done.applied(text) == "for a in b:\n    break\nif c:\n    leave(1)\n"
    assert reasons(done) == ["the edit adds `break`, and there is no loop here"]


def test_a_member_that_was_assigned_to_is_not_edited_where_it_is_read() -> None:
    text = "c.innerHTML = d;\ne(f.innerHTML);\n"
    example = "function f(a) { a.innerHTML = b; }"
    done = edit_of("javascript", [(example, example.replace("innerHTML", "textContent"))], text)
    assert done.applied(text) == "c.textContent = d;\ne(f.innerHTML);\n"
    assert reasons(done) == ["it is read here, and assigned to in the example"]
    assert repeated("javascript", "this.a = b;", "this.c = b;", "d(this.a);") == "d(this.c);"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("typescript", "[a!.b] = c;\n"),
        ("typescript", "({ d: a!.b } = c);\n"),
        ("javascript", "[...a.b] = c;\n"),
        ("javascript", "for (a.b of c) {}\n"),
        ("python", "for a.b in c:\n    pass\n"),
        ("go", "package p\n\nfunc f() {\n\tfor a.b = range c {\n\t}\n}\n"),
    ],
)
def test_a_target_among_others_or_of_a_loop_is_assigned_to(language: str, text: str) -> None:
    head = "package p\n\nfunc k() {\n\t" if language == "go" else ""
    old, new = ("foo!.b", "foo?.b") if language == "typescript" else ("foo.b", "foo.b()")
    examples = [
        (f"{head}x = {side[0]}", f"{head}x = {side[1]}")
        for side in ((old, new), (old.replace("foo", "q"), new.replace("foo", "q")))
    ]
    end = "\n}\n" if language == "go" else "\n"
    done = edit_of(language, [(one + end, other + end) for one, other in examples], text)
    assert done.applied(text) == text
    assert reasons(done) == ["it is assigned to here, and read in the example"]


def test_super_is_not_made_a_value() -> None:
    text = "class A extends B { f(k) { return super.has(k) || this.all.has(k); } }\n"
    done = edit_of("javascript", [("x.has(k);", "own(x, k);")], text)
    assert done.applied(text) == text.replace("this.all.has(k)", "own(this.all, k)")
    assert reasons(done) == ["`super` is no value"]


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "expected"),
    [
        ("javascript", "pow(a, b)", "a ** b", "-pow(x, 2)", "-(x ** 2)"),
        ("javascript", "pow(a, b)", "a ** b", "pow(-x, 2)", "(-x) ** 2"),
        ("javascript", "pow(a, b)", "a ** b", "pow(pow(x, 2), 3)", "(x ** 2) ** 3"),
        ("javascript", "pow(a, b)", "a ** b", "2 * pow(x, -1)", "2 * x ** -1"),
        ("python", "power(a, b)", "a ** b", "-power(-x, -y)", "-(-x) ** -y"),
        (
            "rust",
            "fn f() { own(a); }",
            "fn f() { a.own(); }",
            "fn g() { own(&x[1..]); }",
            "fn g() { (&x[1..]).own(); }",
        ),
        ("typescript", "let a: List<B>", "let a: B[]", "let c: List<D | E>", "let c: (D | E)[]"),
        ("javascript", "f(old(a))", "f((b) => a.c(b))", "x = old(y)", "x = (b) => y.c(b)"),
        ("javascript", "f(old(a))", "f((b) => a.c(b))", "x ||= old(y)", "x ||= (b) => y.c(b)"),
        ("javascript", "f(old(a))", "f((b) => a.c(b))", "x = old(y) || z", "x = ((b) => y.c(b)) || z"),
        (
            "php",
            "<?php f(old($a));",
            "<?php f(fn ($b) => $a->c($b));",
            "<?php $x = old($y);",
            "<?php $x = fn ($b) => $y->c($b);",
        ),
    ],
)
def test_parentheses_keep_the_meaning(language: str, before: str, after: str, text: str, expected: str) -> None:
    assert repeated(language, before, after, text) == expected


def test_the_parameter_of_a_lambda_may_have_any_name() -> None:
    text = "later((done) => wait(done, 5))"
    assert repeated("javascript", "later((next) => wait(next, 9))", "sleep(9)", text) == "sleep(5)"


def test_what_only_looks_like_a_place_is_listed() -> None:
    text = "class A { void f() { e.print(); problem.print(out); log.save(e.print()); } }"
    done = edit_of("java", [("class B { void f(T e) { e.print(); } }", "class B { void f(T e) { e.show(); } }")], text)
    assert len(done.places) + len(done.left_out) == 3


def test_a_builtin_that_a_parameter_hides_is_left_out() -> None:
    text = "function f(parseInt) { return parseInt(a); }"
    done = edit_of("javascript", [("parseInt(b);", "parseInt(b, 10);")], text)
    assert not done.edits
    assert reasons(done) == ["`parseInt` is a parameter here"]


def test_a_name_that_the_edit_binds_captures_none_of_the_place() -> None:
    text = "def f(x, ys):\n    return list(map(lambda y: y + x, ys)), list(map(g, ys))\n"
    done = edit_of("python", [("list(map(g, xs))\n", "[g(x) for x in xs]\n")], text)
    assert done.applied(text) == text.replace("list(map(g, ys))", "[g(x) for x in ys]")
    assert reasons(done) == ["`x`, which the edit binds, is used here"]


def test_a_comparison_beside_a_comparison_gets_parentheses() -> None:
    assert repeated("python", "d.has_key(k)\n", "k in d\n", "e.has_key(a) == b\n") == "(a in e) == b\n"


def test_several_values_after_a_percent_sign_do_not_become_one_argument() -> None:
    text = 'log.info("%s %s" % (a, b))\nlog.info("%s" % c)\n'
    done = edit_of("python", [('log.info("x %s" % y)\n', 'log.info("x %s", y)\n')], text)
    assert done.applied(text) == text.replace('"%s" % c', '"%s", c')
    assert reasons(done) == ["the tuple here is several values"]


def test_a_call_that_goes_away_stays_where_an_operator_needs_its_result() -> None:
    text = 'log(f"a {str(b)}")\nlog("a " + str(b))\nlog(str(b))\n'
    done = edit_of("python", [('log(f"c {str(d)}")\n', 'log(f"c {d}")\n')], text)
    assert done.applied(text) == text.replace("{str(b)}", "{b}")
    assert reasons(done) == [
        "it is an operand here, and a part of a string in the example",
        "it is a value here, and a part of a string in the example",
    ]


def test_with_an_example_of_each_use_a_call_goes_away_in_both_and_is_listed_elsewhere() -> None:
    text = 'x = f"{str(b)}"\nf(str(b))\n"a " + str(b)\n' + 'f"{str(b)!r}{str(b):>9}{str(b)=}"\n'
    examples = [('log(f"c {str(d)}")\n', 'log(f"c {d}")\n'), ("log(str(d))\n", "log(d)\n")]
    done = edit_of("python", examples, text)
    assert done.applied(text) == text.replace('"{str(b)}"', '"{b}"').replace("f(str(b))", "f(b)")
    uses = "a part of a string or a value in the example"
    assert reasons(done) == [f"it is an operand here, and {uses}", *[f"it is formatted here, and {uses}"] * 3]


def test_what_is_in_a_macro_of_c_is_listed() -> None:
    text = "#define TWICE(b) old(b) + old(b)\nint g() { return old(1); }\n"
    done = edit_of("c", [("int f() { return old(a); }", "int f() { return fresh(a); }")], text)
    assert "return fresh(1)" in done.applied(text)
    assert reasons(done) == ["it is inside of a macro, whose tokens have no syntax"]


def test_a_second_example_shows_that_the_other_function_takes_a_keyword() -> None:
    start = "import old, new\n"
    examples = [(f"{start}old.get({call})\n", f"{start}new.get({call})\n") for call in ("a", "a, timeout=1")]
    text = f"{start}old.get(b, timeout=2)\nold.get(b, proxy=3)\n"
    done = edit_of("python", examples, text)
    assert done.applied(text) == f"{start}new.get(b, timeout=2)\nold.get(b, proxy=3)\n"


TSX = "let x = <p><A b={c} /><A b={d}>e</A></p>;\nlet y = <A b={f} />;\n"


def test_a_tag_is_not_renamed_without_its_closing_tag() -> None:
    done = edit_of("tsx", [("let z = <A b={c} />;", "let z = <B b={c} />;")], TSX)
    assert done.applied(TSX) == TSX.replace("<A b={c} />", "<B b={c} />").replace("<A b={f} />", "<B b={f} />")
    assert reasons(done) == ["its closing tag is apart from it"]


def test_an_attribute_is_added_to_tags_of_both_kinds() -> None:
    done = edit_of("tsx", [("let z = <A b={c} />;", "let z = <A b={c} d />;")], TSX)
    assert done.applied(TSX).count(" d />") == 2
    assert "<A b={d} d>e</A>" in done.applied(TSX).replace("d >", "d>")


def test_a_value_does_not_become_a_text_between_tags() -> None:
    text = TSX.replace("{f}", "{c}")
    done = edit_of("tsx", [("let z = <A b={c} />;", "let z = null;")], text)
    assert done.applied(text) == text.replace("let y = <A b={c} />", "let y = null")
    assert reasons(done) == ["it is between tags here, and the edit is a value"]
    done = edit_of("tsx", [("let z = <i><A b={c} /></i>;", "let z = <i>{null}</i>;")], text)
    assert done.applied(text) == text.replace("<p><A b={c} />", "<p>{null}")
    assert reasons(done) == ["it is a value here, and the edit is between tags"]


@pytest.mark.parametrize("language", ["javascript", "typescript", "typescriptreact"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("const f = () => Object.assign({}, a, b);\n", "const f = () => ({...a, ...b});\n"),
        ("Object.assign({}, a, b);\n", "({...a, ...b});\n"),
        ("Object.assign({}, a, b).c();\n", "({...a, ...b}).c();\n"),
        ("d(Object.assign({}, a, b));\n", "d({...a, ...b});\n"),
        ("const f = () => (Object.assign({}, a, b));\n", "const f = () => ({...a, ...b});\n"),
    ],
)
def test_an_object_that_would_begin_a_block_gets_parentheses(language: str, text: str, expected: str) -> None:
    assert repeated(language, "x = Object.assign({}, y, z);\n", "x = {...y, ...z};\n", text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("{ c: 1 }", "({ c: 1 })"), ("d, e", "(d, e)"), ("{ f }.g", "({ f }.g)"), ("({})", "({})"), ("[h]", "[h]")],
)
def test_what_becomes_the_body_of_an_arrow_function_stays_a_value(value: str, expected: str) -> None:
    example = ("a(function (b) { return c; });\n", "a((b) => c);\n")
    second = ("a(function (q) { return q + 1; });\n", "a((q) => q + 1);\n")
    text = f"k(function (b) {{ return {value}; }});\n"
    assert edit_of("javascript", [example, second], text).applied(text) == f"k((b) => {expected});\n"
