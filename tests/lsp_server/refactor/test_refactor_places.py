"""Which places a rule edits, what it keeps of them, and which it leaves out, and why."""

import pytest
from support.refactor_case import edit_of, reasons, repeated, sure_edit

TIMEOUT = ("foo(a)", "foo(a, timeout=3)")


def test_never_inside_strings_or_comments() -> None:
    text = 'x = "foo(1)"  # foo(2)\n'
    assert repeated("python", *TIMEOUT, text) == text


def test_nested_places_are_all_edited() -> None:
    assert repeated("python", *TIMEOUT, "foo(foo(foo(1)), b)\n") == (
        "foo(foo(foo(1, timeout=3), timeout=3), b, timeout=3)\n"
    )


def test_a_moved_argument_has_its_own_places_edited() -> None:
    assert repeated("python", "emit(a, b)", "emit(b, a)", "emit(emit(1, 2), emit(3, 4))\n") == (
        "emit(emit(4, 3), emit(2, 1))\n"
    )


def test_a_list_of_which_one_element_is_left_is_on_one_line() -> None:
    text = "y = os.path.join(\n    directory,\n    name,\n)\nz = os.path.join(directory,\n                 name)\n"
    assert repeated("python", "os.path.join(a, b)", "Path(a) / b", text) == (
        "y = Path(directory) / name\nz = Path(directory) / name\n"
    )


def test_a_list_with_one_element_a_line_stays_one() -> None:
    assert repeated("python", *TIMEOUT, "foo(\n    a,\n    b,\n)\n") == "foo(\n    a,\n    b,\n    timeout=3,\n)\n"


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "changed"),
    [
        ("php", "<?php\n$a = array('b', 'c');\n", "<?php\n$a = ['b', 'c'];\n",
         "<?php\n$d = new E(array(\n    // f\n    'g' => array(\n        'h',\n    ),\n));\n",
         "<?php\n$d = new E([\n    // f\n    'g' => [\n        'h',\n    ],\n]);\n"),
        ("python", "a = set([b, c])\n", "a = {b, c}\n",
         "d = set([\n    e,\n    f,\n])\n", "d = {\n    e,\n    f,\n}\n"),
        ("javascript", "a = new Array(b, c);\n", "a = [b, c];\n",
         "d = new Array(\n  e,\n  f\n);\n", "d = [\n  e,\n  f\n];\n"),
        ("cpp", "A a = A(b, c);\n", "A a = A{b, c};\n", "A d = A(\n    e,\n    f);\n", "A d = A{\n    e,\n    f};\n"),
        ("rust", "fn a() { b!(c, d); }\n", "fn a() { b![c, d]; }\n",
         "fn e() {\n    b!(\n        f,\n        g\n    );\n}\n",
         "fn e() {\n    b![\n        f,\n        g\n    ];\n}\n"),
    ],
)  # fmt: skip
def test_a_list_that_gets_other_brackets_keeps_its_lines(
    language: str, before: str, after: str, text: str, changed: str
) -> None:
    assert edit_of(language, [(before, after)], text).applied(text) == changed


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "changed"),
    [
        ("python", "get(a, b)\n", "a[b]\n", "get(c, d,)\nget(\n    c,\n    d,\n)\n", "c[d]\nc[d]\n"),
        ("python", "get(a)\n", "a[0]\n", "get(b,)\n", "b[0]\n"),
        ("python", "get(a, b)\n", "a + b\n", "get(c, d,)\n", "c + d\n"),
        ("python", "get(a)\n", "get((a,))\n", "get(b)\nget(c,)\n", "get((b,))\nget((c,))\n"),
        ("python", "get(a)\n", "(a,)\n", "get(b)\n", "(b,)\n"),
        ("javascript", "get(a, b);\n", "a[b];\n", "get(c, d,);\n", "c[d];\n"),
    ],
)  # fmt: skip
def test_a_comma_that_ends_a_list_stays_only_where_it_does(
    language: str, before: str, after: str, text: str, changed: str
) -> None:
    assert edit_of(language, [(before, after)], text).applied(text) == changed


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "changed"),
    [
        ("python", "self.is_same(a, b)\n", "assert a == b\n",
         "self.is_same(load(c,\n                  [d,\n                   e]), f)\n",
         "assert load(c,\n            [d,\n             e]) == f\n"),
        ("javascript", "isSame(a, b);\n", "a === b;\n",
         "isSame(load(c,\n            '(',\n  d), e);\n", "load(c,\n     '(',\n  d) === e;\n"),
        ("python", "load(a)\n", "reload(a)\n", "load(c,\n     d)\n", "reload(c,\n     d)\n"),
    ],
)  # fmt: skip
def test_lines_that_are_aligned_with_a_bracket_move_with_it_where_the_shape_changes(
    language: str, before: str, after: str, text: str, changed: str
) -> None:
    assert repeated(language, before, after, text) == changed


