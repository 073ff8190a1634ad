"""Values, names and files that say that a place may mean something else than the example."""

import pytest
from support.refactor_case import doubts, reasons, sure_edit

FEWER = "it has fewer arguments than the example"
RECEIVER = "its receiver is another one than in the example, and may have another type"
SYNTAX = "only its syntax is as in the example"
ELSEWHERE = "what uses the value is another code than in the example"
UNUSED = "nothing in it uses `clock`, which the edit adds"
OTHER_TYPE = "another file declares another type of this name"


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("python", "check_it(load())\n", "check_it(lambda: load())\ncheck_it(read(2))\n"),
        ("javascript", "check_it(load());\n", "check_it(() => load());\ncheck_it(read(2));\n"),
        ("typescript", "check_it(load());\n", "check_it(() => load());\ncheck_it(read(2));\n"),
        ("go", "package p\n\nfunc f() { check_it(load()) }\n",
         "package p\n\nfunc g() {\n\tcheck_it(func() { load() })\n\tcheck_it(read(2))\n}\n"),
        ("php", "<?php\ncheck_it(load());\n", "<?php\ncheck_it(fn() => load());\ncheck_it(read(2));\n"),
    ],
)  # fmt: skip
def test_a_function_where_the_example_has_a_value_is_doubtful(language: str, before: str, text: str) -> None:
    edit = sure_edit(language, text, (before, before.replace("check_it", "verify_it")))
    assert edit.applied(text) == text.replace("check_it(read", "verify_it(read")
    assert doubts(edit) == ["it has a function where the example has a call"]


