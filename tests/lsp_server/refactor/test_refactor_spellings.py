"""One example of another spelling of the same is meant wherever it fits."""

import pytest
from support.refactor_case import reasons, sure_edit

ACCESS = [
    ("php", "<?php class A { function f() { g(); } }", "<?php class A { public function f() { g(); } }",
     "<?php class B { function h($x) {} private function i() {} } interface I { function j(); } function k() {}",
     "<?php class B { public function h($x) {} private function i() {} } interface I { public function j(); }"
     " function k() {}"),
    ("typescript", "class A { public f() { g(); } }", "class A { f() { g(); } }",
     "class B { public h(x) {} private i() {} constructor(public x) {} }",
     "class B { h(x) {} private i() {} constructor(public x) {} }"),
    ("kotlin", "class A { public fun f() { g() } }", "class A { fun f() { g() } }",
     "class B { public fun h(x: Int) { }\n public override fun i() {}\n internal fun j() {} }",
     "class B { fun h(x: Int) { }\n public override fun i() {}\n internal fun j() {} }"),
    ("csharp", "class A { private void F() { G(); } }", "class A { void F() { G(); } }",
     "class B { private static int H(int x) => 1; private protected void I() {} public void J() {} }",
     "class B { static int H(int x) => 1; private protected void I() {} public void J() {} }"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "after", "text", "edited"), ACCESS, ids=[one[0] for one in ACCESS])
def test_a_member_is_as_visible_with_the_modifier_as_without(
    language: str, before: str, after: str, text: str, edited: str
) -> None:
    assert sure_edit(language, text, (before, after)).applied(text) == edited


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("java", "class A { void f() { g(); } }", "class A { public void f() { g(); } }", "class B { void h() {} }"),
        ("php", "<?php class A { function f() { g(); } }", "<?php class A { private function f() { g(); } }",
         "<?php class B { function h() {} }"),
        ("typescript", "class A { private f() { g(); } }", "class A { f() { g(); } }", "class B { private h() {} }"),
        ("csharp", "class A { void F() { G(); } }", "class A { public void F() { G(); } }", "class B { void H() {} }"),
    ],
)  # fmt: skip
def test_another_modifier_is_meant_for_its_method_alone(language: str, before: str, after: str, text: str) -> None:
    assert sure_edit(language, text, (before, after)).applied(text) == text


def test_a_parameter_of_php_whose_default_is_null_may_be_null() -> None:
    text = (
        "<?php class B { function h(int $a = null, Box $b = NULL, $c = null, string $d = '') {} }\n"
        "function k(?A $e = null, A|B $f = null, mixed $g = null) {}\n$l = fn(array $h = null) => 1;\n"
    )
    edited = (
        "<?php class B { function h(?int $a = null, ?Box $b = NULL, $c = null, string $d = '') {} }\n"
        "function k(?A $e = null, A|B $f = null, mixed $g = null) {}\n$l = fn(?array $h = null) => 1;\n"
    )
    example = ("<?php function f(string $a = null) { g(); }", "<?php function f(?string $a = null) { g(); }")
    assert sure_edit("php", text, example).applied(text) == edited


CASE = "<?php class A extends TestCase { /** @dataProvider rows */ function testA() {} %s { return [[1]]; } }"


def test_all_that_hand_data_to_tests_become_static_but_what_needs_its_object() -> None:
    text = """<?php class B extends TestCase {
    /** @dataProvider getB */
    public function testB($x) {}
    public function getB() { return [[1]]; }
    #[DataProvider('getC')]
    public function testC($x) {}
    public function getC(): iterable { yield $this->x(); }
    #[DataProvider('getD')]
    public function testD($x) {}
    public function getD(): iterable { yield [1]; }
    public function getE() { return [[1]]; }
}
"""
    done = sure_edit("php", text, (CASE % "public function rows()", CASE % "public static function rows()"))
    edited = text.replace("function getB", "static function getB").replace("function getD", "static function getD")
    assert done.applied(text) == edited
    assert set(reasons(done)) == {"wide: only `public function` is as in the example"}


def test_all_fixtures_of_a_test_return_nothing() -> None:
    text = "<?php class B extends T { protected function tearDown() { f(); } protected function up() { f(); } }"
    before = "<?php class A extends T { protected function setUp() { g(); } }"
    edited = text.replace("tearDown()", "tearDown(): void")
    assert sure_edit("php", text, (before, before.replace("setUp()", "setUp(): void"))).applied(text) == edited


@pytest.mark.parametrize("macro", ["TANK_NULL", "Q_NULLPTR"])
def test_a_macro_for_the_null_pointer_goes_but_where_the_preprocessor_asks_for_it(macro: str) -> None:
    text = f"#define {macro} nullptr\n#ifdef {macro}\nvoid g() {{ if (a == {macro}) h({macro}); }}\n#endif\n"
    example = (f"void f() {{ open(a, {macro}); }}\n", "void f() { open(a, nullptr); }\n")
    done = sure_edit("cpp", text, example)
    assert done.applied(text) == text.replace(f"== {macro}", "== nullptr").replace(f"h({macro}", "h(nullptr")
    assert reasons(done) == ["the preprocessor asks for it here"] * 2