def test_a_place_that_has_the_edit_is_left_alone() -> None:
    text = "async def f():\n    await load(x)\n    load(y)\n"
    before = "async def f():\n    load(x)\n"
    edit = edit_of("python", [(before, before.replace("load", "await load"))], text)
    assert edit.applied(text) == text.replace("    load(y)", "    await load(y)")
    assert not edit.left_out


def test_an_argument_of_the_same_name_is_not_added_twice() -> None:
    edit = edit_of("python", [TIMEOUT], "foo(a, timeout=9)\n")
    assert reasons(edit) == ["`timeout` is there already"]
    assert not edit.edits


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os\n\n\ndef f(os):\n    return os.getcwd()\n", "`os` is a parameter here"),
        ("import os\n\n\ndef f():\n    os = g()\n    return os.getcwd()\n", "`os` is a local variable here"),
        ("from mine import os\n\nos.getcwd()\n", "`os` is another import here"),
        ("os = make()\nos.getcwd()\n", "`os` is defined in this file"),
        ("print(os.getcwd())\n", "`os` is not imported here"),
        (
            "import os\n\n\ndef f(Path):\n    return os.getcwd()\n",
            "`Path`, which the edit imports, is something else here",
        ),
    ],
)
def test_a_place_where_a_name_is_something_else_is_left_out(text: str, reason: str) -> None:
    example = ("import os\nx = os.getcwd()\n", "from pathlib import Path\nx = Path.cwd()\n")
    edit = edit_of("python", [example], text)
    assert reasons(edit) == [reason]
    assert not edit.edits


def test_a_value_in_the_example_is_no_import_elsewhere() -> None:
    example = ("import a\n\n\ndef f(user):\n    user.dict()\n", "import a\n\n\ndef f(user):\n    user.model_dump()\n")
    text = "import typing\n\n\ndef g(team):\n    team.lead.dict()\n    typing.dict()\n"
    edit = edit_of("python", [example], text)
    assert edit.applied(text) == text.replace("lead.dict", "lead.model_dump")
    assert reasons(edit) == ["`typing` is an import here, and a value in the example"]


def test_await_is_added_in_async_functions_only() -> None:
    before = "async def f():\n    load(x)\n"
    example = (before, before.replace("load", "await load"))
    edit = edit_of("python", [example], "def g():\n    load(y)\n\n\nload(z)\n")
    assert reasons(edit) == [
        "the edit adds `await`, and the function here is not async",
        "the edit adds `await`, and there is no function here",
    ]


def test_comments_stay_or_the_place_is_left_out() -> None:
    kept = "foo(\n    a,  # first\n    b,\n)\n"
    assert repeated("python", *TIMEOUT, kept) == "foo(\n    a,  # first\n    b,\n    timeout=3,\n)\n"
    edit = edit_of("python", [("old(a, b)", "new(b)")], "old(\n    a,  # why\n    c,\n)\n")
    assert reasons(edit) == ["a comment would be lost"]


def test_a_flipped_condition_takes_its_comments_along() -> None:
    example = ("if not a:\n    b()\nelse:\n    c()\n", "if a:\n    c()\nelse:\n    b()\n")
    text = "def f():\n    if not x.y:\n        # one\n        one()\n    else:\n        two()  # two\n"
    assert repeated("python", *example, text) == (
        "def f():\n    if x.y:\n        two()  # two\n    else:\n        # one\n        one()\n"
    )


def test_parentheses_are_added_where_they_are_needed_only() -> None:
    example = ("join(a, b)", "Path(a) / b")
    assert repeated("python", *example, "x = join(p or q, r or s).name + str(join(t, u))\n") == (
        "x = (Path(p or q) / (r or s)).name + str(Path(t) / u)\n"
    )


