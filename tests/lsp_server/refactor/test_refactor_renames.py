"""A declaration gets another name: its uses follow, and what only has the same name does not."""

# ruff: noqa: E501  a file a line

from pathlib import Path

import pytest
from support.refactor_case import doubts, repeated, rules_of, sure_edit, workspace

# Each text has the old name as OLD where it is the same thing, as ALSO where it is another one, and as DECL once.
LOCALS = [
    ("python", "def f(DECL, b):\n    c = OLD + b.ALSO\n    def g():\n        return OLD\n    def h(ALSO):\n        return ALSO\n    return q(c, ALSO=1)\n\n\nx = ALSO\n"),
    ("python", "def f():\n    DECL = g()\n    OLD, b = OLD, 1\n    for c in OLD:\n        OLD += c\n    return [ALSO for ALSO in b], f'{OLD}'\n"),
    ("python", "with g() as DECL:\n    OLD()\ntry:\n    h()\nexcept E as error:\n    i(OLD.ALSO)\n"),
    ("python", "with g() as (DECL, a):\n    h((OLD, a), [OLD])\n    b = (OLD, 1)\n"),
    ("python", "DECL = 1\n\n\ndef f():\n    global OLD\n    OLD = 2\n\n\ndef g():\n    ALSO = 3\n    def h():\n        nonlocal ALSO\n        ALSO = 4\n    return ALSO\n"),
    ("typescript", "function f(DECL: number) {\n  const g = (ALSO: number) => ALSO + 1;\n  if (OLD) {\n    const ALSO = 2;\n    a.ALSO(ALSO);\n  }\n  return { ALSO: OLD };\n}\n"),
    ("typescript", "function f() {\n  let DECL;\n  for (OLD of a) g(OLD);\n  for (const ALSO of b) g(ALSO);\n}\n"),
    ("go", "package p\n\nfunc f(DECL int) (int, error) {\n\tfor ALSO := range a {\n\t\tg(ALSO)\n\t}\n\tb, err := h(OLD)\n\tif err != nil {\n\t\tOLD = b.ALSO\n\t}\n\treturn OLD, err\n}\n"),
    ("rust", "fn f(a: u8) -> u8 {\n    let mut DECL = a;\n    {\n        let ALSO = OLD.clone();\n        g(ALSO);\n    }\n    OLD += 1;\n    println!(\"{}\", OLD);\n    let ALSO = OLD + 1;\n    ALSO\n}\n"),
    ("java", "class A {\n    int ALSO;\n    int f(int DECL) {\n        this.ALSO = OLD;\n        return OLD + g(ALSO -> ALSO + 1).ALSO;\n    }\n    int h() { return ALSO; }\n}\n"),
    ("cpp", "int f(const std::string& DECL) {\n  for (auto ALSO : g()) h(ALSO);\n  auto b = [&](int c) { return c + OLD.size(); };\n  return b(a->ALSO) + OLD[0];\n}\nvoid g(int ALSO) { h(ALSO); }\n"),
    ("php", "<?php\nfunction f($DECL) {\n    $b = \"a $OLD b\";\n    return $OLD->ALSO + g($OLD);\n}\nfunction h($ALSO) { return $ALSO; }\n"),
]  # fmt: skip
MEMBERS = [
    ("python", "class A:\n    def __init__(self, b):\n        self.DECL = b\n\n    def f(self, ALSO):\n        return self.OLD + ALSO\n\n\nclass B:\n    def g(self):\n        self.ALSO = 1\n        return self.ALSO\n"),
    ("typescript", "class A {\n  private DECL = 1;\n  f(ALSO: number) {\n    return this.OLD + ALSO;\n  }\n}\nclass B {\n  ALSO = 2;\n  g() { return this.ALSO; }\n}\n"),
    ("java", "class A {\n    private final C DECL;\n    A(C ALSO) { this.OLD = ALSO; }\n    int f() { return OLD.g() + this.OLD.h(); }\n}\nclass B {\n    C ALSO;\n    int g() { return ALSO.f(); }\n}\n"),
    ("cpp", "class A {\n public:\n  int f() { return OLD + this->OLD; }\n private:\n  int DECL;\n};\nint A::g() { return OLD; }\nclass B {\n  int ALSO;\n  int g() { return ALSO; }\n};\n"),
    ("rust", "struct A {\n    DECL: u8,\n}\nstruct B {\n    ALSO: u8,\n}\nimpl A {\n    fn f(&self, ALSO: u8) -> A {\n        g(self.OLD);\n        A { OLD: ALSO }\n    }\n}\nimpl B {\n    fn f(&self) -> u8 {\n        B { ALSO: 1 }.f() + self.ALSO\n    }\n}\n"),
    ("ruby", "class A\n  def initialize(b)\n    @DECL = b\n  end\n  def f\n    @OLD + g\n  end\nend\nclass B\n  def g\n    @ALSO = 1\n  end\nend\n"),
    ("go", "package p\n\ntype A struct {\n\tDECL int\n}\ntype B struct {\n\tALSO int\n}\n\nfunc (a *A) F(b *B) A {\n\ta.OLD = b.ALSO\n\treturn A{OLD: 1}\n}\n"),
]  # fmt: skip


