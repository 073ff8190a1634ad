"""What a rule is made of: one example gives the narrowest useful one, a second one widens it as far as both need."""

# ruff: noqa: E501  a file a line

import pytest
from support.refactor_case import repeated, rules_of, sure_edit

from lsp_server.documents.edits import RecentEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example, NoRule
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import described, explicit_rules, rules_of_code, with_contexts
from lsp_server.refactor.recent import recent_places

TEXTS = [
    ("python", "a: Optional[int] = 1\nb = Optional[int]\n", "Optional[int]", "Option[int]"),
    ("rust", "fn f(a: old::Thing) {}\nfn g() { let x = old::Thing::make(); h(old::Thing { a: 1 }) }\n",
     "old::Thing", "fresh::Thing"),
    ("rust", "fn g() { h(old::Thing) }\nfn f(a: old::Thing) -> old::Thing { a }\n", "old::Thing", "fresh::Thing"),
    ("go", "package p\n\nfunc f(a old.Thing) {\n\tx := old.Thing{}\n\ty := old.Thing(x)\n}\n", "old.Thing", "fresh.Thing"),
    ("go", "package p\n\nfunc f() {\n\ty := old.Thing\n}\n\nfunc g(a old.Thing, b []old.Thing) {}\n",
     "old.Thing", "fresh.Thing"),
    ("typescript", "let a: Old.Thing = b;\nnew Old.Thing();\nfunction f(c: Array<Old.Thing>) {}\n", "Old.Thing", "Fresh.Thing"),
    ("typescript", "let a = Old.Thing;\nlet b: Old.Thing = a;\n", "Old.Thing", "Fresh.Thing"),
    ("csharp", "class A { Old.Thing a; void F(Old.Thing b) { var c = Old.Thing.Make(); } }\n", "Old.Thing", "Fresh.Thing"),
    ("kotlin", "val a: Old.Thing = 1\nfun f(b: Old.Thing) { val c = Old.Thing }\n", "Old.Thing", "Fresh.Thing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("language", "before", "after", "rule"),
    [
        ("python", "foo(a)", "foo(a, timeout=3)", "foo($$R0_0) → foo($$R0_0, timeout=3)"),
        ("python", "foo(a, b)", "foo(ctx, a, b)", "foo($$R0_0) → foo(ctx, $$R0_0)"),
        ("python", "emit(name, door)", "emit(door, name)", "emit($X0, $X1) → emit($X1, $X0)"),
        ("python", "foo(a, True)", "foo(a, flag=True)", "foo($X0, $X1) → foo($X0, flag=$X1)"),
        ("python", "list(d.keys())", "list(d)", "$X0.keys() → $X0"),
        ("python", "str(f(x))", "f(x)", "str($X0) → $X0"),
        ("python", "self.assertEqual(a, b)", "assert a == b", "self.assertEqual($X0, $X1) → assert $X0 == $X1"),
        ("python", "x == None", "x is None", "$X0 == None → $X0 is None"),
        ("python", "if not a in b: pass", "if a not in b: pass", "not $X0 in $X1 → $X0 not in $X1"),
        ("go", 'errors.Wrap(err, "m")', 'fmt.Errorf("m: %w", err)',
         'errors.Wrap($X0, "$S0") → fmt.Errorf("$S0: %w", $X0)'),
        ("go", "foo(a)", "foo(a, b)", "foo($X0) → foo($X0, b)"),
        ("typescript", "a.b !== null && a.b !== undefined", "a.b != null",
         "$X0 !== null && $X0 !== undefined → $X0 != null"),
        ("rust", "let x = foo(a).unwrap();", "let x = foo(a)?;", "$X0.unwrap() → $X0?"),
        ("java", "class A { void f() { log.warn(x); } }", "class A { void f() { log.warning(x); } }",
         "log.warn($$R0_0) → log.warning($$R0_0)"),
        ("ruby", "x = foo(a)\n", "x = foo(a, limit: 3)\n", "foo($$R0_0) → foo($$R0_0, limit: 3)"),
        ("c", "int f() { return old(a, 1); }", "int f() { return fresh(a, 1); }", "old($$R0_0) → fresh($$R0_0)"),
    ],
)  # fmt: skip
def test_one_example_keeps_names_and_lets_arguments_and_operands_vary(
    language: str, before: str, after: str, rule: str
) -> None:
    assert rules_of(language, (before, after)) == [rule]


def test_a_literal_stays_unless_it_is_carried_over() -> None:
    assert rules_of("python", ("get(u, verify=False)", "get(u)")) == [
        "get($$R0_0, verify=False$$R0_end) → get($$R0_0$$R0_end)"
    ]
    assert rules_of("python", ('f(x, "a")', 'g("a", x)')) == ["f($X0, $X1) → g($X1, $X0)"]


def test_a_second_example_widens_the_rule_only_where_they_differ() -> None:
    first, second = ("requests.get(u, timeout=1)", "httpx.get(u, timeout=1)"), ("requests.put(u)", "httpx.put(u)")
    assert rules_of("python", first, second) == ["requests.$V0($$W1) → httpx.$V0($$W1)"]


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("javascript", "x = a && a.b;\n", "x = a?.b;\n"),
        ("typescript", "x = a ? a.b : c;\n", "x = a?.b ?? c;\n"),
        ("python", "x = a.b if a else c\n", "x = pick(a).b or c\n"),
    ],
)
def test_a_name_is_the_same_wherever_the_pattern_has_it(language: str, before: str, after: str) -> None:
    other = before.replace("a.b", "q.b")
    assert repeated(language, before, after, other) == other
    second = (before.replace("a", "d").replace(".b", ".e"), after.replace("a", "d").replace(".b", ".e"))
    text = before.replace("a", "f").replace(".b", ".g")
    assert sure_edit(language, text, (before, after), second).applied(text) == after.replace("a", "f").replace(
        ".b", ".g"
    )