def test_an_awaited_call_may_take_a_function_as_well() -> None:
    before, text = "const a = await check_it(load());\n", "const b = await check_it(async () => load());\n"
    edit = sure_edit("javascript", text, (before, before.replace("check_it", "verify_it")))
    assert edit.applied(text) == text.replace("check_it", "verify_it")


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "sort"),
    [
        ("javascript", "t.fails(run, 'no');\n", "t.fails(run, {message: 'no'});\n", "t.fails(go, {code: 1});\n",
         "an object"),
        ("typescript", "t.fails(run, 'no');\n", "t.fails(run, {message: 'no'});\n", "t.fails(go, [1]);\n", "a list"),
        ("python", "fails(run, 'no')\n", "fails(run, Error('no'))\n", "fails(go, {'code': 1})\n", "an object"),
        ("php", "<?php\nfails($run, 'no');\n", "<?php\nfails($run, ['m' => 'no']);\n",
         "<?php\nfails($go, ['c' => 1]);\n",
         "a list"),
        ("rust", 'fn f() { fails("no"); }\n', 'fn f() { fails("no".into()); }\n', "fn g() { fails(1); }\n", "a number"),
        ("go", 'package p\n\nfunc f() { fails("no") }\n', 'package p\n\nfunc f() { fails(t("no")) }\n',
         "package p\n\nfunc g() { fails(0.5) }\n", "a number"),
    ],
)  # fmt: skip
def test_what_the_edit_puts_something_around_is_of_the_same_sort(
    language: str, before: str, after: str, text: str, sort: str
) -> None:
    edit = sure_edit(language, text, (before, after))
    assert edit.edits == ()
    assert doubts(edit) == [f"it has {sort} where the example has a text"]
    other = before.replace("no", "never")
    assert sure_edit(language, other, (before, after)).applied(other) == after.replace("no", "never")


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("javascript", "this.head('a', b);\n", "this.head('a');\nthis.head('c', d, e);\n"),
        ("python", "self.head('a', b)\n", "self.head('a')\nself.head('c', d, e)\n"),
        ("java", "class A { void f() { this.head(a, b); } }\n",
         "class B { void g() { this.head(a); this.head(c, d, e); } }\n"),
        ("php", "<?php\n$this->head($a, $b);\n", "<?php\n$this->head($a);\n$this->head($c, $d, $e);\n"),
    ],
)  # fmt: skip
def test_fewer_arguments_of_a_method_of_one_word_are_doubtful(language: str, before: str, text: str) -> None:
    edit = sure_edit(language, text, (before, before.replace("head", "put")))
    first, second = text.find("head"), text.rfind("head")
    assert edit.applied(text) == text[:second] + "put" + text[second + 4 :] != text[:first]
    assert doubts(edit) == [FEWER]


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("python", "def f(reply):\n    reply.get_head('a')\n",
         "class A:\n    def get_head(self, a): ...\n    def f(self, ask):\n        self.get_head('b')\n"
         "        ask.get_head('c')\n"),
        ("javascript", "function f(reply) { reply.get_head('a'); }\n",
         "class A {\n  get_head(a) {}\n  f(ask) { this.get_head('b'); ask.get_head('c'); }\n}\n"),
        ("java", "class B { void f(R reply) { reply.get_head(a); } }\n",
         "class A { void get_head(S a) {} void f(R ask) { this.get_head(b); ask.get_head(c); } }\n"),
        ("php", "<?php\n$reply->get_head('a');\n",
         "<?php\nclass A {\n  function get_head($a) {}\n"
         "  function f($ask) { $this->get_head('b'); $ask->get_head('c'); }\n}\n"),
    ],
)  # fmt: skip
def test_a_method_that_the_class_has_itself_is_another_one(language: str, before: str, text: str) -> None:
    edit = sure_edit(language, text, (before, before.replace("get_head", "read_head")))
    last = text.rfind("get_head")
    assert edit.applied(text) == text[:last] + "read_head" + text[last + 8 :]
    assert doubts(edit) == ["`get_head` is a method of its own class"]


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("python", "def f(run):\n    return run.get_part()\n", "def f(run):\n    return run.part\n",
         "def g(job, run):\n    use(job.get_part())\n    use(run.get_part().size)\n"),
        ("javascript", "function f(run) { use(run.getPart()); }\n", "function f(run) { use(run.part); }\n",
         "function g(job, run) { use(job.getPart()); use(run.getPart().size); }\n"),
        ("java", "class A { int f(R run) { return run.getPart(); } }\n",
         "class A { int f(R run) { return run.part; } }\n",
         "class B { int g(R run, J job) { return job.getPart() + run.getPart(); } }\n"),
        ("php", "<?php\nput($run->getPart());\n", "<?php\nput($run->part);\n",
         "<?php\nput($job->getPart());\nput($run->getPart()->size);\n"),
    ],
)  # fmt: skip
def test_a_method_that_becomes_a_field_is_of_the_same_receiver(
    language: str, before: str, after: str, text: str
) -> None:
    edit = sure_edit(language, text, (before, after))
    assert doubts(edit) == [RECEIVER]
    assert edit.applied(text).count("job.get") + edit.applied(text).count("job->get") == 1
    assert "run.get" not in edit.applied(text)
    assert "run->get" not in edit.applied(text)


