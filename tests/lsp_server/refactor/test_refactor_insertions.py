"""A statement that an example adds beside another one, and at the start of a function."""

# ruff: noqa: E501  a text a line

import pytest
from support.refactor_case import doubts, edit_of, reasons, repeated, rules_of, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.bindings import binds
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.learn.example import Example, NoRule
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.rules.matching import Match, match_at
from lsp_server.refactor.rules.pattern import Pattern

WRITE = ("def f(a):\n    a.write(1)\n", "def f(a):\n    a.write(1)\n    a.flush()\n")


@pytest.mark.parametrize(
    ("language", "head", "old", "new", "place", "changed"),
    [
        ("python", "def f(x):\n", "    x.write(1)\n", "    x.write(1)\n    x.flush()\n",
         "    x.write(y, 2)  # why\n", "    x.write(y, 2)  # why\n    x.flush()\n"),
        ("javascript", "function f(x) {\n", "  x.write(1);\n}\n", "  x.write(1);\n  x.flush();\n}\n",
         "    x.write(y, 2) // why\n}\n", "    x.write(y, 2) // why\n    x.flush()\n}\n"),
        ("typescript", "function f() {\n", "  const s = open(1);\n}\n", "  const s = open(1);\n  s.lock();\n}\n",
         "  const t = open(2);\n  go();\n}\n", "  const t = open(2);\n  t.lock();\n  go();\n}\n"),
        ("go", "package p\n\nfunc f() {\n", "\trows, err := db.Query(q)\n}\n",
         "\trows, err := db.Query(q)\n\tdefer rows.Close()\n}\n",
         "\tr, e := db.Query(p, 1) // all\n}\n", "\tr, e := db.Query(p, 1) // all\n\tdefer r.Close()\n}\n"),
        ("rust", "fn f() {\n", "    let mut w = open(a)?;\n}\n", "    let mut w = open(a)?;\n    w.start();\n}\n",
         "    let mut v = open(\n        b,\n    )?;\n    v.go()\n}\n",
         "    let mut v = open(\n        b,\n    )?;\n    v.start();\n    v.go()\n}\n"),
        ("java", "class A { void f() {\n", "    Foo b = a.open(c);\n} }\n", "    Foo b = a.open(c);\n    b.lock();\n} }\n",
         "    Foo d = a.open(e); /* e */\n} }\n", "    Foo d = a.open(e); /* e */\n    d.lock();\n} }\n"),
        ("php", "<?php\nfunction f() {\n", "    $b = open($c);\n}\n", "    $b = open($c);\n    lock($b);\n}\n",
         "    $d = open($e);\n}\n", "    $d = open($e);\n    lock($d);\n}\n"),
        ("cpp", "void f() {\n", "  Iter* i = db->New(o);\n}\n", "  Iter* i = db->New(o);\n  i->Seek();\n}\n",
         "  Iter* j = db->New(p);\n  use(j);\n}\n", "  Iter* j = db->New(p);\n  j->Seek();\n  use(j);\n}\n"),
    ],
)  # fmt: skip
def test_a_statement_after_another_one_follows_its_like(
    language: str, head: str, old: str, new: str, place: str, changed: str
) -> None:
    edit = edit_of(language, [(head + old, head + new)], head + place)
    assert edit.applied(head + place) == head + changed
    assert not edit.left_out