def test_indentation_is_that_of_the_file() -> None:
    example = ("def f():\n    go(x)\n", "def f():\n    try:\n        go(x)\n    except E:\n        pass\n")
    text = "class A:\n\tdef f(self):\n\t\tgo(\n\t\t\ty,\n\t\t)\n"
    assert repeated("python", *example, text) == (
        "class A:\n\tdef f(self):\n\t\ttry:\n\t\t\tgo(\n\t\t\t\ty,\n\t\t\t)\n\t\texcept E:\n\t\t\tpass\n"
    )


def test_a_step_of_indentation_is_the_most_frequent_one() -> None:
    example = ("def f():\n    go(x)\n", "def f():\n    if y:\n        go(x)\n")
    text = "x = f(a,\n         b)\ndef f():\n  pass\n\n\ndef g():\n  go(x)\n"
    assert repeated("python", *example, text) == text.replace("  go(x)", "  if y:\n    go(x)")


def test_a_string_over_several_lines_is_not_indented() -> None:
    example = ("def f():\n    go(x)\n", "def f():\n    if y:\n        go(x)\n")
    text = 'def f():\n    go("""a\n  b\n""")\n'
    assert repeated("python", *example, text) == 'def f():\n    if y:\n        go("""a\n  b\n""")\n'


def test_a_place_in_an_f_string_with_the_same_quotes_is_left_out() -> None:
    example = ("name(a)", 'a["name"]')
    edit = edit_of("python", [example], "x = f\"{name(b)}\"\ny = f'{name(c)}'\n")
    assert reasons(edit) == ["the edit writes quotes, and the place is inside a string with the same quotes"]
    assert len(edit.places) == 1


def test_a_statement_takes_no_place_of_an_expression() -> None:
    edit = edit_of("python", [("check(a, b)\n", "assert a == b\n")], "f = lambda: check(1, 2)\ncheck(3, 4)\n")
    assert edit.applied("f = lambda: check(1, 2)\ncheck(3, 4)\n") == "f = lambda: check(1, 2)\nassert 3 == 4\n"


def test_a_body_is_never_left_empty() -> None:
    example = ("go(a)\ntrace(1)\n", "go(a)\n")
    text = "if x:\n    trace(1)\nelse:\n    trace(1)\n    go(b)\n"
    edit = edit_of("python", [example], text)
    assert edit.applied(text) == "if x:\n    trace(1)\nelse:\n    go(b)\n"
    assert reasons(edit) == ["nothing would be left of the body"]


def test_a_result_with_a_syntax_error_is_left_out_and_the_other_places_are_edited() -> None:
    text = "package p\n\nfunc g() {\n\tif f(1) {\n\t\treturn\n\t}\n\tx := f(2)\n}\n"
    edit = edit_of("go", [("x := f(a)", "x := T{a}")], text)
    assert edit.applied(text) == text.replace("f(2)", "T{2}")
    assert reasons(edit) == ["the result would have a syntax error"]


def test_an_assignment_takes_the_place_of_whole_statements_only() -> None:
    text = "g(f(1))\nf(2)\n"
    assert repeated("python", "f(a)\n", "x = f(a)\n", text) == "g(f(1))\nx = f(2)\n"


def test_errors_that_a_file_has_already_do_not_matter() -> None:
    assert repeated("python", *TIMEOUT, "x = = 2\nfoo(1)\n") == "x = = 2\nfoo(1, timeout=3)\n"


def test_a_deleted_statement_takes_its_line_along() -> None:
    example = ("a()\ntrace(1)\nb()\n", "a()\nb()\n")
    assert repeated("python", *example, "if x:\n    trace(1)\n    c()\n") == "if x:\n    c()\n"


def test_attributes_of_an_element_are_in_any_order() -> None:
    example = ('a = <B c="x" />;', 'a = <B d="x" />;')
    text = "b = <B e={1} c={2} f>t</B>;\nc = <C c={3} />;\n"
    assert repeated("typescriptreact", *example, text) == text.replace("c={2}", "d={2}")


