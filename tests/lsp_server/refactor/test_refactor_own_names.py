"""A declaration of a small random workspace gets another name: its uses follow, what only has the name does not."""

# ruff: noqa: E501  a file a line

import asyncio
import random
import re
from collections.abc import Iterator, Mapping, Sequence

import attrs
import pytest

from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.syntax import parse
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import with_contexts
from lsp_server.refactor.places.doubts import SURE
from lsp_server.refactor.rivals import with_rivals
from lsp_server.refactor.search import Caps, Found, Target, search

OLD, NEW = "load_it", "fetch_it"
CASES = 6


@attrs.frozen
class Workspace:
    """Code with DECL where a name is declared, USE where it is used, and ALSO where something else has it.

    `uses` are what follows the declaration in its file, and what other files have below their first lines. `others`
    pairs the path of a file and its first lines. `decoys` are declarations of other things, `apart` whole files.
    """

    path: str
    declaration: str
    uses: Sequence[str]
    others: Mapping[str, str]
    decoys: Sequence[str]
    apart: str


PHP_USES = ("function g#(USE $a): USE { return new USE(1); }\n", "class K# extends USE { }\n", "$x# = USE::class;\n")
JAVA_USES = (
    "class K# { USE a; USE f(USE b) { return new USE(1); } }\n",
    "class K# { Object f(Object o) { return (USE) o; } }\n",
    "class K# extends USE { }\n",
)
KOTLIN_DECOYS = (
    "fun f#(ALSO: Int): Int { return ALSO + 1 }\n",
    "fun f#(): Int {\n    val ALSO = 1\n    return ALSO\n}\n",
    "val s# = listOf(1).map { ALSO -> ALSO + 1 }\n",
    "class C# {\n    val ALSO = 1\n    fun g() = ALSO + this.ALSO\n}\n",
)
SWIFT_DECOYS = (
    "func f#(ALSO: Int) -> Int { return ALSO + 1 }\n",
    "func f#() -> Int {\n    let ALSO = 1\n    return ALSO\n}\n",
    "let s# = [1].map { ALSO in ALSO + 1 }\n",
    "func f#() {\n    for ALSO in 1...3 { g(ALSO) }\n}\n",
)
RUST_USES = (
    "fn f#() {\n    h(USE(1));\n}\n",
    "fn f#() {\n    assert_eq!(USE(1), 2);\n}\n",
    "fn f#() {\n    a.map(USE);\n}\n",
)
PYTHON_USES = ("def f#(k=USE):\n    return USE(k)\n", "x# = {USE: 1, 2: [USE]}\n", "@USE\ndef f#():\n    pass\n")
WORKSPACES = {
    "python": Workspace(
        "pkg/store.py",
        "def DECL(a):\n    return a\n",
        PYTHON_USES,
        {
            "pkg/a.py": "from .store import USE\n",
            "b.py": "from pkg.store import (\n    other,\n    USE,\n)\n",
            "c.py": "from pkg.store import Keeper, USE\n\nKeeper.ALSO()\n",
        },
        ("def f#(ALSO):\n    return ALSO\n", "x#.ALSO()\n", "s# = 'ALSO'\n", "y# = [ALSO for ALSO in 'ab']\n"),
        "from other import ALSO\n\nALSO(1)\n",
    ),
    "typescript": Workspace(
        "src/store.ts",
        "export function DECL(a: number) { return a; }\n",
        ("const x# = [USE, { a: USE(1) }];\n", "function f#(k = USE) { return `${k(USE)}`; }\n"),
        {"a.ts": "import { USE } from './src/store';\n", "src/b.ts": "import { other, USE } from './store.js';\n"},
        ("function f#(ALSO: number) { return ALSO; }\n", "o#.ALSO();\n", "class C# { ALSO() { this.ALSO(); } }\n"),
        "import { ALSO } from 'vendor';\n\nALSO(1);\n",
    ),
    "java": Workspace(
        "src/p/store/A.java",
        "package p.store;\n\npublic class DECL {\n    public USE(int a) { }\n    static USE make() { return new USE(1); }\n}\n",
        JAVA_USES,
        {"src/p/a/B.java": "package p.a;\n\nimport p.store.USE;\n\n", "src/p/b/C.java": "package p.b;\n\nimport p.store.*;\n\n"},
        ("class C# { int f(int ALSO) { return ALSO; } }\n", 'class C# { String s = "ALSO"; }\n'),
        "package q;\n\nimport q.other.ALSO;\n\nclass R { ALSO a; q.other.ALSO b; }\n",
    ),
    "kotlin": Workspace(
        "src/p/store/A.kt",
        "package p.store\n\nfun DECL(a: Int) = a\n",
        ("fun f#() = USE(1)\n", "val x# = listOf(1).map { USE(it) }\n", "val x# = ::USE\n"),
        {
            "src/p/a/B.kt": "package p.a\n\nimport p.store.USE\n\n",
            "src/p/b/C.kt": "package p.b\n\nimport p.store.USE as third\n\nval y = p.store.USE(2)\n\n",
        },
        KOTLIN_DECOYS,
        "package q\n\nimport q.other.ALSO\n\nval y = ALSO(1) + q.other.ALSO(2)\n",
    ),
    "swift": Workspace(
        "Sources/A.swift",
        "func DECL(_ a: Int) -> Int { return a }\n",
        ("func f#() -> Int { return USE(1) }\n", "let x# = [1].map(USE)\n", "let x# = [1].map { USE($0) }\n"),
        {"Sources/B.swift": "import Foundation\n\n"},
        SWIFT_DECOYS,
        "let y = q.ALSO(1)\n",
    ),
    "rust": Workspace(
        "src/store.rs",
        "pub fn DECL(a: u8) -> u8 {\n    a\n}\n\nmod tests {\n    use super::USE;\n\n    fn t() {\n        g(USE(1));\n    }\n}\n",
        RUST_USES,
        {
            "src/a.rs": "use crate::{other, store::{third, USE}};\n\n",
            "src/b.rs": "fn f() {\n    crate::store::USE(1);\n}\n\nuse super::store::USE;\n\n",
        },
        ("fn f#(ALSO: u8) -> u8 {\n    ALSO\n}\n", "fn f#() {\n    h(|ALSO| ALSO + 1);\n}\n", "fn f#(o: O) {\n    o.ALSO();\n}\n"),
        "use std::thing::ALSO;\n\nfn y() {\n    ALSO(1);\n}\n",
    ),
    "php": Workspace(
        "src/A.php",
        "<?php\nnamespace P\\Store;\n\nclass DECL\n{\n    static function make(): USE { return new USE(1); }\n}\n",
        PHP_USES,
        {
            "src/B.php": "<?php\nnamespace P\\A;\n\nuse P\\Store\\{Other, USE};\n\n",
            "src/C.php": "<?php\nnamespace P\\B;\n\nuse P\\Store\\USE;\n\n$y = new \\P\\Store\\USE(1);\n\n",
        },
        ("function f#($ALSO) { return $ALSO; }\n", "class C# { public $ALSO; function g() { return $this->ALSO; } }\n"),
        "<?php\nnamespace Q;\n\nuse Other\\Thing\\ALSO;\n\n$y = new ALSO(new \\Other\\Thing\\ALSO());\n",
    ),
    "cpp": Workspace(
        "store.hpp",
        "namespace p {\nclass DECL {\n public:\n  USE(int a);\n  ~USE();\n};\n}\n",
        (),
        {
            "store.cpp": "namespace p {\nUSE::USE(int a) { }\nUSE::~USE() { }\n}\n",
            "a.cpp": "using p::USE;\nint f(const USE& a) { return g(new USE(1), static_cast<USE*>(a)); }\n",
            "b.cpp": "int f(p::USE a) { return g(std::vector<p::USE>()); }\n",
        },
        ("int f#(int ALSO) { return ALSO; }\n", "struct C# { int ALSO; int g() { return this->ALSO; } };\n"),
        "using other::ALSO;\nALSO y = other::ALSO(1);\n",
    ),
    "csharp": Workspace(
        "src/A.cs",
        "namespace P.Store\n{\n    public class DECL\n    {\n        public USE(int a) { }\n    }\n}\n",
        (),
        {
            "src/B.cs": "using P.Store;\n\nclass K { USE a; object F(object o) { return o as USE ?? new USE(1); } }\n",
            "src/C.cs": "using Third = P.Store.USE;\n\nclass K { P.Store.USE a = new P.Store.USE(1); }\n",
        },
        ("class C# { int F(int ALSO) { return ALSO; } }\n", 'class C# { string s = "ALSO"; }\n'),
        "using ALSO = Q.Other;\n\nclass R { Q.ALSO a; }\n",
    ),
    "ruby": Workspace(
        "lib/a.rb",
        "class Keeper\n  def DECL(a)\n    USE(a) + self.USE(a)\n  end\nend\n",
        ("x# = Keeper.new.USE(1)\n", "class K# < Keeper\n  def h\n    USE(1)\n  end\nend\n"),
        {"lib/b.rb": "require 'a'\n\n"},
        ("def f#(ALSO)\n  ALSO\nend\n", "S# = 'ALSO'\n", "[1].each { |ALSO| g(ALSO) }\n"),
        "z = 'ALSO'\n",
    ),
}  # fmt: skip
LOCALS = {
    "kotlin": "fun f(q: Int): Int {\n    var DECL = q\n    g(USE, q.ALSO)\n    h.forEach { g(USE + it) }\n    return USE\n}\n",
    "swift": "func f(q: Int) -> Int {\n    var DECL = q\n    g(USE, q.ALSO)\n    h.forEach { g(USE + $0) }\n    return USE\n}\n",
    "java": "class A {\n    int f(int DECL) {\n        g(ALSO(), q.ALSO);\n        return USE;\n    }\n}\n",
    "ruby": "def f(q)\n  DECL = q\n  g(USE, q.ALSO)\n  q.each { |i| g(USE + i) }\nend\n",
    "scala": "object K {\n  def f(q: Int): Int = {\n    var DECL = q\n    g(USE, q.ALSO)\n    USE + 1\n  }\n}\n",
}
ENDINGS = {"kotlin": "kt", "ruby": "rb"}
MARK = re.compile("DECL|USE|ALSO")