@pytest.mark.parametrize(
    ("language", "head", "old", "new", "place", "changed"),
    [
        ("python", "def f(x):\n", "    send(x)\n", "    check(x)\n    send(x)\n",
         "    go()\n    # now\n    send(y, 1)\n", "    go()\n    check(y)\n    # now\n    send(y, 1)\n"),
        ("javascript", "function f(x) {\n", "  send(x)\n}\n", "  check(x)\n  send(x)\n}\n",
         "  return 1\n  send(y)\n}\n", "  return 1\n  check(y)\n  send(y)\n}\n"),
        ("go", "package p\n\nfunc f(x T) {\n", "\tsend(x)\n}\n", "\tcheck(x)\n\n\tsend(x)\n}\n",
         "\tgo g()\n\tsend(y)\n}\n", "\tgo g()\n\tcheck(y)\n\n\tsend(y)\n}\n"),
        ("java", "class A { void f(T x) {\n", "    send(x);\n} }\n", "    check(x);\n    send(x);\n} }\n",
         "    for (T y : all) {\n        send(y);\n    }\n} }\n",
         "    for (T y : all) {\n        check(y);\n        send(y);\n    }\n} }\n"),
        ("php", "<?php\nclass A {\nfunction f() {\n", "    $this->call(1);\n}\n}\n",
         "    $this->expect(B::class);\n    $this->call(1);\n}\n}\n",
         "    $this->call(1);\n}\n\nfunction g() {\n    $b = 1;\n    $this->call(2);\n}\n}\n",
         "    $this->expect(B::class);\n    $this->call(1);\n}\n\nfunction g() {\n    $b = 1;\n"
         "    $this->expect(B::class);\n    $this->call(2);\n}\n}\n"),
    ],
)  # fmt: skip
def test_a_statement_before_another_one_precedes_its_like(
    language: str, head: str, old: str, new: str, place: str, changed: str
) -> None:
    # The parameter is used by what follows too: where nothing is above, the function's head would say less.
    above = {
        "python": "    go()\n",
        "javascript": "  go()\n",
        "go": "\tgo g()\n",
        "java": "    go();\n",
        "php": "    go();\n",
    }
    above_old, above_new = (head + above[language] + side for side in (old, new))
    assert repeated(language, above_old, above_new, head + place) == head + changed


@pytest.mark.parametrize(
    ("language", "old", "new", "text", "changed"),
    [
        ("go", "package p\n\nfunc TestA(t *testing.T) {\n\tf(t)\n}\n",
         "package p\n\nfunc TestA(t *testing.T) {\n\tt.Parallel()\n\tf(t)\n}\n",
         "package p\n\nfunc TestB(tt *testing.T) { // b\n\tg()\n}\n\nfunc help(t *testing.T) {\n\tg()\n}\n",
         "package p\n\nfunc TestB(tt *testing.T) { // b\n\ttt.Parallel()\n\tg()\n}\n\n"
         "func help(t *testing.T) {\n\tg()\n}\n"),
        ("python", 'def test_a(db):\n    """A."""\n    db.get()\n',
         'def test_a(db):\n    """A."""\n    db.clear()\n    db.get()\n',
         "def test_b(x, db):\n    x.put(db)\n\n\ndef test_c(x):\n    x.put()\n",
         "def test_b(x, db):\n    db.clear()\n    x.put(db)\n\n\ndef test_c(x):\n    x.put()\n"),
        ("java", "class A {\n  void testA(Db d) {\n    go();\n  }\n}\n",
         "class A {\n  void testA(Db d) {\n    d.clear();\n    go();\n  }\n}\n",
         "class B {\n    void testB(Db e)\n    {\n        go();\n    }\n    void testC(X e) {\n        go();\n    }\n}\n",
         "class B {\n    void testB(Db e)\n    {\n        e.clear();\n        go();\n    }\n"
         "    void testC(X e) {\n        go();\n    }\n}\n"),
        ("php", "<?php\nclass A {\n  function testA(Db $d) {\n    go();\n  }\n}\n",
         "<?php\nclass A {\n  function testA(Db $d) {\n    $d->clear();\n    go();\n  }\n}\n",
         "<?php\nclass B {\n  function testB(Db $e) {\n    go();\n  }\n}\n",
         "<?php\nclass B {\n  function testB(Db $e) {\n    $e->clear();\n    go();\n  }\n}\n"),
    ],
)  # fmt: skip
def test_a_statement_at_the_start_of_a_test_starts_those_with_the_same_parameter(
    language: str, old: str, new: str, text: str, changed: str
) -> None:
    assert repeated(language, old, new, text) == changed


def test_a_function_that_is_no_test_says_too_little_of_others() -> None:
    example = ("def f(a):\n    go()\n", "def f(a):\n    a.clear()\n    go()\n")
    edit = sure_edit("python", "def g(a):\n    stop()\n", example)
    assert doubts(edit) == ["only its syntax is as in the example"]


def test_what_a_statement_calls_says_more_than_the_head_of_a_function() -> None:
    example = ("def f(a):\n    send(a)\n", "def f(a):\n    check(a)\n    send(a)\n")
    assert rules_of("python", example) == ["send($X0$$R1) → check($X0); send($X0$$R1)"]
    two = ("def f(a, b):\n    send(a)\n", "def f(a, b):\n    check(a, b)\n    send(a)\n")
    assert rules_of("python", two) == ["def $N(a, b):$$B → def $N(a, b): check(a, b); $$B"]