def test_type_arguments_of_a_call_stay() -> None:
    text = "x = a.use<string[]>(y);\n"
    assert repeated("typescript", "a.use(z)", "use(z)", text) == "x = use<string[]>(y);\n"


def test_code_that_is_nested_too_deeply_is_left_out() -> None:
    edit = edit_of("python", [TIMEOUT], "foo(" * 5000 + ")" * 5000 + "\n")
    assert reasons(edit) == ["it is nested too deeply"]
    assert not edit.edits


def test_a_key_in_quotes_is_the_same_only_if_its_text_is() -> None:
    before, after = "f({'a': 1})\n", "f({'a': 1, 'b': 2})\n"
    assert repeated("python", before, after, "f({'c': 1})\n") == "f({'c': 1, 'b': 2})\n"
    assert repeated("python", before, after, "f({'b': 1})\n") == "f({'b': 1})\n"


@pytest.mark.parametrize(
    ("language", "before", "after", "lists"),
    [
        ("php", "<?php\n$a = array(%s);\n", "<?php\n$a = [%s];\n", ["\n    1,\n    2,\n", " 3, 4 ", "", "\n"]),
        ("rust", "fn a() { b!(%s); }\n", "fn a() { b![%s]; }\n", ["\n    1,\n    2,\n", " 3, 4 ", "\n3\n"]),
    ],
)  # fmt: skip
def test_a_list_of_any_length_that_gets_other_brackets_keeps_its_lines_where_the_example_has_a_line_each(
    language: str, before: str, after: str, lists: list[str]
) -> None:
    for inner in lists[1:]:
        assert repeated(language, before % lists[0], after % lists[0], before % inner) == after % inner


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "changed"),
    [
        ("java", "class A extends B {}\n", "class A extends C {}\n", "class D extends B implements E {}\n",
         "class D extends C implements E {}\n"),
        ("php", "<?php\nclass A extends B {}\n", "<?php\nclass A extends C {}\n",
         "<?php\nclass D extends B implements E {}\n", "<?php\nclass D extends C implements E {}\n"),
        ("typescript", "class A extends B {}\n", "class A extends C {}\n", "class D extends B implements E {}\n",
         "class D extends C implements E {}\n"),
        ("cpp", "class A : public B {};\n", "class A : public C {};\n", "class D : public B, E {};\n",
         "class D : public C, E {};\n"),
        ("kotlin", "class A : B() {}\n", "class A : C() {}\n", "class D : B(), E {}\n", "class D : C(), E {}\n"),
    ],
)  # fmt: skip
def test_another_base_comes_whatever_else_a_class_has(
    language: str, before: str, after: str, text: str, changed: str
) -> None:
    assert repeated(language, before, after, text) == changed


def test_a_name_that_begins_at_the_root_is_known_everywhere() -> None:
    before, text = (
        "<?php\nnamespace N;\nuse A\\B;\n$a = new B(1);\n",
        "<?php\nnamespace O;\nuse A\\B;\n$c = new B(1);\n",
    )
    edit = sure_edit("php", text, (before, before.replace("new B", "new \\M\\D")))
    assert edit.applied(text).endswith("$c = new \\M\\D(1);\n")


@pytest.mark.parametrize(
    ("language", "file"),
    [
        ("typescript", "let a: %s;\n"),
        ("java", "class A { %s a; }\n"),
        ("rust", "struct A { a: %s }\n"),
        ("cpp", "%s a;\n"),
    ],
)
def test_another_type_keeps_its_arguments(language: str, file: str) -> None:
    for old, new in (("Bag<A, Coin>", "Bag<A>"), ("Bag<A>", "Bag<A, Coin>")):
        before, here = file % old, old.replace("A", "B")
        text = file % here + file % here.replace("Bag", "Box")
        edit = sure_edit(language, text, (before, file % new))
        assert edit.applied(text) == text.replace(here, new.replace("A", "B"))


def test_what_was_in_the_block_of_a_statement_is_written_as_the_example_has_it() -> None:
    head = "package p\n\nfunc f() {\n\t"
    text = f"{head}if a.b != nil {{\n\t\ta.b.Close()\n\t}}\n}}\n"
    before, after = f"{head}if x != nil {{\n\t\tx.Close()\n\t}}\n}}\n", f"{head}closeAll(x)\n}}\n"
    assert repeated("go", before, after, text) == f"{head}closeAll(a.b)\n}}\n"