def test_another_macro_is_meant_for_its_call_alone() -> None:
    text = "void g() { if (a == TANK_FLAG) h(TANK_FLAG); }\n"
    example = ("void f() { open(a, TANK_FLAG); }\n", "void f() { open(a, nullptr); }\n")
    assert sure_edit("cpp", text, example).applied(text) == text


@pytest.mark.parametrize("line", ["#if defined(__cplusplus)", "#ifdef __cplusplus", "#ifndef __cplusplus"])
def test_a_file_that_c_reads_too_keeps_its_null_pointer(line: str) -> None:
    example = ("void f() { open(a, NULL); }\n", "void f() { open(a, nullptr); }\n")
    text = f"{line}\n#endif\nvoid g() {{ open(b, NULL); }}\n"
    assert sure_edit("cpp", text, example).applied(text) == text


def test_a_file_that_asks_for_the_version_of_cpp_is_none_of_c() -> None:
    example = ("void f() { open(a, NULL); }\n", "void f() { open(a, nullptr); }\n")
    text = "#if __cplusplus >= 201103L\n#endif\nvoid g() { open(b, NULL); }\n"
    assert sure_edit("cpp", text, example).applied(text) == text.replace("NULL", "nullptr")


SUPER = (
    "class A(B):\n    def f(self):\n        super(A, self).f()\n",
    "class A(B):\n    def f(self):\n        super().f()\n",
)


@pytest.mark.parametrize("head", ["def g(self):", "def g(self, a):", 'def g(self: "C"):', "async def g(self):"])
def test_super_without_arguments_means_the_same_in_each_method(head: str) -> None:
    text = f"class C(D):\n    {head}\n        return super(C, self).g(1)\n"
    assert sure_edit("python", text, SUPER).applied(text) == text.replace("C, self).g", ").g")


@pytest.mark.parametrize(
    "body",
    ["super(D, self).g()", "[super(C, self).g() for a in b]", "lambda self: super(C, self).g()"],
)
def test_another_super_keeps_its_arguments(body: str) -> None:
    text = f"class C(D):\n    def g(self, other):\n        return {body}\n"
    edit = sure_edit("python", text, SUPER)
    assert edit.applied(text) == text
    assert reasons(edit) == ["`super()` would be another one here"]


def test_what_is_set_or_something_else_is_written_shorter_everywhere() -> None:
    example = ("<?php\n$x = isset($y) ? $y : $z;\n", "<?php\n$x = $y ?? $z;\n")
    text = '<?php\nf(isset($a["b"]) ? $a["b"] : null);\n$c = isset($d) ? $e : $f;\n'
    assert sure_edit("php", text, example).applied(text) == text.replace(
        'isset($a["b"]) ? $a["b"] : null', '$a["b"] ?? null'
    )


UNDEFINED = [
    ("interface A {{\n  {}\n}}\n", "type B = {{\n  {}\n  f(): void;\n}};\n"),
    ("class A {{\n  {}\n}}\n", "class B {{\n  {}\n  f() {{}}\n}}\n"),
    ("function f({}) {{}}\n", "const g = ({}) => 1;\n"),
]


@pytest.mark.parametrize(("before", "form"), UNDEFINED)
@pytest.mark.parametrize("language", ["typescript", "typescriptreact"])
def test_what_may_be_missing_may_be_undefined(language: str, before: str, form: str) -> None:
    end = "" if "(" in before.partition("{}")[0] else ";"
    example = before.format(f"a?: Tank{end}"), before.format(f"a?: Tank | undefined{end}")
    for kind in ("Tank", "string[]", "Map<string, A>", "A | B"):
        text = form.format(f"b?: {kind}{end}")
        assert sure_edit(language, text, example).applied(text) == form.format(f"b?: {kind} | undefined{end}")
    for kind, why in (
        ("A | undefined", []),
        ("undefined | A", ["it may be undefined already"]),
        ("any", ["it may be undefined already"]),
        ("() => A", ["its type would need parentheses"]),
    ):
        edit = sure_edit(language, form.format(f"b?: {kind}{end}"), example)
        assert not edit.edits
        assert reasons(edit) == why
    text = form.format(f"b: Tank{end}")
    assert sure_edit(language, text, example).applied(text) == text


def test_what_may_be_undefined_is_said_in_the_folder_of_the_example() -> None:
    example, text = ("type A = { a?: T };\n", "type A = { a?: T | undefined };\n"), "type B = { b?: T };\n"
    for path, is_meant in (("api/a.ts", True), ("api/b/a.ts", True), ("tests/a.ts", False)):
        edit = sure_edit("typescript", text, example, paths=("api/index.ts", path))
        assert bool(edit.edits) is is_meant