def texts(text: str, new: str = "total_sum") -> tuple[str, str, str]:
    """Return a text before an edit of the declaration, right after it, and when all uses followed."""
    old = "sum_of_all"
    named = text.replace("ALSO", old)
    before, after, done = (
        named.replace("DECL", one).replace("OLD", other) for one, other in ((old, old), (new, old), (new, new))
    )
    return before, after, done


@pytest.mark.parametrize(("name", "text"), LOCALS, ids=[row[0] for row in LOCALS])
def test_the_uses_of_a_local_follow(name: str, text: str) -> None:
    before, after, done = texts(text)
    assert sure_edit(name, after, (before, after)).applied(after) == done


@pytest.mark.parametrize(("name", "text"), MEMBERS, ids=[row[0] for row in MEMBERS])
def test_the_uses_of_a_member_follow_in_its_class(name: str, text: str) -> None:
    before, after, done = texts(text)
    assert sure_edit(name, after, (before, after)).applied(after) == done


SHORTHAND = [
    ("typescript", "function f(old, b) {\n  return { old, b };\n}\n", "function f(new_one, b) {\n  return { old: new_one, b };\n}\n"),
    ("typescript", "function f({ old, b }) {\n  return old + b;\n}\n", "function f({ new_one, b }) {\n  return new_one + b;\n}\n"),
    ("rust", "fn f(old: u8) -> A {\n    A { old, b: 1 }\n}\n", "fn f(new_one: u8) -> A {\n    A { old: new_one, b: 1 }\n}\n"),
    ("rust", "struct A {\n    old: u8,\n}\n\nfn f(A { old }: A, old_b: u8) -> A {\n    A { old: old_b }\n}\n", "struct A {\n    new_one: u8,\n}\n\nfn f(A { new_one: old }: A, old_b: u8) -> A {\n    A { new_one: old_b }\n}\n"),
    ("python", "def f(old):\n    return old\n\n\nf(old=1)\n", "def f(new_one):\n    return new_one\n\n\nf(new_one=1)\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "before", "done"), SHORTHAND)
def test_a_name_that_stands_for_a_key_too_becomes_both(name: str, before: str, done: str) -> None:
    after = before.replace("old", "new_one", 1)
    assert sure_edit(name, after, (before, after)).applied(after) == done


def test_a_statement_that_changes_more_than_a_name_is_an_example_as_before() -> None:
    before, text = "def f():\n    a_one = get_it(1)\n    return a_one\n", "def g():\n    a_one = get_it(1)\n"
    after = before.replace("a_one = get_it", "b_one = find_it")
    assert rules_of("python", (before, after)) == ["a_one = get_it($X0) → b_one = find_it($X0)"]
    assert repeated("python", before, after, text) == text.replace("a_one = get_it", "b_one = find_it")


CLASHES = [
    ("python", "def f(DECL, NEW):\n    return OLD + NEW\n"),
    ("go", "package p\n\nfunc f(DECL int) int {\n\tNEW := 1\n\treturn OLD + NEW\n}\n"),
    ("java", "class A {\n    int f(int DECL) { int NEW = 1; return OLD + NEW; }\n}\n"),
    ("rust", "fn f(DECL: u8) -> u8 {\n    let NEW = 1;\n    OLD + NEW\n}\n"),
    ("typescript", "class A {\n  DECL = 1;\n  NEW = 2;\n  f() { return this.OLD; }\n}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), CLASHES, ids=[row[0] for row in CLASHES])
def test_a_name_that_is_taken_there_is_doubtful(name: str, text: str) -> None:
    before, after, _ = texts(text.replace("NEW", "total_sum"))
    edit = sure_edit(name, after, (before, after))
    assert not edit.edits
    assert set(doubts(edit)) == {"`total_sum` is something else there"}


@pytest.mark.parametrize(("name", "text"), [*LOCALS, *MEMBERS])
def test_uses_that_the_user_changed_are_not_edited_again(name: str, text: str) -> None:
    before, _, done = texts(text)
    assert sure_edit(name, done, (before, done)).applied(done) == done


def test_another_declaration_of_the_name_is_doubtful() -> None:
    before = "def f(fname):\n    return fname\n\n\ndef g(fname):\n    return fname\n"
    after = before.replace("f(fname)", "f(filename)", 1)
    edit = sure_edit("python", after, (before, after))
    assert edit.applied(after) == after.replace("return fname", "return filename", 1)
    assert doubts(edit) == ["another declaration has this name"] * 2


def test_another_loop_that_sets_the_same_variable_is_doubtful() -> None:
    before = "for a, item in b:\n    f(item)\n\n\nfor item in c:\n    f(item)\n"
    after = before.replace("item", "entry", 1)
    edit = sure_edit("python", after, (before, after))
    assert edit.applied(after) == before.replace("item", "entry", 2)
    assert doubts(edit) == ["another loop sets it"] * 2


SET_ANEW = [
    ("python", "def f(a):\n    item = g(a)\n    while item:\n        NEW, b = h(item)\n\n\ndef k():\n    item = 1\n"),
    ("php", "<?php\nfunction f($a) {\n    $item = g($a);\n    if ($a) {\n        $NEW = h($item);\n    }\n}\n"),
    ("ruby", "def f(a)\n  item = g(a)\n  NEW = h(item) if a\nend\n\ndef k\n  item = 1\nend\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), SET_ANEW, ids=[row[0] for row in SET_ANEW])
def test_a_name_that_changed_where_it_is_set_anew_makes_all_its_uses_doubtful(name: str, text: str) -> None:
    before, after = text.replace("NEW", "item"), text.replace("NEW", "entry")
    edit = sure_edit(name, after, (before, after))
    assert not edit.edits
    assert "the name is set above the example too" in doubts(edit)


def test_a_copy_beside_a_function_makes_its_new_name_doubtful() -> None:
    before = "def load_all():\n    return 1\n\n\ndef load_all():\n    return 2\n\n\nload_all()\n"
    after = before.replace("load_all", "load_each", 1)
    edit = sure_edit("python", after, (before, after))
    assert set(doubts(edit)) == {"the file has several functions of this name"}


def test_what_the_file_exports_keeps_its_name() -> None:
    before = "import { wait } from 'b';\n\nexport { wait };\n"
    after = before.replace("wait", "pause", 1)
    assert repeated("typescript", before, after, after) == "import { pause } from 'b';\n\nexport { pause as wait };\n"


OTHERS = [
    (
        "python",
        {
            "tools/helpers.py": "def load_all(x):\n    return x\n\n\nload_all(1)\n",
            "a.py": "from tools.helpers import load_all\n\n\nload_all(2)\n",
            "b.py": "from tools import helpers\n\n\nhelpers.load_all(3)\nother.load_all(3)\n",
            "c.py": "from elsewhere import load_all\n\n\nload_all(4)\n",
            "d.py": "from tools.helpers import load_all as load\n\n\nload(5)\n",
            "e.py": "import tools.helpers\nimport others.helpers\n\ntools.helpers.load_all(6)\nhelpers.load_all(6)\n",
        },
        {
            "tools/helpers.py": "def load_each(x):\n    return x\n\n\nload_each(1)\n",
            "a.py": "from tools.helpers import load_each\n\n\nload_each(2)\n",
            "b.py": "from tools import helpers\n\n\nhelpers.load_each(3)\nother.load_all(3)\n",
            "d.py": "from tools.helpers import load_each as load\n\n\nload(5)\n",
            "e.py": "import tools.helpers\nimport others.helpers\n\ntools.helpers.load_each(6)\nhelpers.load_all(6)\n",
        },
    ),
    (
        "python",
        {"tools/lib.py": "def load_all(x):\n    return x\n", "a.py": "from tools.lib import load_all\n\n\nload_all(2)\n"},
        {"tools/lib.py": "def load_each(x):\n    return x\n", "a.py": "from tools.lib import load_each\n\n\nload_each(2)\n"},
    ),
    (
        "rust",
        {
            "src/event.rs": "pub fn load_all() -> u8 { 1 }\nfn all() -> u8 { load_all() }\n",
            "src/io.rs": "use crate::{event, event::{self as e, load_all}};\nfn f() { load_all(); }\n",
            "src/old.rs": "use elsewhere::{load_all, Io};\nfn f() -> Io { load_all() }\n",
            "tests/t.rs": "use my_crate::{load_all, Io};\nfn f() -> Io { load_all() }\n",
            "Cargo.toml": "[package]\nname = \"my-crate\"\n",
        },
        {
            "src/event.rs": "pub fn load_each() -> u8 { 1 }\nfn all() -> u8 { load_each() }\n",
            "src/io.rs": "use crate::{event, event::{self as e, load_each}};\nfn f() { load_each(); }\n",
            "tests/t.rs": "use my_crate::{load_each, Io};\nfn f() -> Io { load_each() }\n",
        },
    ),
    (
        "typescript",
        {
            "src/load.ts": "export function load_all(x: number) {\n  return x;\n}\n",
            "a.ts": 'import { load_all } from "./src/load";\n\nload_all(2);\n',
            "b.ts": 'import * as load from "./src/load.js";\n\nload.load_all(3);\n',
            "c.ts": 'import { load_all } from "elsewhere";\n\nload_all(4);\n',
        },
        {
            "src/load.ts": "export function load_each(x: number) {\n  return x;\n}\n",
            "a.ts": 'import { load_each } from "./src/load";\n\nload_each(2);\n',
            "b.ts": 'import * as load from "./src/load.js";\n\nload.load_each(3);\n',
        },
    ),
    (
        "python",
        {
            "conftest.py": "@pytest.fixture\ndef load_all(tmp):\n    return tmp\n\n\n@pytest.fixture\ndef b(load_all):\n    return load_all\n",
            "test_a.py": "def test_a(load_all):\n    assert load_all\n\n\ndef helper(load_all):\n    return load_all\n",
            "test_b.py": "@pytest.fixture\ndef load_all():\n    return 1\n\n\ndef test_b(load_all):\n    assert load_all\n",
            "test_c.py": '@pytest.mark.usefixtures("load_all")\ndef test_c():\n    g("load_all")\n',
        },
        {
            "conftest.py": "@pytest.fixture\ndef load_each(tmp):\n    return tmp\n\n\n@pytest.fixture\ndef b(load_each):\n    return load_each\n",
            "test_a.py": "def test_a(load_each):\n    assert load_each\n\n\ndef helper(load_all):\n    return load_all\n",
            "test_c.py": '@pytest.mark.usefixtures("load_each")\ndef test_c():\n    g("load_all")\n',
        },
    ),
    (
        "java",
        {
            "Clinic.java": "interface Clinic {\n    Owner load_all(int id);\n}\n",
            "Jdbc.java": "class Jdbc implements Clinic {\n    public Owner load_all(int id) { return load_all(id + 1); }\n}\n",
            "Test.java": "class Test {\n    Clinic clinic;\n    void load_all() { this.clinic.load_all(1); }\n}\n",
            "Use.java": "class Use {\n    private Clinic clinic;\n    void f(Clinic c) { this.clinic.load_all(1); c.load_all(load_all); g.load_all = 3; }\n}\n",
        },
        {
            "Clinic.java": "interface Clinic {\n    Owner load_each(int id);\n}\n",
            "Jdbc.java": "class Jdbc implements Clinic {\n    public Owner load_each(int id) { return load_each(id + 1); }\n}\n",
            "Test.java": "class Test {\n    Clinic clinic;\n    void load_all() { this.clinic.load_each(1); }\n}\n",
            "Use.java": "class Use {\n    private Clinic clinic;\n    void f(Clinic c) { this.clinic.load_each(1); c.load_each(load_all); g.load_all = 3; }\n}\n",
        },
    ),
    (
        "cpp",
        {
            "load.cc": "int load_all(int x) { return x; }\n",
            "load.h": "int load_all(int x);\n",
            "use.cc": "int f(int load_all) { return load_all; }\nint g() { return load_all(2) + a.load_all; }\n",
        },
        {
            "load.cc": "int load_each(int x) { return x; }\n",
            "load.h": "int load_each(int x);\n",
            "use.cc": "int f(int load_all) { return load_all; }\nint g() { return load_each(2) + a.load_all; }\n",
        },
    ),
    (
        "go",
        {
            "p/load.go": "package p\n\nfunc load_all(x int) int { return x }\n",
            "p/use.go": "package p\n\nfunc f(a T) int { return load_all(1) + a.load_all }\n",
        },
        {
            "p/load.go": "package p\n\nfunc load_each(x int) int { return x }\n",
            "p/use.go": "package p\n\nfunc f(a T) int { return load_each(1) + a.load_all }\n",
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "files", "done"), OTHERS, ids=[f"{row[0]} {next(iter(row[1]))}" for row in OTHERS])
def test_the_uses_in_other_files_follow(tmp_path: Path, name: str, files: dict[str, str], done: dict[str, str]) -> None:
    found = workspace(tmp_path, name, files, "load_all", "load_each")
    now = {path: (tmp_path / path).read_text() for path in files}
    after = {path: found[path].edit.applied(text) if path in found else text for path, text in now.items()}
    assert after == {**files, **done}


RIVALS = [
    ("python", "class A:\n    def load_all(self):\n        return self.load_all()\n", "class B:\n    def load_all(self):\n        return self.load_all()\n\n\na.load_all()\n", "b.py"),
    ("java", "class A {\n    int load_all() { return load_all(); }\n}\n", "class B {\n    int load_all() { return c.load_all(); }\n}\n", "B.java"),
    ("typescript", "class A {\n  load_all() { return this.load_all(); }\n}\n", "class B {\n  load_all() { return c.load_all(); }\n}\n", "b.ts"),
    ("cpp", "class A {\n  int load_all() { return load_all(); }\n};\n", "class B {\n  int load_all() { return c->load_all(); }\n};\n", "b.cc"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "other", "path"), RIVALS, ids=[row[0] for row in RIVALS])
def test_a_method_that_another_class_has_too_is_doubtful(
    tmp_path: Path, name: str, text: str, other: str, path: str
) -> None:
    found = workspace(tmp_path, name, {f"x{path}": text, path: other}, "load_all", "load_each")
    assert found[f"x{path}"].edit.applied("").count("load_each") == 1
    assert not found[path].edit.edits
    assert [one.phrase for one in found[path].edit.left_out] == ["doubtful: `B` declares `load_all` too"]


MADE = [
    ("python", "class A:\n    def load_all(self):\n        return 1\n", "class B:\n    def load_all(self):\n        return 1\n\n\na(A(x).load_all())\n", "b.py"),
    ("java", "class A {\n    int load_all() { return 1; }\n}\n", "class B {\n    int load_all() { return 1; }\n    int f() { return new A(x).load_all(); }\n}\n", "B.java"),
    ("typescript", "class A {\n  load_all() { return 1; }\n}\n", "class B {\n  load_all() { return 1; }\n}\nnew A(x).load_all();\n", "b.ts"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "other", "path"), MADE, ids=[row[0] for row in MADE])
def test_a_method_of_a_value_that_was_just_made_follows(
    tmp_path: Path, name: str, text: str, other: str, path: str
) -> None:
    found = workspace(tmp_path, name, {f"x{path}": text, path: other}, "load_all", "load_each")
    assert found[path].edit.applied(other) == other.replace("A(x).load_all", "A(x).load_each")


NEVER = [
    ("go", {"p/a.go": "package p\n\nfunc New() int { return 1 }\n", "q/b.go": 'package q\n\nimport "errors"\n\nvar e = errors.New("x")\n'}, "New", "Make"),
    ("c", {"a.c": "static int read_all(int x) { return x; }\n", "b.c": "int f(void) { return read_all(2); }\n"}, "read_all", "take_all"),
    ("php", {"a.php": "<?php\n$the_one = 1;\n", "b.php": "<?php\n$a = $the_one;\n"}, "the_one", "the_two"),
    ("typescript", {"a.ts": "type A = { load_all: number };\nfunction f(load_all: A) { return load_all; }\n", "b.ts": "const load_all = 1;\ng(load_all);\n"}, "load_all", "load_each"),
    ("python", {"a.py": "import b\n\n\ndef read_all():\n    return 1\n", "b.py": "def read_all():\n    return read_all()\n"}, "read_all", "take_all"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "files", "old", "new"), NEVER, ids=[row[0] for row in NEVER])
def test_the_same_name_of_something_else_is_never_edited(
    tmp_path: Path, name: str, files: dict[str, str], old: str, new: str
) -> None:
    assert not any(one.edit.edits for one in workspace(tmp_path, name, files, old, new).values())


def test_several_methods_of_one_name_are_doubtful() -> None:
    before = "class A {\n    int load(int a) { return load(1); }\n    int load(long a) { return 2; }\n}\n"
    after = before.replace("load(int", "take(int")
    edit = sure_edit("java", after, (before, after))
    assert not edit.edits
    assert doubts(edit) == ["`A` has several functions of this name"] * 2


def test_a_macro_with_a_body_is_no_declaration() -> None:
    text = "TEST(A, C) { g(); }\n"
    example = ("TEST(A, B) { f(); }\n", "TEST_F(A, B) { f(); }\n")
    assert repeated("cpp", *example, text) == "TEST_F(A, C) { g(); }\n"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("cpp", "A f(S ONE) { return g(pump); }\nB h(S TWO) { return k(1, pump); }\nC i(S pump) { return pump; }\n"),
        ("python", "def f(ONE):\n    return pump.x\n\n\ndef h(TWO):\n    return 1, pump\n\n\ndef i(pump):\n    return pump\n"),
        ("javascript", "function f(ONE) { g(pump); }\nfunction h(TWO) { k(1, pump); }\nfunction i(pump) { return pump; }\n"),
    ],
)  # fmt: skip
def test_two_renamed_declarations_say_that_all_of_the_file_are_meant(language: str, text: str) -> None:
    plain, one, two = (
        text.replace("ONE", a).replace("TWO", b) for a, b in (("pump", "pump"), ("valve", "pump"), ("valve", "valve"))
    )
    assert "another declaration has this name" in doubts(sure_edit(language, one, (plain, one)))
    assert sure_edit(language, two, (plain, two)).applied(two) == plain.replace("pump", "valve")


KEYS = [
    ("typescript", "const a: A = { DECL: 1, b: 2 };\nclass A {\n  OLD = 0;\n  f() { return this.OLD + ALSO; }\n}\nconst ALSO = g({ OLD: 3 }) + a.OLD;\n"),
    ("javascript", "class A {\n  constructor() { this.OLD = 0; }\n}\nconst ALSO = g({ DECL: 1 });\nf({ OLD: ALSO }, new A().OLD);\n"),
    ("go", "package p\n\nvar a = A{DECL: 1}\n\ntype A struct {\n\tOLD int\n}\n\nfunc f(ALSO int, a A) int { return ALSO + a.OLD }\n"),
    ("rust", "static A1: A = A { DECL: 1, b: 2 };\nstruct A {\n    OLD: u8,\n    b: u8,\n}\nfn f(a: A, ALSO: u8) -> u8 {\n    ALSO + a.OLD\n}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), KEYS)
def test_a_key_that_got_another_name_takes_the_member_of_its_type_along(name: str, text: str) -> None:
    before, after, done = texts(text)
    edit = sure_edit(name, after, (before, after))
    assert edit.applied(after) == done


def test_a_variable_that_has_the_value_of_a_renamed_member_is_listed() -> None:
    before = "class A { a_b = 1; }\ng({ a_b: 2 });\nfunction f(a: A) {\n  const a_b = a.a_b;\n  return a_b;\n}\n"
    after = before.replace("g({ a_b", "g({ c_d")
    edit = sure_edit("typescript", after, (before, after))
    assert edit.applied(after) == after.replace("a.a_b", "a.c_d").replace("{ a_b =", "{ c_d =")
    assert doubts(edit) == ["it is a variable that has its value"] * 2


def test_a_key_of_several_types_of_its_file_is_an_example_as_before() -> None:
    text = "class A { a_b = 1; }\nclass B { a_b = 2; }\nf({ a_b: 3 });\n"
    after = text.replace("a_b: 3", "c_d: 3")
    assert sure_edit("typescript", after, (text, after)).edits == ()


def test_two_traits_that_references_implement_are_no_kin(tmp_path: Path) -> None:
    files = {
        "src/put.rs": "pub trait Put {\n    fn load_all(&self);\n    fn both(&self) { self.load_all() }\n}\n\nimpl<'a> Put for &'a A {\n    fn load_all(&self) { a() }\n}\n",
        "src/take.rs": "pub trait Take {\n    fn load_all(&self);\n    fn both(&self) { self.load_all() }\n}\n\nimpl<'a> Take for &'a B {\n    fn load_all(&self) { b() }\n}\n",
    }
    found = workspace(tmp_path, "rust", files, "load_all", "load_each")
    assert [path for path, one in found.items() if one.edit.edits] == ["src/put.rs"]
    now = (tmp_path / "src/put.rs").read_text()
    assert found["src/put.rs"].edit.applied(now) == files["src/put.rs"].replace("load_all", "load_each")