def written(text: str, *new: str) -> str:
    return MARK.sub(lambda found: NEW if found[0] in new else OLD, text)


def drawn(one: Workspace, draw: random.Random) -> dict[str, str]:
    """Return the files of a random workspace, with marks."""
    numbers = iter(range(100))

    def code(head: str) -> str:
        parts = [*draw.sample(one.uses, min(2, len(one.uses))), *draw.sample(one.decoys, 2)]
        draw.shuffle(parts)
        return "\n".join(re.sub("#", str(next(numbers)), part) for part in (head, *parts))

    others = draw.sample(sorted(one.others.items()), 1 + (len(one.others) > 1))
    ending = one.path.rpartition(".")[2]
    return {one.path: code(one.declaration), **{path: code(head) for path, head in others}, f"q/z.{ending}": one.apart}


def texts_of(files: Mapping[str, str], path: str) -> dict[str, str]:
    return {name: written(text, *(("DECL",) if name == path else ())) for name, text in files.items()}


def searched(language_id: str, files: Mapping[str, str], path: str) -> Sequence[Found]:
    """Return the sure edits that follow the declaration of `path` that got another name."""
    language, texts = language_for(language_id, ""), texts_of(files, path)
    rules = [with_contexts(learn([Example(written(files[path]), texts[path], path)], language), language)]
    targets = [Target("", name, text) for name, text in texts.items()]
    return asyncio.run(search(with_rivals(rules, targets, 60), targets, Caps(), lambda _: None, beside=SURE))[0]