def test_another_test_may_not_need_it() -> None:
    example = ("def test_a(db):\n    go()\n", "def test_a(db):\n    db.clear()\n    go()\n")
    edit = sure_edit("python", "def test_b(db):\n    go()\n", example)
    assert doubts(edit) == ["nothing here says that it needs what the edit adds"]


@pytest.mark.parametrize("language", ["go", "javascript", "cpp", "java"])
def test_a_statement_after_the_check_of_a_value_follows_both(language: str) -> None:
    texts = {
        "go": ("package p\n\nfunc f() error {\n", "\tr, err := db.Query(q)\n\tif err != nil {\n\t\treturn err\n\t}\n",
               "\tdefer r.Close()\n", "\tgo g()\n\treturn nil\n}\n"),
        "javascript": ("function f() {\n", "  const r = open(q);\n  if (!r) {\n    return;\n  }\n", "  r.lock();\n", "  go();\n}\n"),
        "cpp": ("void f() {\n", "  File* r = open(q);\n  if (!r) {\n    return;\n  }\n", "  r->lock();\n", "  go();\n}\n"),
        "java": ("class A { void f() {\n", "  F r = open(q);\n  if (r == null) {\n    return;\n  }\n", "  r.lock();\n", "  go();\n} }\n"),
    }  # fmt: skip
    head, both, added, end = texts[language]
    other = both.replace("q", "other, 2")
    example = (head + both + end, head + both + added + end)
    assert repeated(language, *example, head + other + end) == head + other + added + end


def test_the_value_of_a_block_and_a_statement_are_alike() -> None:
    old = "fn f(x: X) {\n    y();\n    x.go()\n}\n"
    text = "fn g(x: X) {\n    y();\n    x.go(); // go\n    let z = x.go();\n    if z { x.go() }\n}\n"
    edit = edit_of("rust", [(old, old.replace("    x.go()", "    x.init();\n    x.go()"))], text)
    assert edit.applied(text) == text.replace("    x.go(); //", "    x.init();\n    x.go(); //")
    assert reasons(edit) == [
        "it is a part of an expression here, and the edit is a statement",
        "other code is on its line",
    ]


def test_what_has_the_statement_already_is_no_place() -> None:
    text = "def f(a):\n    a.write(2)\n    a.flush()\n    a.write(3)\n    # soon\n    a.flush()\n"
    edit = edit_of("python", [WRITE], text)
    assert not edit.edits
    assert not edit.left_out


def test_what_has_the_statement_elsewhere_is_doubtful() -> None:
    text = "def g(a):\n    a.write(2)\n    go()\n    a.flush()\n"
    assert doubts(sure_edit("python", text, WRITE)) == ["what the edit adds is already there, on another line"]


def test_in_a_row_of_its_like_only_the_last_may_be_meant() -> None:
    old = "def f(a):\n    a.write(1)\n    a.write(2)\n    go()\n    a.write(3)\n    go()\n"
    new = old.replace("write(2)\n", "write(2)\n    a.flush()\n")
    edit = sure_edit("python", new, (old, new))
    assert edit.applied(new) == new.replace("write(3)\n", "write(3)\n    a.flush()\n")
    assert doubts(edit) == ["what the edit adds is already there, on another line"]