VARIABLES = {
    "python": ("app = make()\n", "app.listen(8)\n", "def g(app):\n    app.listen(9)\n"),
    "javascript": ("const app = make();\n", "app.listen(8);\n", "function g(app) { app.listen(9); }\n"),
    "go": ("package p\n\nvar app = make()\n\n", "func f() { app.listen(8) }\n", "func g(app A) { app.listen(9) }\n"),
    "php": ("<?php\n$app = make();\n", "$app->listen(8);\n", "function g($app) { $app->listen(9); }\n"),
}


@pytest.mark.parametrize("language", VARIABLES)
def test_a_method_is_called_on_a_global_variable_as_on_a_local_one_of_its_name(language: str) -> None:
    head, call, local = VARIABLES[language]
    text = head.partition("\n")[0] * (language in ("go", "php")) + f"\n\n{local}"
    edit = sure_edit(language, text, (head + call, head + call.replace("8", "at(8)")), paths=("a", "b"))
    assert edit.applied(text) == text.replace("9", "at(9)")


@pytest.mark.parametrize("head", ["const app = require('app');", "function app() {}"])
def test_a_module_or_a_function_is_no_local_variable_of_its_name(head: str) -> None:
    text = "function g(app) { app.listen(9); }\n"
    edit = sure_edit(
        "javascript", text, (f"{head}\napp.listen(8);\n", f"{head}\napp.listen(at(8));\n"), paths=("a", "b")
    )
    assert edit.applied(text) == text
    assert reasons(edit) == ["`app` is a parameter here"]


MOVED = {
    "python": ("def f(a):\n    g({})\n", "a.inner.level", "a.level"),
    "go": ("package p\n\nfunc f(a A) {{ g({}) }}\n", "a.inner.level", "a.level"),
    "java": ("class A {{ void f(B a) {{ g({}); }} }}\n", "a.inner().level()", "a.level()"),
    "rust": ("fn f(a: A) {{ g({}) }}\n", "a.inner().level()", "a.level()"),
    "typescript": ("function f(a) {{ g({}); }}\n", "a.inner.level", "a.level"),
}


@pytest.mark.parametrize("language", MOVED)
def test_a_member_that_moved_says_nothing_of_other_members(language: str) -> None:
    code, old, new = MOVED[language]
    text, expected = (code.format(f"{one}, {old.replace('level', 'size')}, a.inner") for one in (old, new))
    assert sure_edit(language, text, (code.format(old), code.format(new))).applied(text) == expected


NAMED = {
    "javascript": ("go({{\n  a: 1,{}\n  b: 2,\n}});\n", "\n  d: 3,", "go({ c: 4, a: 5, b: 6 });\n", " d: 3,"),
    "python": ("go(\n    a=1,{}\n    b=2,\n)\n", "\n    d=3,", "go(c=4, a=5, b=6)\n", " d=3,"),
    "go": (
        "package p\n\nvar x = T{{\n\ta: 1,{}\n\tb: 2,\n}}\n",
        "\n\td: 3,",
        "package p\n\nvar y = T{c: 4, a: 5, b: 6}\n",
        " d: 3,",
    ),
}


@pytest.mark.parametrize("language", NAMED)
def test_a_new_element_comes_after_that_of_the_same_name_on_the_line_that_the_others_are_on(language: str) -> None:
    form, new, text, there = NAMED[language]
    edited = repeated(language, form.format(""), form.format(new), text)
    assert edited == text.replace(" a: 5,", f" a: 5,{there}").replace(" a=5,", f" a=5,{there}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a(); trace(b); c();\n", "a(); c();\n"),
        ("a(() => { trace(b); });\n", "a(() => { });\n"),
        ("a(() => {trace(b); c();});\n", "a(() => { c();});\n"),
        ("a();\n  trace(b);\nc();\n", "a();\nc();\n"),
    ],
)
def test_a_statement_that_goes_takes_one_of_the_spaces_beside_it_along(text: str, expected: str) -> None:
    examples = [(f"trace({one});\ngo();\n", "go();\n") for one in "xy"]
    assert edit_of("javascript", examples, text).applied(text) == expected
