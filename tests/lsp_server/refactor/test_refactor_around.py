"""The class, the namespace and the bounds around a place say whether it is meant."""

import pytest
from support.refactor_case import doubts, reasons, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import with_contexts

SELF_RUST = """impl Tank {
    fn new() -> Tank { Tank { size: 1 } }
    fn of(other: &Tank) -> Vec<Tank> { fn inner() -> Tank { todo!() } vec![inner()] }
}
struct Tank { size: u8 }
impl From<Tank> for u8 { fn from(tank: Tank) -> u8 { tank.size } }
impl Copy for Tank { fn copy(&self) -> Tank { *self } }
fn out(tank: Tank) {}
"""


def edited(language: str, text: str, old: str, new: str) -> tuple[str, FileEdit]:
    """Return a text whose first `old` a person made `new`, after the edit of the other sure places, and that edit."""
    first = text.replace(old, new, 1)
    done = sure_edit(language, first, (text, first))
    return done.applied(first), done


def test_self_of_rust_is_its_type_only_where_methods_of_it_are() -> None:
    text, _ = edited("rust", SELF_RUST, "-> Tank", "-> Self")
    assert text == (
        SELF_RUST.replace("new() -> Tank { Tank {", "new() -> Self { Tank {")
        .replace("of(other: &Tank) -> Vec<Tank>", "of(other: &Self) -> Vec<Self>")
        .replace("copy(&self) -> Tank", "copy(&self) -> Self")
    )


@pytest.mark.parametrize(
    ("language", "text", "old", "new"),
    [
        (
            "php",
            "<?php class Tank { function a() { Tank::b(1); Tank::b(2); } }\n"
            "class Pool { function c() { Tank::b(3); } }",
            "Tank::b(",
            "self::b(",
        ),
        (
            "python",
            "class Tank:\n    @classmethod\n    def a(cls):\n        Tank.b(1)\n        Tank.b(2)\n\n"
            "class Pool:\n    @classmethod\n    def c(cls):\n        Tank.b(3)\n",
            "Tank.b(",
            "cls.b(",
        ),
        (
            "rust",
            "impl Tank { fn a() { Tank::b(1); Tank::b(2); } }\nimpl Pool { fn c() { Tank::b(3); } }",
            "Tank::b(",
            "Self::b(",
        ),
    ],
)
def test_the_name_of_a_class_for_itself_is_another_one_in_another_class(
    language: str, text: str, old: str, new: str
) -> None:
    done, edit = edited(language, text, old, new)
    assert done == text.replace(f"{old}1", f"{new}1").replace(f"{old}2", f"{new}2")
    assert reasons(edit) == ["it is not in `Tank` here"]


@pytest.mark.parametrize(
    ("language", "text", "method"),
    [
        (
            "java",
            "class T { A a = new Base() { @Override void run() {} };\n"
            " class B extends Base { @Override void run() {} }\n"
            " class C extends Base implements D { @Override void run() {} }\n"
            " class E extends Other { @Override void run() {} }\n A f = new Other() { @Override void run() {} }; }",
            "@Override void run() {}",
        ),
        (
            "csharp",
            "class B : Base { override void Run() {} }\nclass C : Base, D { override void Run() {} }\n"
            "class E : Other { override void Run() {} }\n",
            "override void Run() {}",
        ),
        (
            "kotlin",
            "class B : Base() {\n override fun run() {}\n}\nclass C : Base(), D {\n override fun run() {}\n}\n"
            "class E : Other() {\n override fun run() {}\n}\n",
            "override fun run() {}",
        ),
        (
            "typescript",
            "class B extends Base { override run() {} }\nclass C extends Base implements D { override run() {} }\n"
            "class E extends Other { override run() {} }\n",
            "override run() {}",
        ),
    ],
)
def test_a_method_that_overrides_goes_only_from_classes_of_the_same_base(language: str, text: str, method: str) -> None:
    done, edit = edited(language, text, method, "")
    assert done.count(method) == text.count("Other")
    assert all("Other" in part[-16:] for part in done.split(method)[:-1])
    assert set(doubts(edit)) == {"it is a method of `Other` here"}