@pytest.mark.parametrize(
    ("language", "text", "added"),
    [
        ("python", "def f(a, b):\n    a.write(1)\n    if b:\n        a.write(2)\n    b.write(3)\n\n\n"
         "def g(a):\n    a.write(4)\n", "a.flush()"),
        ("javascript", "function f(a, b) {\n  a.write(1);\n  if (b) {\n    a.write(2);\n  }\n  b.write(3);\n}\n\n"
         "function g(a) {\n  a.write(4);\n}\n", "a.flush();"),
        ("go", "package p\n\nfunc f(a A, b B) {\n\ta.Write(1)\n\tif b.Ok() {\n\t\ta.Write(2)\n\t}\n\tb.Write(3)\n}\n\n"
         "func g(a A) {\n\ta.Write(4)\n}\n", "a.Flush()"),
        ("rust", "fn f(a: A, b: B) {\n    a.write(1);\n    if b.ok() {\n        a.write(2);\n    }\n    b.write(3);\n}\n\n"
         "fn g(a: A) {\n    a.write(4);\n}\n", "a.flush();"),
        ("java", "class C {\n  void f(A a, B b) {\n    a.write(1);\n    if (b.ok()) {\n      a.write(2);\n    }\n    b.write(3);\n  }\n\n"
         "  void g(A a) {\n    a.write(4);\n  }\n}\n", "a.flush();"),
        ("php", "<?php\nfunction f($a, $b) {\n  $a->write(1);\n  if ($b) {\n    $a->write(2);\n  }\n  $b->write(3);\n}\n\n"
         "function g($a) {\n  $a->write(4);\n}\n", "$a->flush();"),
        ("cpp", "void f(A* a, B* b) {\n  a->write(1);\n  if (b) {\n    a->write(2);\n  }\n  b->write(3);\n}\n\n"
         "void g(A* a) {\n  a->write(4);\n}\n", "a->flush();"),
    ],
)  # fmt: skip
def test_the_function_of_the_example_is_sure_and_others_are_not(language: str, text: str, added: str) -> None:
    def with_added(number: int, here: str) -> str:
        line = next(line for line in here.split("\n") if f"rite({number})" in line)
        return here.replace(line, f"{line}\n{line[: len(line) - len(line.lstrip())]}{added}")

    example = with_added(1, text)
    edit = sure_edit(language, example, (text, example))
    assert edit.applied(example) == with_added(2, example)
    assert doubts(edit) == [
        "its receiver is another one than in the example, and may have another type",
        "nothing here says that it needs what the edit adds",
    ]


def test_a_method_of_another_class_is_doubtful() -> None:
    text = "class B:\n    def g(self):\n        self.call(2)\n"
    old = "class A:\n    def f(self):\n        self.call(1)\n"
    assert doubts(sure_edit("python", text, (old, old + "        self.check()\n"))) == [
        "its object may be of another class"
    ]


def test_a_variable_of_the_example_is_another_one_elsewhere() -> None:
    old = "def f(a, log):\n    a.write(1)\n"
    text = "def g(a, log):\n    a.write(1)\n"
    edit = sure_edit("python", text, (old, old + "    log.add(a)\n"))
    assert doubts(edit) == ["`log`, which the edit uses, may be another variable here"]


@pytest.mark.parametrize(
    ("language", "old", "added", "text", "reason"),
    [
        ("python", "def f(a):\n    a.write(1)\n", "    a.flush()\n", "def f(a):\n    if a: a.write(1)\n",
         "other code is on its line"),
        ("javascript", "go();\na.write(1);\n", "a.flush();\n", "go();\nif (a) a.write(1);\n",
         "it is a body without a block, where no other statement has room"),
        ("cpp", "void f() {\n  a.write(1);\n", "  a.flush();\n}\n", "void f() {\n  if (a)\n    a.write(1);\n}\n",
         "it is a body without a block, where no other statement has room"),
        ("java", "class A { void f() {\n  a.write(1);\n", "  a.flush();\n} }\n",
         "class A { void f() {\n  a.write(1); go();\n} }\n", "other code is on its line"),
        ("go", "package p\n\nfunc f() {\n\tr, e := db.Query(q)\n", "\tdefer r.Close()\n}\n",
         "package p\n\nfunc f() {\n\t_, e := db.Query(q)\n}\n", "it has no variable where the example has the one that the edit uses"),
        ("python", "def f(a):\n    send(a)\n", "    check(a)\n", "def f(a):\n    send(make(a))\n",
         "it has no variable where the example has the one that the edit uses"),
        ("go", "package p\n\nfunc f() {\n\tr := db.Query(q)\n", "\tn := r.Count()\n}\n",
         "package p\n\nfunc f() {\n\tr := db.Query(q)\n\tn := 1\n}\n", "`n`, which the edit binds, is in use here"),
        ("php", "<?php\nfunction f() {\n  $r = get($q);\n", "  return $r;\n}\n",
         "<?php\nfunction f() {\n  $r = get($q);\n  go();\n}\n", "what follows it would never run"),
        ("javascript", "const a = open(b);\n", "[a.first] = a;\n", "const c = open(d)\n",
         "without a `;` its lines would be one statement"),
        ("go", "package p\n\nfunc TestA(t *testing.T) {\n", "\tt.Parallel()\n\tf(t)\n}\n",
         "package p\n\nfunc TestB(t *testing.T) {\n\tf(t)\n\tt.Parallel()\n}\n", "its body has what the edit adds"),
    ],
)  # fmt: skip
def test_a_place_without_room_for_the_statement_is_left_out(
    language: str, old: str, added: str, text: str, reason: str
) -> None:
    end = {"    a.flush()\n": "", "    check(a)\n": "", "a.flush();\n": "", "[a.first] = a;\n": ""}.get(
        added, added.partition("\n")[2]
    )
    edit = edit_of(language, [(old + end, old + added)], text)
    assert reasons(edit) == [reason]


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "def f(a):\n    a.write(1)\n", "def f(a):\n    a.write(1)\n    hide = True\n"),
        ("python", "def f(a):\n    return send(a)\n", "def f(a):\n    return send(a)\n    stop(a)\n"),
        ("python", "x = 0\n", "x = 0\nshow(x)\n"),
        ("python", "import os\n\nos.mkdir(a)\n", "import os\n\nos.mkdir(a)\nos.sync()\n"),
        ("python", "a.add(1)\n", "a.add(1)\na.add(2)\n"),
        ("javascript", "go();\n", '"use strict";\ngo();\n'),
        ("go", "package p\n\nfunc f() {\n\tg()\n}\n", "package p\n\nfunc f() {\n\tg()\n}\n\nfunc h() {\n}\n"),
        ("php", "<?php\nwrite($a);\n", "<?php\nwrite($a);\nshow(1);\n"),
        ("css", "a { color: rgb(1, 2, 3); }\n", "a { color: rgb(1, 2, 3); width: 1px; }\n"),
    ],
)
def test_a_statement_without_a_name_of_those_beside_it_is_no_example(language: str, before: str, after: str) -> None:
    with pytest.raises(NoRule, match="statements that are only added say nothing"):
        learn([Example(before, after)], language_for(language, ""))


