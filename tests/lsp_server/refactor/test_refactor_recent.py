"""What the user is doing now: the rule of the newest edit, and where it belongs too."""

# ruff: noqa: E501  a file a line

import pytest
from support.typist import Typist, next_lines, next_places

from lsp_server.refactor.recent import former_places, recent_places

_PATHS = """import os


def read(folder):
    return os.path.join(folder, "a")


def write(folder, name):
    other = 1
    unused = 2
    return os.path.join(folder, name)


def remove(folder):
    first = 1
    second = 2
    return os.path.join(folder, "b", "c")


def log(name):
    first = 1
    second = 2
    return os.path.join("logs", name)
"""


def test_the_newest_edit_belongs_to_the_other_places_of_the_file() -> None:
    typist = Typist(_PATHS)
    typist.replace('os.path.join(folder, "a")', 'Path(folder) / "a"')
    assert next_lines(typist) == ["return Path(folder) / name", 'return Path("logs") / name']


def test_an_edit_typed_key_by_key_gives_a_rule_only_when_it_is_finished() -> None:
    typist = Typist(_PATHS)
    typist.replace('os.path.join(folder, "a")', "")
    seen: list[list[str]] = []
    start = typist.text.index("return ") + len("return ")
    for index, key in enumerate('Path(folder) / "a"'):
        typist.change(start + index, 0, key)
        seen.append(next_lines(typist))
    assert seen[-1] == ["return Path(folder) / name", 'return Path("logs") / name']
    assert not any(seen[:4])


def test_an_older_edit_that_is_alike_widens_the_rule() -> None:
    typist = Typist(_PATHS)
    typist.replace('os.path.join(folder, "a")', 'fs.join(folder, "a")')
    one = next_places(typist)
    assert one is not None
    typist.replace("os.path.join(folder, name)", "fs.join(folder, name)")
    two = next_places(typist)
    assert two is not None
    assert (one.recent.examples, two.recent.examples) == (1, 2)
    assert len(two.one_by_one.places) == 2


@pytest.mark.parametrize(
    ("language", "text", "old", "new", "line"),
    [
        ("php", "<?php\nStore::open(1);\n$x = 1;\n\nStore::drop();\n", "Store::", "Store::get()->", "Store::get()->drop();"),
        ("php", "<?php\n$a = array(1);\n$x = 1;\n\n$b = array(2, 3);\n", "array(1)", "[1]", "$b = [2, 3];"),
        ("javascript", "function f() {\n  let a = 1;\n  g();\n  g();\n  let b = g();\n}\n", "let a", "const a", "const b = g();"),
        ("python", "def test(self):\n    assert a\n    b = 1\n    c = 1\n    assert b == 1\n", "assert a", "self.check(a)", "self.check(b == 1)"),
        ("rust", "fn f() {\n    cmp::min(1, 2);\n    g();\n    g();\n    cmp::max(3, 4);\n}\n", "cmp::min", "std::cmp::min", "std::cmp::max(3, 4);"),
    ],
)  # fmt: skip
def test_what_one_example_makes_sure_for_the_command_is_the_next_edit(
    language: str, text: str, old: str, new: str, line: str
) -> None:
    typist = Typist(text)
    typist.replace(old, new)
    assert next_lines(typist, language) == [line]


def test_what_is_around_the_edit_does_not_hide_what_is_beside_it() -> None:
    typist = Typist("<?php\n$a = array(\n    array(1),\n    // b\n    // c\n    array(2),\n);\n")
    typist.replace("array(1)", "[1]")
    assert next_lines(typist, "php") == ["[2],"]


def test_two_examples_of_one_widest_form_are_meant_for_all() -> None:
    typist = Typist("unit.Equal(a)\n\n\nunit.Nil(b)\n\n\nf(unit.Same)\n")
    typist.replace("unit.Equal", "proof.Equal")
    assert next_lines(typist) == []
    typist.replace("unit.Nil", "proof.Nil")
    assert next_lines(typist) == ["f(proof.Same)"]