@pytest.mark.parametrize(
    ("language", "text", "old", "new"),
    [
        (
            "cpp",
            "void a() { format(1); format(2); }\nnamespace fmt { void b() { format(3); } }\n",
            "format(",
            "fmt::format(",
        ),
        ("rust", "fn a() { format(1); format(2); }\nmod fmt { fn b() { format(3); } }\n", "format(", "fmt::format("),
        (
            "csharp",
            "class A { void F() { Format(1); Format(2); } }\nclass Fmt { void B() { Format(3); } }\n",
            "Format(",
            "Fmt.Format(",
        ),
        (
            "kotlin",
            "fun a() { format(1)\n format(2) }\nobject Fmt { fun b() { format(3) } }\n",
            "format(",
            "Fmt.format(",
        ),
    ],
)
def test_what_is_inside_of_a_namespace_may_do_without_its_name(language: str, text: str, old: str, new: str) -> None:
    done, edit = edited(language, text, old, new)
    assert done == text.replace(f"{old}1", f"{new}1").replace(f"{old}2", f"{new}2")
    assert doubts(edit) == [f"it is inside of `{new[:3]}` here, which the edit names"]


def test_a_name_that_gets_a_qualifier_is_no_other_name() -> None:
    text = "int f(int x) { switch (x) { case RED: return 1; case BLUE: return 2; } }\nint g() { case RED: return 3; }\n"
    done, _ = edited("cpp", text, "case RED", "case Color::RED")
    assert done == text.replace("case RED", "case Color::RED")


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        (
            "rust",
            "trait Tank { fn size(&self); }\nfn f<T: Tank, U>(t: T, u: U) where U: Other { t.size(); u.size(); }\n"
            "fn g<T>(t: T) where T: Tank { t.size(); }\n",
            "size",
        ),
        (
            "java",
            "interface Tank { int size(); }\n"
            "class A<U extends Other> { <T extends Tank> int f(T t, U u) { return t.size() + u.size(); } }\n",
            "size",
        ),
        (
            "typescript",
            "interface Tank { size(): number; }\n"
            "function f<T extends Tank, U extends Other>(t: T, u: U) { return t.size() + u.size(); }\n",
            "size",
        ),
        (
            "csharp",
            "interface Tank { int Size(); }\n"
            "class A<T, U> where T : Tank where U : Other { int F(T t, U u) { return t.Size() + u.Size(); } }\n",
            "Size",
        ),
    ],
)
def test_a_renamed_method_follows_where_a_bound_says_whose_it_is(language: str, text: str, name: str) -> None:
    done, edit = edited(language, text, name, f"{name}d")
    assert done == text.replace(name, f"{name}d").replace(f"u.{name}d", f"u.{name}")
    assert doubts(edit) == ["its receiver may have another type"]


def test_a_type_without_a_name_that_has_a_renamed_trait_follows() -> None:
    text = "trait Tank { fn size(&self); }\nimpl Tank for &mut [u8] { fn size(&self) {} }\n"
    assert edited("rust", text, "size", "room")[0] == text.replace("size", "room")


@pytest.mark.parametrize(
    ("language", "text", "old", "new"),
    [
        ("cpp", "void f() { eq(text(show(1))); eq(text(show(2))); eq(text(a + b)); }", "text(show(1))", "show(1)"),
        (
            "python",
            "def f():\n    eq(text(show(1)))\n    eq(text(show(2)))\n    eq(text(a + b))\n",
            "text(show(1))",
            "show(1)",
        ),
        (
            "java",
            "class A { void f() { eq(text(show(1))); eq(text(show(2))); eq(text(a + b)); } }",
            "text(show(1))",
            "show(1)",
        ),
        (
            "go",
            "package p\nfunc f() {\n\teq(text(show(1)))\n\teq(text(show(2)))\n\teq(text(a + b))\n}\n",
            "text(show(1))",
            "show(1)",
        ),
    ],
)
def test_an_operation_may_need_what_is_around_it(language: str, text: str, old: str, new: str) -> None:
    done, edit = edited(language, text, old, new)
    assert done == text.replace(old, new).replace("text(show(2))", "show(2)")
    assert doubts(edit) == ["it has an operation where the example has a call"]