@pytest.mark.parametrize(
    ("language", "before", "old", "new"),
    [
        ("javascript", "function f() {{ a({0}.url); b({0}.to); }}\nfunction g() {{ c({0}.at); }}\n", "e.sent",
         "e?.sent"),
        ("typescript", "function f() {{ a({0}.url); b({0}.to); }}\nfunction g() {{ c({0}.at); }}\n", "e.sent",
         "e?.sent"),
        ("typescript", "function f() {{ a({0}.url); b({0}.to); }}\nfunction g() {{ c({0}.at); }}\n", "e.sent",
         "e.sent!"),
        ("php", "<?php\nfunction f($e) {{ a({0}->url); b({0}->to); }}\nfunction g($e) {{ c({0}->at); }}\n", "$e->sent",
         "$e?->sent"),
        ("csharp", "class A {{ void F() {{ a({0}.Url); b({0}.To); }} void G() {{ c({0}.At); }} }}\n", "e.Sent",
         "e?.Sent"),
    ],
)  # fmt: skip
def test_only_a_type_says_that_a_value_may_be_missing(language: str, before: str, old: str, new: str) -> None:
    text = before.format(old)
    after = text.replace(old, new, 1)
    edit = sure_edit(language, after, (text, after))
    assert edit.applied(after) in (text.replace(old, new, 2), after)
    assert SYNTAX in doubts(edit)


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        (
            "javascript",
            "test_it('a', withApp, (t) => {\n  one();\n});\n",
            "test_it('b', withApp, (t) => {\n  two();\n});\n",
        ),
        (
            "typescript",
            "test_it('a', withApp, (t) => {\n  one();\n});\n",
            "test_it('b', withApp, (t) => {\n  two();\n});\n",
        ),
    ],
)
def test_a_parameter_that_nothing_uses_is_added_in_the_example_s_file_alone(
    language: str, before: str, text: str
) -> None:
    after = before.replace("test_it", "test_all").replace("(t)", "(t, clock)")
    assert doubts(sure_edit(language, text, (before, after))) == [UNUSED]
    edit = sure_edit(language, after + text, (before + text, after + text))
    assert doubts(edit) == []
    assert edit.edits


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("rust", "fn f() { let a = Arc::new(load()); }\n", "fn f() { let a = load(); }\n",
         "fn g() { keep(Arc::new(two())); }\n"),
        ("python", "a = to_tuple(load())\n", "a = load()\n", "keep(to_tuple(two()))\n"),
        ("javascript", "const a = toText(load());\n", "const a = load();\n", "keep(toText(two()));\n"),
        ("java", "class A { T f() { return toText(load()); } }\n", "class A { T f() { return load(); } }\n",
         "class B { void g() { keep(toText(two())); } }\n"),
    ],
)  # fmt: skip
def test_a_wrapper_goes_in_the_example_s_file_alone(language: str, before: str, after: str, text: str) -> None:
    assert doubts(sure_edit(language, text, (before, after))) == [ELSEWHERE]
    both = after + text
    assert sure_edit(language, both, (before + text, both)).edits


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "name"),
    [
        ("cpp", "void A::f() { finish(); }\n", "void A::f() { thread->finish(); }\n", "void B::g() { finish(); }\n",
         "thread"),
        ("java", "class A { void f() { finishAll(); } }\n", "class A { void f() { pool.finishAll(); } }\n",
         "class B { void g() { finishAll(); } }\n", "pool"),
        ("php", "<?php\n$a = new Request(1);\n", "<?php\n$a = new Wire\\Request(1);\n",
         "<?php\n$b = new Request(2);\n", "Wire"),
        ("rust", "fn f() { eprintln!(\"a\"); }\n", "fn f() { say_locked!(\"a\"); }\n", "fn g() { eprintln!(\"b\"); }\n",
         "say_locked"),
    ],
)  # fmt: skip
def test_a_name_that_nothing_binds_is_known_in_the_example_s_file_alone(
    language: str, before: str, after: str, text: str, name: str
) -> None:
    doubt = f"`{name}`, which the edit uses, may be known in the example's file alone"
    assert doubts(sure_edit(language, text, (before, after))) == [doubt]
    both = after + text.removeprefix("<?php\n")
    assert sure_edit(language, both, (before + text.removeprefix("<?php\n"), both)).edits


def test_a_name_that_another_file_binds_is_known_there() -> None:
    before, text = "void f() { finish(); }\n", "void g(Thread* thread) { finish(); }\n"
    edit = sure_edit("cpp", text, (before, before.replace("finish", "thread->finish")))
    assert edit.applied(text) == text.replace("finish", "thread->finish")


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("rust", "struct Options {\n    a: u8,\n}\n", "pub struct Options {\n    a: u8,\n}\n"),
        ("rust", "enum Options {\n    A,\n}\n", "pub enum Options {\n    A,\n}\n"),
        ("java", "class Options { int a; }\n", "public class Options { int a; }\n"),
        ("csharp", "class Options { int a; }\n", "public class Options { int a; }\n"),
    ],
)
def test_a_type_of_another_file_is_another_type(language: str, before: str, after: str) -> None:
    assert OTHER_TYPE in doubts(sure_edit(language, before, (before, after)))