@pytest.mark.parametrize(
    ("language", "text", "old", "new", "line"),
    [
        ("rust", "fn f() {\n    let a = Arc::new(b);\n}\n\nfn g() {\n    h(Arc::new(c));\n}\n", "Arc::new(b)", "b", "h(c);"),
        ("python", "a = m.get(1)\n\n\n# é\n\nb = m.get(2)\n", "m.get(1)", "get(1)", "b = get(2)"),
        ("cpp", "void f() {\n  Done(1);\n}\n\nvoid g() {\n  Done(2);\n}\n", "Done(1)", "thread->Done(1)", "thread->Done(2);"),
        ("go", "package p\n\nfunc f() {\n\tfor x in y {\n\t}\n\ta := []byte(b)\n\tc()\n\td()\n\te := []byte(f)\n}\n", "[]byte(b)", "[]rune(b)", "e := []rune(f)"),
    ],
)  # fmt: skip
def test_the_file_of_the_example_is_no_other_one(language: str, text: str, old: str, new: str, line: str) -> None:
    typist = Typist(text)
    typist.replace(old, new)
    assert next_lines(typist, language) == [line]


def test_an_import_above_the_example_does_not_make_its_file_another_one() -> None:
    typist = Typist(
        "# é\r\nuse a::b;\r\n\r\n\r\nfn f() {\r\n    g(Arc::new(c));\r\n}\r\n\r\nfn h() {\r\n    g(Arc::new(d));\r\n}\r\n"
    )
    typist.replace("Arc::new(c)", "Rc::clone(c)")
    typist.replace("use a::b;", "use a::b;\r\nuse std::rc::Rc;")
    found = recent_places(typist.edits.all, "rust", "file")
    assert found is not None
    (own,) = found.recent.rules.own
    (start, end) = own.spans[0]
    assert typist.text.replace("\r\n", "\n").encode()[start:end] == b"Rc::clone(c)"


@pytest.mark.parametrize(
    ("language", "text", "old", "new", "line"),
    [
        ("java", "class A {\n  Date a;\n  int b;\n  int c;\n  Date d;\n}\n", "Date", "LocalDate", "LocalDate d;"),
        ("java", "class A {\n  @Map(to = 1, by = GET)\n  void a() {}\n\n  void b() {}\n\n  @Map(to = 2, by = GET)\n  void c() {}\n}\n", "@Map(to = 1, by = GET)", "@Fetch(1)", "@Fetch(2)"),
        ("cpp", "Text f(Text* a) {\n}\n\n\nvoid g(Text* b) {\n}\n", "Text* a", "Slice* a", "void g(Slice* b) {"),
        ("php", "<?php\n$a->get('x');\n$b = 1;\n$c = 1;\n$a->get('y');\n", "get('x')", "get('x', Store::ANY)", "$a->get('y', Store::ANY);"),
        ("rust", "fn f() {\n    eq!(s(a.b()), 1);\n    g();\n    g();\n    eq!(s(c.b()), 2);\n}\n", "s(a.b())", "a.text()", "eq!(c.text(), 2);"),
    ],
)  # fmt: skip
def test_a_member_or_a_type_of_another_file_may_be_spread(
    language: str, text: str, old: str, new: str, line: str
) -> None:
    typist = Typist(text)
    typist.replace(old, new)
    assert line in next_lines(typist, language)


def test_a_type_that_a_file_must_name_is_not_spread_before_it_does() -> None:
    typist = Typist("let a: Old = 1\nlet b = 1\nlet c = 1\nlet d: Old = 2\n")
    typist.replace("Old", "New")
    found = recent_places(typist.edits.all, "typescript", "file")
    assert found is not None
    assert found.recent.may_go_on


@pytest.mark.parametrize(
    ("language", "text", "old", "new", "line"),
    [
        ("typescript", "import * as a from 'a';\nimport x = require('x');\nimport y = require('y');\n", "import x = require('x')", "import * as x from 'x'", "import * as y from 'y';"),
        ("java", "import javax.persistence.Entity;\nimport java.util.List;\nimport javax.persistence.Id;\n", "javax", "jakarta", "import jakarta.persistence.Id;"),
        ("python", "from old.store import a\n\n\n\nfrom old.store import b, c\n", "old.store", "new.store", "from new.store import b, c"),
    ],
)  # fmt: skip
def test_an_import_that_changed_is_an_example(language: str, text: str, old: str, new: str, line: str) -> None:
    typist = Typist(text)
    typist.replace(old, new)
    assert next_lines(typist, language) == [line]


def test_an_import_that_goes_is_no_example() -> None:
    typist = Typist("import a\n\n\n\nimport b\n\n\n\nimport a\n")
    typist.replace("import a\n", "")
    assert next_places(typist) is None