@pytest.mark.parametrize(
    ("language", "before", "after", "rule"),
    [
        ("python", "f(f, x)", "f(x, f)", "f(f, $X0) → f($X0, f)"),
        ("python", "isinstance(a, Foo) and Foo(a)", "Foo.cast(a)", "isinstance($X0, Foo) and Foo($X0) → Foo.cast($X0)"),
        ("cpp", "void f() { ptr<A> x(new A(b)); }", "void f() { auto x = make<A>(b); }",
         "ptr<A> $X0(new A($X1)) → auto $X0 = make<A>($X1)"),
        ("java", "class Q { void f() { Old<A> x = new Old<A>(y); } }", "class Q { void f() { var x = Old.of(A.class, y); } }",
         "Old<$X0> $X1 = new Old<$X0>($X2) → var $X1 = Old.of($X0.class, $X2)"),
    ],
)  # fmt: skip
def test_what_is_called_stays_as_an_argument_too(language: str, before: str, after: str, rule: str) -> None:
    assert rules_of(language, (before, after)) == [rule]


def test_two_examples_make_a_type_vary_together_with_what_is_made_of_it() -> None:
    before, after = "void f() {{ ptr<{0}> x(new {0}(b)); }}", "void f() {{ auto x = make<{0}>(b); }}"
    first, second = (tuple(side.format(name) for side in (before, after)) for name in ("A", "B"))
    text = "void f() { ptr<C> x(new C(b)); ptr<D> y(new E(b)); own<C> z(new C(b)); }"
    changed = text.replace("ptr<C> x(new C(b))", "auto x = make<C>(b)")
    assert sure_edit("cpp", text, (first[0], first[1]), (second[0], second[1])).applied(text) == changed


@pytest.mark.parametrize(
    ("language", "before", "after", "rule"),
    [
        ("typescript", "x = a.b;", "x = (a as C).b;", "$X0.b → ($X0 as C).b"),
        ("python", "x = a.b", "x = (a or c).b", "$X0.b → ($X0 or c).b"),
        ("rust", "fn f() { a.b(); }", "fn f() { (&a).b(); }", "$X0.b($$R0_all) → (&$X0).b($$R0_all)"),
        ("java", "class A { void f() { a.b(); } }", "class A { void f() { ((C) a).b(); } }",
         "$X0.b($$R0_all) → ((C) $X0).b($$R0_all)"),
        ("go", "package p\nfunc f() { a.b() }", "package p\nfunc f() { (*a).b() }", "$X0.b($$R0_all) → (*$X0).b($$R0_all)"),
    ],
)  # fmt: skip
def test_a_member_stays_behind_parentheses_that_its_receiver_gets(
    language: str, before: str, after: str, rule: str
) -> None:
    assert rules_of(language, (before, after)) == [rule]


def test_examples_without_a_common_rule_make_two() -> None:
    equal, true = ("self.assertEqual(a, b)", "assert a == b"), ("self.assertTrue(a)", "assert a")
    assert len(rules_of("python", equal, true)) == 2


def test_a_callee_does_not_vary_if_the_edit_drops_it() -> None:
    assert len(rules_of("python", ("self.assertTrue(a)", "assert a"), ("self.assert_(b)", "assert b"))) == 2