def test_a_conversion_is_no_declared_type() -> None:
    before = "void f() { for (int i = 0; i < 3; i++) g(int(i)); }\n"
    after = before.replace("int i", "long i")
    edit = sure_edit("cpp", after, (before, after))
    assert edit.edits == ()
    assert doubts(edit) == ["it is a conversion here, and elsewhere in the example"]


def test_a_union_that_python_evaluates_is_doubtful() -> None:
    before, after = (
        "import typing as t\ndef f(a: t.Optional[int]): ...\n",
        "import typing as t\ndef f(a: int | None): ...\n",
    )
    text = "import typing as t\ndef g(b: t.Optional[str]): ...\n\n\nAlias = t.Optional[str]\n"
    edit = sure_edit("python", text, (before, after))
    assert edit.applied(text) == text.replace("t.Optional[str])", "str | None)")
    assert doubts(edit) == ["it is evaluated here, where not all versions know `|` of types"]


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_the_end_of_the_statement_goes_along(language: str) -> None:
    before, after = "a.should.equal(1);\n", "same(a, 1)\n"
    text = "b.should.equal(2);\nif (c) { d.should.equal(3); }\nuse(e.should.equal(4));\n"
    edit = sure_edit(language, text, (before, after))
    assert edit.applied(text) == "same(b, 2)\nif (c) { same(d, 3) }\nuse(same(e, 4))\n"
    assert next(text[one.start : one.end] for one in edit.places) == "b.should.equal(2);"
    back = edit.applied(text)
    added = sure_edit(language, back, (after, before))
    assert added.applied(back) == text


@pytest.mark.parametrize("below", ["[1].map(f);\n", "(g)();\n", "`x`.length;\n"])
def test_the_end_of_a_statement_stays_before_a_line_that_would_go_on_with_it(below: str) -> None:
    text = f"b.should.equal(2);\n{below}"
    edit = sure_edit("javascript", text, ("a.should.equal(1);\n", "same(a, 1)\n"))
    assert edit.applied(text) == f"same(b, 2);\n{below}"


def test_an_edit_loses_no_code_that_the_example_had_not() -> None:
    before, after = "res.show('a', { vars: { b: 1 } });\n", "res.show('a', { b: 1 });\n"
    text = "res.show('c', { code: 4, vars: { d: 2 } });\nres.show('e', { vars: { f: 3 } });\n"
    edit = sure_edit("javascript", text, (before, after))
    assert edit.applied(text) == text.replace("{ vars: { f: 3 } }", "{ f: 3 }")
    assert reasons(edit) == ["the edit would lose `code:4`"]


def test_what_is_only_added_to_a_body_in_a_macro_is_no_example() -> None:
    before = "suite!(one, |dir: Dir| {\n    dir.write(1);\n});\nfn f() { old_call(); }\n"
    after = before.replace("    dir.write", '    dir.make(".git");\n    dir.write').replace("old_call", "new_call")
    text = "suite!(two, |dir: Dir| {\n    dir.write(2);\n});\nfn g() { old_call(); }\n"
    edit = sure_edit("rust", text, (before, after))
    assert edit.applied(text) == text.replace("old_call", "new_call")


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("php", "<?php\nStream::ofText($a, true);\n", "<?php\nStream::ofText($a);\n",
         "<?php\nStream::ofFile($b, true);\n"),
        ("python", "import wire\nwire.get(a, True)\n", "import wire\nwire.get(a)\n",
         "import wire\nwire.put(b, True)\n"),
        ("javascript", "import wire from 'wire';\nwire.get(a, true);\n", "import wire from 'wire';\nwire.get(a);\n",
         "import wire from 'wire';\nwire.put(b, true);\n"),
        ("rust", "fn f() { Stream::text(a, true); }\n", "fn f() { Stream::text(a); }\n",
         "fn g() { Stream::file(b, true); }\n"),
    ],
)  # fmt: skip
def test_another_method_of_the_same_thing_with_that_argument_is_listed(
    language: str, before: str, after: str, text: str
) -> None:
    edit = sure_edit(language, text, (before, after))
    assert edit.edits == ()
    assert "its member is another one than in the example" in reasons(edit)