def test_the_import_that_another_edit_added_comes_along() -> None:
    typist = Typist(_PATHS)
    typist.replace("import os\n", "import os\nfrom pathlib import Path\nimport unrelated\n")
    typist.replace('os.path.join(folder, "a")', 'Path(folder) / "a"')
    found = next_places(typist)
    assert found is not None
    assert [one.bound for one in found.recent.rules.imports.added] == ["Path"]
    assert found.one_by_one.imports == ()


def test_an_import_after_the_edit_does_not_end_it() -> None:
    typist = Typist(_PATHS)
    typist.replace('os.path.join(folder, "a")', 'Path(folder) / "a"')
    typist.replace("import os\n", "import os\nfrom pathlib import Path\n")
    assert next_lines(typist) == ["return Path(folder) / name", 'return Path("logs") / name']


def test_another_import_after_the_edit_ends_it() -> None:
    typist = Typist(_PATHS)
    typist.replace('os.path.join(folder, "a")', 'Path(folder) / "a"')
    typist.replace("import os\n", "import os\nimport json\n")
    assert next_places(typist) is None


def test_an_editor_that_adds_the_import_meanwhile_does_not_cut_the_edit_in_two() -> None:
    typist = Typist(_PATHS)
    typist.replace("os.path.join(folder", "Path(folder")
    typist.replace("import os\n", "import os\nfrom pathlib import Path\n")
    typist.replace('Path(folder, "a")', 'Path(folder) / "a"')
    assert next_lines(typist) == ["return Path(folder) / name", 'return Path("logs") / name']


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    other = 1\n", "    other = 1\n    print(other)\n"),
        ("    other = 1\n", "    # a comment\n    other = 1\n"),
        ("    other = 1\n", ""),
        ('"logs"', '"log"'),
        ("other = 1", "another = 1"),
        ("first = 1", "first = 7"),
        ("import os\n", "import os\nimport sys\n"),
        ("def read", "def load"),
    ],
)
def test_ordinary_edits_give_no_rule(old: str, new: str) -> None:
    typist = Typist(_PATHS)
    typist.replace(old, new)
    assert next_lines(typist) == []


def test_a_value_is_an_example_the_second_time() -> None:
    text = "a = f(1, 'x')\n\n\n\nb = f(2, 'x')\n\n\n\nc = f(3, 'x')\n"
    typist = Typist(text)
    typist.replace("f(1, 'x')", "f(1, 'y')")
    assert next_lines(typist) == []
    typist.replace("f(2, 'x')", "f(2, 'y')")
    assert next_lines(typist) == ["c = f(3, 'y')"]


_WRITES = {
    "python": (
        "def f(a, b):\n    a.write(1)\n    b.go()\n    a.write(2)\n    b.go()\n    a.write(3)\n    b.write(4)\n\n\n"
        "def g(a):\n    a.write(5)\n",
        "a.flush()",
    ),
    "javascript": (
        "function f(a, b) {\n  a.write(1);\n  b.go();\n  a.write(2);\n  b.go();\n  a.write(3);\n  b.write(4);\n}\n\n"
        "function g(a) {\n  a.write(5);\n}\n",
        "a.flush();",
    ),
    "go": (
        "package p\n\nfunc f(a, b A) {\n\ta.write(1)\n\tb.go()\n\ta.write(2)\n\tb.go()\n\ta.write(3)\n\tb.write(4)\n}\n\n"
        "func g(a A) {\n\ta.write(5)\n}\n",
        "a.flush()",
    ),
    "php": (
        "<?php\nfunction f($a, $b) {\n  $a->write(1);\n  $b->go();\n  $a->write(2);\n  $b->go();\n  $a->write(3);\n  $b->write(4);\n}\n\n"
        "function g($a) {\n  $a->write(5);\n}\n",
        "$a->flush();",
    ),
}


@pytest.mark.parametrize("language", _WRITES)
def test_an_added_statement_is_an_example_the_second_time_and_for_its_own_function(language: str) -> None:
    text, added = _WRITES[language]
    typist = Typist(text)
    for number in (1, 2):
        line = next(line for line in typist.text.split("\n") if f"({number})" in line)
        indent = line[: len(line) - len(line.lstrip())]
        assert next_lines(typist, language) == []
        typist.type(line, f"\n{indent}{added}")
    found = next_places(typist, language)
    assert found is not None
    (place,) = found.one_by_one.places
    after = place.applied(typist.text)
    assert [line.strip() for line in after.split("\n") if "flush" in line] == [added] * 3
    assert after.index("(3)") < after.rindex(added) < after.index("(4)")