def test_a_pattern_that_fits_everywhere_is_all_constant() -> None:
    assert rules_of("go", ("if a { return err }", "if a { return wrap(err) }")) == ["return err → return wrap(err)"]
    assert rules_of("python", ("DEBUG = True", "DEBUG = False")) == ["DEBUG = True → DEBUG = False"]


@pytest.mark.parametrize(
    ("language", "text", "others"),
    [
        ("python", "def f(a=1): pass\n", "def g(b=1): pass\n"),
        ("python", "def f(a=None): pass\n", "def g(b=None): pass\n"),
        ("python", "def f(a: int = 1): pass\n", "def g(b: int = 1): pass\n"),
        ("python", "a: int = 1\n", "b: int = 1\n"),
        ("python", "a == 1\n", "b == 1\nc[1]\nd + 1\n"),
        ("python", "a[1]\n", "b[1]\n"),
        ("javascript", "function f(a = 1) {}\n", "function g(b = 1) {}\n"),
        ("typescript", "let a = null;\n", "let b = null;\n"),
        ("go", "package p\n\nfunc f() { a := 1 }\n", "func g() { b := 1 }\nvar a, b = 1, 1\n"),
        ("java", "class A { int a = 1; }\n", "class B { int b = 1; void f() { long c = 1; } }\n"),
        ("rust", "fn f() { let a = 1; }\n", "fn g() { let b = 1; }\n"),
        ("kotlin", "fun f(a: Int = 1) {}\n", "fun g(b: Int = 1) {}\n"),
        ("php", "<?php\n$a = 1;\n", "$b = 1;\n"),
        ("ruby", "def f(a = 1)\nend\n", "b = 1\n"),
        ("toml", "a = 1\n", "b = 1\n"),
        ("json", '{"a": 1,\n', '"b": 1}\n'),
    ],
)
def test_another_literal_for_a_name_says_nothing_of_other_names(language: str, text: str, others: str) -> None:
    value = "null" if "null" in text else "None" if "None" in text else "1"
    example = (text, text.replace(value, "2")) if language != "json" else ('{"a": 1}', '{"a": 2}')
    twice = text + (others if language == "json" else others + text.removeprefix("<?php\n").removeprefix("package p\n"))
    done = repeated(language, *example, twice)
    assert done.count("2") == (1 if language == "json" else 2)
    assert others in done


def test_a_number_alone_says_nothing_unless_it_is_what_to_look_for() -> None:
    yaml = language_for("yaml", "")
    with pytest.raises(NoRule, match="too small"):
        learn([Example("port: 1\n", "port: 2\n")], yaml)
    text = "port: 1\nhosts: 1\n"
    assert rewrite(rules_of_code(Example("1", "2"), yaml), "a.yaml", text, yaml).applied(text) == text.replace("1", "2")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("foo(a)", "foo(a)", "both sides of the example are equal"),
        ("foo(a)  # b\n", "foo(a)\n", "only comments or white space changed"),
        ("foo(a)\n", "foo(a)\nbar(b)\n", "statements that are only added say nothing"),
        ("foo(a", "foo(a, b)", "the example has syntax errors in python"),
    ],
)
def test_an_example_without_a_rule_says_why(before: str, after: str, reason: str) -> None:
    with pytest.raises(NoRule, match=reason):
        learn([Example(before, after)], language_for("python", ""))


def test_code_with_variables_is_a_rule_as_it_stands() -> None:
    python = language_for("python", "")
    rules = explicit_rules(Example("with self.assertRaises($E):\n    $$BODY", "with raises($E):\n    $$BODY"), python)
    assert described(rules.rules[0]) == "with self.assertRaises($E): $$BODY → with raises($E): $$BODY"
    text = "def f():\n\twith self.assertRaises(A):\n\t\ta()\n\t\tb()\n"
    assert rewrite(rules, "x.py", text, python).applied(text) == text.replace("self.assertRaises", "raises")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("foo($A)", "foo($B)", r"\$B is only in the code after the edit"),
        ("$A", "foo($A)", "fits nearly everywhere"),
        ("foo($A", "bar($A)", "syntax errors in python"),
    ],
)
def test_wrong_code_with_variables_says_what_is_wrong(before: str, after: str, reason: str) -> None:
    with pytest.raises(NoRule, match=reason):
        explicit_rules(Example(before, after), language_for("python", ""))