@pytest.mark.parametrize(
    ("language", "before", "after", "text"),
    [
        ("cpp", "void f() { t(0, v.size()); }\n", "void f() { t(size_t{0}, v.size()); }\n",
         "void g() { t(3, a); t(n, a); }\n"),
        ("java", "class A { void f() { t(0); } }\n", "class A { void f() { t((long) 0); } }\n",
         "class B { void g() { t(3); t(n); } }\n"),
        ("go", "package p\n\nfunc f() { t(0) }\n", "package p\n\nfunc f() { t(int64(0)) }\n",
         "package p\n\nfunc g() { t(3); t(n) }\n"),
        ("rust", "fn f() { t(0); }\n", "fn f() { t(0 as u8); }\n", "fn g() { t(3); t(n); }\n"),
    ],
)  # fmt: skip
def test_what_has_a_type_gets_none_as_a_literal_does(language: str, before: str, after: str, text: str) -> None:
    edit = sure_edit(language, text, (before, after))
    assert doubts(edit) == ["it has another value where the example has a number"]
    start = before.index("0")
    cast = after[start : after.index(before[start + 1 :])].replace("0", "3")
    assert edit.applied(text) == text.replace("3", cast)


OBJECTS = {
    "javascript": ("{}({{ error: 'Bad', text: 'one two three', status: {} }});\n", "text:", "code: 7, text:"),
    "python": ("{}({{'error': 'Bad', 'text': 'one two three', 'status': {}}})\n", "'text'", "'code': 7, 'text'"),
    "ruby": ("{}({{ error: 'Bad', text: 'one two three', status: {} }})\n", "text:", "code: 7, text:"),
}


@pytest.mark.parametrize("language", OBJECTS)
@pytest.mark.parametrize(("name", "is_sure"), [("send", True), ("assert_equal", False)])
def test_what_is_compared_gets_a_key_where_its_other_values_are_the_same(
    language: str, name: str, is_sure: bool
) -> None:
    form, old, new = OBJECTS[language]
    example = form.format(name, 400), form.format(name, 400).replace(old, new)
    same, other = (form.format(name, status).replace("one", "four") for status in (400, 404))
    assert sure_edit(language, same, example).applied(same) == same.replace(old, new)
    edit = sure_edit(language, other, example)
    assert edit.applied(other) == (other.replace(old, new) if is_sure else other)
    assert doubts(edit) == ["it is compared with other values than in the example"] * (not is_sure)


@pytest.mark.parametrize("language", OBJECTS)
def test_an_object_without_a_key_of_the_example_may_need_none(language: str) -> None:
    form, old, new = OBJECTS[language]
    text = form.format("send", 400).replace("error", "a").replace("text", "b").replace("status", "c")
    edit = sure_edit(language, text, (form.format("send", 400), form.format("send", 400).replace(old, new)))
    assert edit.applied(text) == text
    assert doubts(edit) == ["its object has no key of the example's"]


@pytest.mark.parametrize(
    ("language", "form", "is_sure"),
    [
        ("python", "assert {} == {}\n", True),
        ("rust", "fn f() -> bool {{ {} == {} }}\n", True),
        ("kotlin", "fun f() = {} == {}\n", True),
        ("javascript", "go({} == {});\n", False),
    ],
)
def test_what_is_compared_loses_its_wrapper_in_another_file_where_its_type_says_what_is_equal(
    language: str, form: str, is_sure: bool
) -> None:
    text = form.format("b", 'Url("c")')
    example = form.format("a", 'Url("d")'), form.format("a", '"d"')
    edit = sure_edit(language, text, example, paths=("a", "b"))
    assert edit.applied(text) == (form.format("b", '"c"') if is_sure else text)
    assert doubts(edit) == [ELSEWHERE] * (not is_sure)
    summed = form.replace("==", "+").replace("bool", "Url").format("b", 'Url("c")')
    assert sure_edit(language, summed, example, paths=("a", "b")).applied(summed) == summed