def test_an_added_statement_that_belongs_nowhere_else_leaves_the_edit_before_it_as_it_was() -> None:
    typist = Typist(_PATHS + "\n\ndef last(a):\n    send(a)\n")
    typist.replace('os.path.join(folder, "a")', 'Path(folder) / "a"')
    typist.replace("    send(a)\n", "    send(a)\n    check(a)\n")
    assert recent_places(typist.edits.all, "python", "file") is None
    assert former_places(typist.edits.all, "python", "file") is not None


def test_the_arguments_of_what_the_language_brings_are_an_example_the_second_time() -> None:
    typist = Typist("a = len(x)\n\n\n\nb = len(y)\n\n\n\nc = len(z)\n")
    typist.replace("len(x)", "len(x, 1)")
    assert next_lines(typist) == []
    typist.replace("len(y)", "len(y, 1)")
    assert next_lines(typist) == ["c = len(z, 1)"]
    typist = Typist("a = len(x)\nb = len(y)\n\n\n\nc = len(z)\n")
    typist.replace("len(x)", "len(x, 1)")
    typist.replace("len(y)", "len(y, 1)")
    assert next_lines(typist) == ["c = len(z, 1)"]
    typist = Typist("a = open(x)\n\n\n\nc = open(z)\n")
    typist.replace("open(x)", "open(x, encoding='utf-8')")
    assert next_lines(typist) == ["c = open(z, encoding='utf-8')"]


def test_lines_that_are_deleted_are_an_example_the_second_time() -> None:
    typist = Typist("log(a)\nx = 1\nx = 2\nx = 3\nlog(b)\nx = 1\nx = 2\nx = 3\nlog(c)\n")
    typist.replace("log(a)\n", "")
    assert next_places(typist) is None
    typist.replace("log(b)\n", "")
    found = next_places(typist)
    assert found is not None
    assert [place.applied(typist.text) for place in found.one_by_one.places] == ["x = 1\nx = 2\nx = 3\n" * 2]


def test_a_name_that_nothing_binds_is_not_spread() -> None:
    typist = Typist("get(1)\n\n\nget(2)\n")
    typist.replace("get(1)", "get(1, limit)")
    assert next_lines(typist) == []


def test_a_place_that_does_not_know_a_name_of_the_edit_is_left_out() -> None:
    typist = Typist("def f(limit):\n    a = 1\n    get(1)\n    b = 1\n    get(2)\n\n\ndef g():\n    get(3)\n")
    typist.replace("get(1)", "get(1, limit)")
    assert next_lines(typist) == ["get(2, limit)"]


def test_what_changed_places_is_not_changed_back() -> None:
    typist = Typist("emit(a, 'x')\n\n\n\nemit(b, 'y')\n")
    typist.replace("emit(a, 'x')", "emit('x', a)")
    assert next_lines(typist) == ["emit('y', b)"]


@pytest.mark.parametrize(
    ("text", "is_in_progress"),
    [("fetch|(a)", True), ("fetch(|a)", False), ("f|(a) + f(b)", False), ("get(a, 1|)", True), ("get(a|)", True)],
)
def test_a_new_word_may_go_on(text: str, is_in_progress: bool) -> None:
    offset = text.index("|")
    typist = Typist("x\n")
    typist.replace("x", text.replace("|", ""))
    assert typist.edits.newest is not None
    assert typist.edits.newest.is_in_progress(offset) == is_in_progress


def test_a_syntax_error_elsewhere_does_not_matter() -> None:
    typist = Typist("a = f(1)\n\n\nb = f(2)\n\n\n)\n")
    typist.replace("f(1)", "g(1)")
    assert next_lines(typist) == ["b = g(2)"]


def test_a_file_keeps_its_line_ends() -> None:
    typist = Typist("f(1)\r\n\r\n\r\nf(\r\n    2,\r\n)\r\n")
    typist.replace("f(1)", "with g():\r\n    f(1)")
    found = next_places(typist)
    assert found is not None
    (place,) = found.one_by_one.places
    assert place.applied(typist.text).endswith("with g():\r\n    f(\r\n        2,\r\n    )\r\n")