def test_the_same_function_of_another_file_has_the_new_result_too() -> None:
    example = ("fn f() { buf.read_all(&mut a).unwrap(); }\n", "fn f() { buf.read_all(&mut a); }\n")
    text = "fn g() { let n = ring.read_all(b).unwrap(); other(b).unwrap(); }\n"
    done = sure_edit("rust", text, example)
    assert done.applied(text) == text.replace("read_all(b).unwrap()", "read_all(b)")


@pytest.mark.parametrize(
    ("language", "body", "new_body", "wrap"),
    [
        (
            "python",
            "buf = bytearray({0})\n    fill(buf)\n    return {1}(buf)",
            "return read_with({0}, {1})",
            "def {2}():\n    {3}\n",
        ),
        (
            "go",
            "buf := alloc({0})\n\tfill(buf)\n\treturn {1}(buf)",
            "return readWith({0}, {1})",
            "package p\nfunc {2}() int {{\n\t{3}\n}}\n",
        ),
        (
            "javascript",
            "const buf = make({0});\n  fill(buf);\n  return {1}(buf);",
            "return readWith({0}, {1});",
            "function {2}() {{\n  {3}\n}}\n",
        ),
        (
            "java",
            "Buf buf = make({0});\n  fill(buf);\n  return {1}.read(buf);",
            "return readWith({0}, {1});",
            "class A {{ int {2}() {{\n  {3}\n}} }}\n",
        ),
    ],
)
def test_what_statements_call_may_be_another_function_if_the_edit_hands_it_over(
    language: str, body: str, new_body: str, wrap: str
) -> None:
    before, after = (wrap.format("", "", "f", one.format("2", "big")) for one in (body, new_body))
    text, edit = (wrap.format("", "", "g", one.format("4", "little")) for one in (body, new_body))
    assert sure_edit(language, text, (before, after)).applied(text) == edit


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        (
            "rust",
            "type A = Box<Tank + 'static>;\n",
            "type A = Box<Tank + Send + 'static>;\n",
            "fn f() { g(Tank::size(a)); }\n",
        ),
        ("typescript", "let a: Tank = b;\n", "let a: Tank | Pool = b;\n", "let c = Tank.size(d);\n"),
    ],
)
def test_several_types_are_no_operation_of_values(language: str, before: str, after: str, text: str) -> None:
    known = language_for(language, "")
    rules = with_contexts(learn([Example(before, after)], known), known)
    assert rewrite(rules, "file", text, known).applied(text) == text


def test_a_name_that_nothing_in_the_file_binds_may_be_known_in_the_module_of_the_example() -> None:
    text = "mod one { fn a() { join_all(1); join_all(2); } }\nmod two { fn b() { join_all(3); } }\n"
    done, edit = edited("rust", text, "join_all(", "join_all(tank, ")
    assert done == text.replace("join_all(1", "join_all(tank, 1").replace("join_all(2", "join_all(tank, 2")
    assert doubts(edit) == ["`tank`, which the edit uses, may be known in the example's module alone"]


TYPED = {
    "go": "package p\nfunc f(tank *Tank) { tank.send(1) }\nfunc g(t *Tank, pool *Pool) { t.send(2); pool.send(3) }\n",
    "typescript": "function f(tank: Tank) { tank.send(1); }\nfunction g(t: Tank, p: Pool) { t.send(2); p.send(3); }\n",
    "rust": "fn f(tank: &Tank) { tank.send(1); }\nfn g(t: &mut Tank, pool: &Pool) { t.send(2); pool.send(3); }\n",
    "python": "def f(tank: Tank):\n    tank.send(1)\n\ndef g(t: Tank, pool: Pool):\n    t.send(2)\n    pool.send(3)\n",
    "php": "<?php function f(Tank $tank) { $tank->send(1); }\n"
    "function g(Tank $t, Pool $pool) { $t->send(2); $pool->send(3); }\n",
    "java": "class A { void f(Tank tank) { tank.send(1); }\n void g(Tank t, Pool p) { t.send(2); p.send(3); } }\n",
}


@pytest.mark.parametrize("language", TYPED)
def test_a_receiver_of_the_type_that_the_example_has_is_meant(language: str) -> None:
    done, edit = edited(language, TYPED[language], "send(1", "post(1")
    assert done == TYPED[language].replace("send(1", "post(1").replace("send(2", "post(2")
    assert doubts(edit) == ["its receiver is another one than in the example, and may have another type"]
