"""Qualified names: each language nests them in its own way, and no place of one is missed or mistaken for another."""

# ruff: noqa: E501  a file a line

import pytest
from support.refactor_case import doubts, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.notation import described, rules_of_code

NAMES = [
    ("cpp", "old::Thing", "neu::Item",
     "void f() {\n    OLD a = OLD::make();\n    OLD::make();\n    ::OLD::Kind k = OLD::kRed;\n    g(OLD::Part::make());\n}\nclass D : public OLD { using OLD::OLDER; };\n"),
    ("rust", "old::Thing", "neu::Item",
     "fn f(a: OLD) -> OLD { OLD::make(); let b: OLD::Kind = OLD::<u8>::new(); match a { OLD::A => b, _ => b } }\nimpl OLD {}\n"),
    ("php", "old\\Thing", "neu\\Item",
     "<?php\nOLD::make();\n$a = new OLD(OLD::FOO);\nfunction f(OLD $a): OLD { return $a instanceof OLD; }\nclass B extends OLD {}\n"),
    ("java", "old.Thing", "neu.Item",
     "class A extends OLD { void f() { OLD.make(); OLD a = new OLD(); OLD.Kind k; List<OLD> l; var m = OLD::make; } Thing b; old c; }\n"),
    ("csharp", "old.Thing", "neu.Item",
     "class A : OLD { OLD F() { OLD.Make(); OLD a = new OLD(); OLD.Kind k; List<OLD> l; return a as OLD; } Thing b; old c; }\n"),
    ("typescript", "old.Thing", "neu.Item",
     "OLD.make();\nlet a: OLD = new OLD();\nlet b: OLD.Kind;\nclass A extends OLD implements OLD {}\nlet c: Thing; let d: old;\n"),
    ("kotlin", "old.Thing", "neu.Item",
     "class A : OLD() { fun f() { OLD.make(); val a: OLD = OLD(); val b: List<OLD> = x; a as OLD } }\nval c: Thing = 1\n"),
    ("swift", "old.Thing", "neu.Item",
     "func f() { OLD.make(); let a: OLD = OLD(); let b: [OLD] = x; a as OLD }\nlet c: Thing = 1\nlet d: old = 1\n"),
    ("scala", "old.Thing", "neu.Item",
     "object A { def f = { OLD.make(); val a: OLD = new OLD(); val b: List[OLD] = x; val c: Thing = y } }\n"),
    ("go", "old.Thing", "neu.Item",
     "package p\n\nfunc f(a OLD) []OLD { OLD.Make(); b := &OLD{}; return []OLD{b.(OLD), OLD(c)} }\n"),
    ("ruby", "Old::Thing", "Neu::Item", "OLD.make\nOLD::make()\nclass A < OLD; end\nx = OLD::KIND\n"),
    ("python", "old.Thing", "neu.Item", "import old\n\n\nclass A(OLD):\n    x: list[OLD] = OLD.make()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "text"), NAMES, ids=[row[0] for row in NAMES])
def test_a_qualified_name_is_edited_wherever_it_is(name: str, old: str, new: str, text: str) -> None:
    text, after = (text.replace("OLDER", "Base").replace("OLD", one) for one in (old, new))
    language = language_for(name, "")
    done = rewrite(rules_of_code(Example(old, new), language), "file", text, language)
    assert done.applied(text) == after
    assert not done.left_out


OTHER_SYNTAX = [
    ("cpp", "old::Thing", "namespace old::Thing { int x; }\n", 1),
    ("java", "old.Thing", "import old.Thing;\nclass A { @old.Thing void f() {} }\n", 2),
    ("kotlin", "Old.Thing", "val b: Old.Thing.Kind = 2\n", 1),
    ("swift", "Old.Thing", "let b: Old.Thing.Kind = 2\n", 1),
    ("scala", "Old.Thing", "object A { val b: Old.Thing.Kind = 2 }\n", 1),
    ("php", "old\\Thing", "<?php\nold\\Thing\\make();\nnew \\old\\Thing();\nnew \\a\\old\\Thing();\n", 2),
    ("python", "old.Thing", "match z:\n    case old.Thing(): pass\n    case old.Thing.KIND: pass\n# old.Thing\na = 'old.Thing'\n", 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "text", "count"), OTHER_SYNTAX, ids=[row[0] for row in OTHER_SYNTAX])
def test_a_name_of_another_syntax_is_listed(name: str, old: str, text: str, count: int) -> None:
    language = language_for(name, "")
    rules = rules_of_code(Example(old, old.replace("Thing", "Item")), language)
    done = rewrite(rules, "file", text, language)
    assert not done.edits
    assert [text[one.span.start : one.span.end] for one in done.left_out] == [old] * count
    assert {one.reason for one in done.left_out} == {"it has another syntax here than in the example"}


CALLEES = [
    ("cpp", "old::Thing::make()", "void f() {\n    CALL;\n    auto a = CALL;\n    make();\n    Thing::make();\n    x::old::Thing::make();\n    old::Other::make();\n}\n"),
    ("rust", "old::Thing::make()", "fn f() {\n    CALL;\n    let a = CALL;\n    make();\n    Thing::make();\n    x::old::Thing::make();\n    old::Other::make();\n}\n"),
    ("php", "old\\Thing::make()", "<?php\nCALL;\n$a = CALL;\nmake();\nThing::make();\nother\\Thing::make();\n"),
    ("php", "old\\make()", "<?php\nCALL;\n$a = CALL;\nmake();\nold\\other();\nother\\make();\n"),
    ("java", "old.Thing.make()", "class A { void f() {\n    CALL;\n    var a = CALL;\n    make();\n    Thing.make();\n    old.Other.make();\n} }\n"),
    ("csharp", "old.Thing.make()", "class A { void f() {\n    CALL;\n    var a = CALL;\n    make();\n    Thing.make();\n    old.Other.make();\n} }\n"),
    ("typescript", "ns.Thing.make()", "CALL;\nconst a = CALL;\nmake();\nThing.make();\nns.Other.make();\n"),
    ("go", "ns.Thing.make()", "package p\n\nfunc f() {\n\tCALL\n\ta := CALL\n\tmake()\n\tThing.make()\n\tns.Other.make()\n}\n"),
    ("kotlin", "old.Thing.make()", "fun f() {\n    CALL; CALL\n    val a = CALL\n    make()\n    other.make()\n    old.Other.make()\n}\n"),
    ("swift", "old.Thing.make()", "func f() {\n    CALL; CALL\n    let a = CALL\n    make()\n    other.make()\n    old.Other.make()\n}\n"),
    ("scala", "ns.Thing.make()", "object A {\n  CALL\n  val a = CALL\n  make()\n  ns.Other.make()\n}\n"),
    ("ruby", "Ns::Thing.make()", "CALL\na = CALL\nmake()\nNs::Other.make()\nOther::Thing.make()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "text"), CALLEES, ids=[f"{row[0]} {row[1]}" for row in CALLEES])
def test_a_qualified_callee_gets_its_name_where_it_is_called_and_nowhere_else(name: str, old: str, text: str) -> None:
    new, language = old.replace("make", "create"), language_for(name, "")
    before, after = (text.replace("CALL", one) for one in (old, new))
    done = rewrite(rules_of_code(Example(old, new), language), "file", before, language)
    assert done.applied(before) == after


def test_the_name_of_a_template_is_no_variable() -> None:
    language = language_for("cpp", "")
    rules = rules_of_code(Example("boost::shared_ptr<Foo>", "std::shared_ptr<Foo>"), language)
    assert {described(rule) for rule in rules.rules} == {"boost::shared_ptr<$X0> → std::shared_ptr<$X0>"}


def test_a_member_of_a_module_is_no_name_that_a_file_has_to_define() -> None:
    language, text = language_for("typescript", ""), 'import * as old from "old";\nlet a: old.Thing;\n'
    done = rewrite(rules_of_code(Example("old.Thing", "old.Item"), language), "file", text, language)
    assert done.edits
    assert not done.unknown


IMPORTED = {
    "python": (
        "from .kinds import Call, Other\nfrom .z import Zed\n\nx: List[Call] = []\ndef f(c: Call, o: Other, z: Zed): self.Other(Other=1)\n",
        "List[Call]", "List[ft.Call]",
        "from .kinds import Call, Other\nfrom .z import Zed\n\nx: List[ft.Call] = []\ndef f(c: ft.Call, o: ft.Other, z: Zed): self.Other(Other=1)\n"),
    "typescript": (
        "import { a, b } from './m';\nimport c from './c';\nexport const f = x => { a(x); b(x); c(x.a); return { a, k: b }; };\n",
        " a(x)", " m.a(x)",
        "import { a, b } from './m';\nimport c from './c';\nexport const f = x => { m.a(x); m.b(x); c(x.a); return { a: m.a, k: m.b }; };\n"),
    "php": (
        "<?php\nuse G\\Psr7\\Request;\nuse G\\Psr7\\Uri;\nuse G\\Log;\nfunction f(Uri $u): Request { Log::f(); return new Request(Uri::of($u)); }\n",
        "new Request", "new Psr7\\Request",
        "<?php\nuse G\\Psr7\\Request;\nuse G\\Psr7\\Uri;\nuse G\\Log;\nfunction f(Psr7\\Uri $u): Psr7\\Request { Log::f(); return new Psr7\\Request(Psr7\\Uri::of($u)); }\n"),
    "rust": (
        "use std::cmp;\nuse std::io;\nfn f(a: u8) -> cmp::Ordering { io::x(); cmp::min(1, a); cmp::Ordering::Equal }\n",
        "cmp::min", "std::cmp::min",
        "use std::cmp;\nuse std::io;\nfn f(a: u8) -> std::cmp::Ordering { io::x(); std::cmp::min(1, a); std::cmp::Ordering::Equal }\n"),
}  # fmt: skip


@pytest.mark.parametrize("language", IMPORTED)
def test_an_imported_name_that_gets_a_qualifier_takes_the_others_of_its_module_along(language: str) -> None:
    text, old, new, changed = IMPORTED[language]
    example = text.replace(old, new)
    assert sure_edit(language, example, (text, example)).applied(example) == changed


def test_a_qualifier_that_another_file_does_not_know_is_doubtful_or_named() -> None:
    text = "<?php\nuse G\\Psr7\\Uri;\nf(new Uri(1));\n"
    example = text, text.replace("new Uri", "new Psr7\\Uri")
    other = "<?php\nuse G\\Psr7\\Uri;\nfunction g(Uri $u) {}\n"
    assert doubts(sure_edit("php", other, example)) == ["`Psr7`, which the edit uses, is not known here"]
    knows = other.replace("Uri;", "Uri;\nuse G\\Psr7;")
    assert sure_edit("php", knows, example).applied(knows) == knows.replace("g(Uri", "g(Psr7\\Uri")
    text = "from a.kinds import Call\nx = Call(1)\n"
    edit = sure_edit("python", "from a.kinds import Call\ny: Call\n", (text, text.replace("Call(1)", "ft.Call(1)")))
    assert (len(edit.edits), edit.unknown) == (1, ("ft",))


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_file_that_imports_only_other_names_of_the_module_follows_too(language: str) -> None:
    line = {
        "python": "from .kinds import Call\nx = f(Call)\n",
        "typescript": "import { Call } from './kinds';\nf(Call);\n",
    }[language]
    other = line.replace("Call", "Other")
    edit = sure_edit(language, other, (line, line.replace("f(Call", "f(kinds.Call")))
    assert edit.applied(other) == other.replace("f(Other", "f(kinds.Other")


@pytest.mark.parametrize(
    ("language", "text", "old", "new"),
    [
        ("python", "from m import api\ndef f(self): api.get(1); api.drop(2)\n", "api.get", "self.api.get"),
        (
            "typescript",
            "import { api } from 'm';\nclass A { f() { api.get(1); api.drop(2); } }\n",
            "api.get",
            "this.api.get",
        ),
    ],
)
def test_a_field_of_the_name_of_an_import_is_no_module(language: str, text: str, old: str, new: str) -> None:
    example = text.replace(old, new)
    assert sure_edit(language, example, (text, example)).edits == ()


FOLLOWING = {
    "python": (
        "from a.kinds import Call\nx = Call(1)\n",
        "from a.kinds import Call\nimport a.kinds as ft\nx = ft.Call(1)\n",
        "from a.kinds import Call\ny: Call\n",
        "import a.kinds as ft\nfrom a.kinds import Call\ny: ft.Call\n"),
    "php": (
        "<?php\nuse G\\Psr7\\Uri;\nf(new Uri(1));\n",
        "<?php\nuse G\\Psr7\\Uri;\nuse G\\Psr7;\nf(new Psr7\\Uri(1));\n",
        "<?php\nuse G\\Psr7\\Uri;\nfunction g(Uri $u) {}\n",
        "<?php\nuse G\\Psr7\\Uri;\nuse G\\Psr7;\nfunction g(Psr7\\Uri $u) {}\n"),
}  # fmt: skip


@pytest.mark.parametrize("language", FOLLOWING)
def test_the_import_of_a_qualifier_that_the_example_added_follows(language: str) -> None:
    before, after, other, changed = FOLLOWING[language]
    assert sure_edit(language, other, (before, after)).applied(other) == changed


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "from . import Call\nf(Call)\n", "from . import kinds\nf(kinds.Call)\n"),
        ("typescript", "import { Call } from '.';\nf(Call);\n", "import * as kinds from '.';\nf(kinds.Call);\n"),
    ],
)
def test_a_module_without_a_name_brings_no_other_files_along(language: str, before: str, after: str) -> None:
    assert sure_edit(language, "g(Call)\n", (before, after)).edits == ()


def test_another_module_s_name_takes_no_other_name_of_the_old_module_along() -> None:
    before = "use crate::{app, Result};\nfn f() -> Result<B> { app::g() }\n"
    text = before.replace("f()", "h()").replace("B", "C")
    edit = sure_edit(
        "rust", text, (before, before.replace("-> Result", "-> other::Result")), paths=("src/a.rs", "src/b.rs")
    )
    assert edit.applied(text) == text.replace("-> Result", "-> other::Result")
    assert not edit.left_out