def test_a_name_like_test_varies_behind_its_prefix() -> None:
    before = "async def test_a(q):\n    pass\n"
    text = "async def test_b(r):\n    go()\n\n\nasync def other(r):\n    go()\n"
    marked = repeated("python", before, "@mark\n" + before, text)
    assert marked == "@mark\nasync def test_b(r):\n    go()\n\n\nasync def other(r):\n    go()\n"


@pytest.mark.parametrize(("name", "text", "old", "new"), TEXTS)
def test_a_learned_rule_fits_in_every_context(name: str, text: str, old: str, new: str) -> None:
    language = language_for(name, "")
    after = text.replace(old, new, 1)
    rules = with_contexts(learn([Example(text, after)], language), language)
    assert rewrite(rules, "file", after, language).applied(after) == text.replace(old, new)


@pytest.mark.parametrize(("name", "text", "old", "new"), TEXTS)
def test_the_next_edit_after_typing_is_in_every_context(name: str, text: str, old: str, new: str) -> None:
    after, start = text.replace(old, new, 1), text.index(old)
    found = recent_places([RecentEdit(text, after, start, start + len(old), start + len(new), 1)], name, "file")
    assert found is not None
    assert found.found.edit.applied(after) == text.replace(old, new)


def test_another_member_is_listed_in_both_contexts() -> None:
    text = "fn g() { h(old::Thing); h(old::make(1)) }\nfn f(a: old::Other) {}\n"
    language = language_for("rust", "")
    after = text.replace("old::Thing", "fresh::Thing")
    rules = with_contexts(learn([Example(text, after)], language), language)
    done = rewrite(rules, "file", after, language)
    assert not done.edits
    assert [one.phrase for one in done.left_out] == [
        "wide: only `old` is as in the example",
        "its member is another one than in the example",
    ]


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "changed"),
    [
        ("javascript",
         "async t => {\n  try {\n    await run(1);\n    t.fail('no');\n  } catch (e) {\n    t.is(e.code, 2);\n  }\n};\n",
         "async t => {\n  const e = await t.throws(run(1));\n  t.is(e.code, 2);\n};\n",
         "async t => {\n  try {\n    await go(3);\n    t.fail('no');\n  } catch (f) {\n    show(f);\n    t.ok(f.text);\n  }\n};\n",
         "async t => {\n  const f = await t.throws(go(3));\n  show(f);\n  t.ok(f.text);\n};\n"),
        ("python", "with guarded(lock):\n    read(1)\n", "read(1)\n",
         "with guarded(lock):\n    x = 2\n    write(x)\n", "x = 2\nwrite(x)\n"),
        ("java", "class A {\n    void f() {\n        if (Flags.OLD) {\n            read(1);\n        }\n    }\n}\n",
         "class A {\n    void f() {\n        read(1);\n    }\n}\n",
         "class B {\n    void g() {\n        if (Flags.OLD) {\n            int x = 2;\n            write(x);\n        }\n    }\n}\n",
         "class B {\n    void g() {\n        int x = 2;\n        write(x);\n    }\n}\n"),
    ],
)  # fmt: skip
def test_statements_that_leave_their_body_are_any(
    language: str, before: str, after: str, text: str, changed: str
) -> None:
    assert repeated(language, before, after, text) == changed


COMPARED = {
    "go": ("package p\n\nfunc f() {{ {} }}\n", "assert.Equal(t, {}, {})", "assert.False(t, a)"),
    "python": ("class T:\n    def t(self):\n        {}\n", "self.assertEqual({}, {})", "self.assertFalse(a)"),
    "javascript": ("{};\n", "t.equal({}, {})", "t.notOk(a)"),
    "java": ("class A {{ void f() {{ {}; }} }}\n", "assertEquals({}, {})", "assertFalse(a)"),
    "php": ("<?php\n$this->{};\n", "assertSame({}, {})", "assertFalse(a)"),
}


@pytest.mark.parametrize("language", COMPARED)
@pytest.mark.parametrize("is_turned", [False, True])
def test_what_is_compared_may_be_in_the_other_order(language: str, is_turned: bool) -> None:
    form, old, new = COMPARED[language]
    false = "False" if language == "python" else "false"
    orders = [("a", false), (false, "a")]
    one, other = (form.format(old.format(*order)) for order in (reversed(orders) if is_turned else orders))
    assert repeated(language, one, form.format(new), other) == form.format(new)
    third = form.format(old.format("3", "a"))
    assert repeated(language, one, form.format(new), third) == third


def test_what_another_function_takes_has_its_order() -> None:
    assert repeated("javascript", "send(a, false);\n", "stop(a);\n", "send(false, b);\n") == "send(false, b);\n"