def renamed(language_id: str, files: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the files after those edits."""
    texts = texts_of(files, path)
    found = searched(language_id, files, path)
    return texts | {one.target.path: one.edit.applied(texts[one.target.path]) for one in found}


def missed(text: str, marked: str) -> Iterator[str]:
    """Yield the marks whose name is not what it should be after the edit. Raises AssertionError for other changes."""
    parts = map(re.escape, MARK.split(marked))
    found = re.fullmatch(r"(\w+)".join(parts), text)
    assert found is not None, text
    yield from (
        mark
        for mark, name in zip(MARK.findall(marked), found.groups(), strict=True)
        if name != (OLD if mark == "ALSO" else NEW)
    )


@pytest.mark.parametrize("language", WORKSPACES)
def test_the_uses_of_a_declaration_follow_in_all_files_and_no_namesake_does(language: str) -> None:
    draw, one = random.Random(language), WORKSPACES[language]
    for _ in range(CASES):
        files = drawn(one, draw)
        for text in files.values():
            syntax = parse(written(text).encode(), language_for(language, ""))
            assert syntax is not None
            assert not syntax.errors, text
        done = renamed(language, files, one.path)
        assert {name: [*missed(done[name], text)] for name, text in files.items()} == {name: [] for name in files}


@pytest.mark.parametrize("language", LOCALS)
def test_the_uses_of_a_local_follow_and_no_namesake_does(language: str) -> None:
    path = f"a.{ENDINGS.get(language, language)}"
    done = renamed(language, {path: LOCALS[language]}, path)
    assert not [*missed(done[path], LOCALS[language])]


PARAMETERS = [
    ("python", "py", "def f(DECL):\n    return USE\n\n\nf(USE=1)\n", "from a import f\n\nf(USE=1)\ng(ALSO=2)\n"),
    ("kotlin", "kt", "fun f(DECL: Int) = USE\n\nval y = f(USE = 1)\n", "val z = f(USE = 1) + g(ALSO = 2)\n"),
]


@pytest.mark.parametrize(("language_id", "ending", "own", "other"), PARAMETERS)
def test_an_argument_that_another_file_gives_by_a_parameters_name_is_doubtful(
    language_id: str, ending: str, own: str, other: str
) -> None:
    path, far = f"a.{ending}", f"b.{ending}"
    found = searched(language_id, {path: own, far: other}, path)
    reasons = {one.target.path: [omission.phrase for omission in one.edit.left_out] for one in found}
    assert reasons == {path: [], far: ["doubtful: an argument of this name may be another function's"]}