def test_beside_another_edit_an_added_statement_is_no_example() -> None:
    assert rules_of("python", WRITE, ("old(x, 1)\n", "new(x, 1)\n")) == ["old($$R0_0) → new($$R0_0)"]


def test_more_than_two_sorts_of_added_statements_are_no_example() -> None:
    example = "".join(f"a.{name}(1)\ngo()\n" for name in ("read", "write", "seek"))
    after = "".join(f"a.{name}(1)\na.after_{name}()\ngo()\n" for name in ("read", "write", "seek"))
    with pytest.raises(NoRule, match="statements that are only added say nothing"):
        learn([Example(example, after)], language_for("python", ""))


@pytest.mark.parametrize(
    ("language", "one", "other", "text", "changed"),
    [
        ("python", ("a.write(1)\n", "a.write(1)\na.flush()\n"), ("b.c.write(x)\n", "b.c.write(x)\nb.c.flush()\n"),
         "d.write(2)\n", "d.write(2)\nd.flush()\n"),
        ("javascript", ("a.open(1);\n", "a.open(1);\nlog('open', a);\n"), ("b.shut(1);\n", "b.shut(1);\nlog('shut', b);\n"),
         "c.open(2);\nc.shut(3);\n", "c.open(2);\nlog('open', c);\nc.shut(3);\nlog('shut', c);\n"),
    ],
)  # fmt: skip
def test_two_examples_make_one_rule_or_two(
    language: str, one: tuple[str, str], other: tuple[str, str], text: str, changed: str
) -> None:
    assert edit_of(language, [one, other], text).applied(text) == changed


def test_the_time_for_a_block_of_many_places_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def counted(pattern: Pattern, node: Node) -> Match | None:
        nonlocal tried
        tried += 1
        return match_at(pattern, node)

    monkeypatch.setattr("lsp_server.refactor.places.insertion_places.match_at", counted)
    edit_of("python", [WRITE], "def g():\n" + "".join(f"    a{number}.write(1)\n" for number in range(200)))
    assert tried < 1000


def test_the_names_of_an_example_are_looked_up_once_for_all_its_added_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = 0

    def counted(leaf: Node, scope: Node) -> str:
        nonlocal looked
        looked += 1
        return binds(leaf, scope)

    monkeypatch.setattr("lsp_server.refactor.code.bindings.binds", counted)
    rules_of("python", ("a.write(1)\n" * 50, "a.write(1)\na.flush()\n" * 50))
    assert looked < 1000
