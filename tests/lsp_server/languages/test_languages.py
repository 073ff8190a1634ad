"""Every registered language has a grammar that parses a text in pieces, and holes of every kind in real code."""

import re
import subprocess
import sys
import tracemalloc

import pytest
import tree_sitter
from support.marked import hole_at, opened

from lsp_server.languages.language import Language, reader
from lsp_server.languages.registry import LANGUAGES, language_for

# For each language: an empty body, a line where a statement goes, the rest of a line, a string, a comment.
HOLES: dict[str, dict[str, str]] = {
    "python": {
        "body": "def area(r):\n    ¦\n\nprint(area(2))\n",
        "statement": "def area(r):\n    x = r\n    ¦\n    return x\n",
        "rest of line": "def area(r):\n    return ¦\n",
        "string": 'name = "a¦b"\n',
        "comment": "x = 1  # the ¦\n",
    },
    "javascript": {
        "body": "function area(r) {\n  ¦\n}\n",
        "statement": "const a = 1;\n¦\nconst b = 2;\n",
        "rest of line": "const x = foo(¦);\n",
        "string": "const s = `a¦b`;\n",
        "comment": "/*\n¦\n*/\n",
    },
    "typescript": {
        "body": "interface Point {\n  ¦\n}\n",
        "statement": "let a: number = 1;\n¦\nlet b = 2;\n",
        "rest of line": "function f(a: string): ¦ {\n}\n",
        "string": "const s = 'a¦';\n",
        "comment": "// the ¦\n",
    },
    "typescriptreact": {
        "body": "function App() {\n  ¦\n}\n",
        "statement": "const a = 1;\n¦\nexport default a;\n",
        "rest of line": "const e = <div className={¦}>x</div>;\n",
        "string": 'const e = <a href="x¦">y</a>;\n',
        "comment": "// the ¦\n",
    },
    "go": {
        "body": "package main\n\nfunc main() {\n\t¦\n}\n",
        "statement": "package main\n\nfunc main() {\n\ta := 1\n\t¦\n\tprint(a)\n}\n",
        "rest of line": "package main\n\nfunc main() {\n\tx := foo(¦)\n}\n",
        "string": 'package main\n\nvar s = "a¦"\n',
        "comment": "package main\n\n// the ¦\n",
    },
    "rust": {
        "body": "fn main() {\n    ¦\n}\n",
        "statement": "fn main() {\n    let a = 1;\n    ¦\n    drop(a);\n}\n",
        "rest of line": "fn main() {\n    let x = foo(¦);\n}\n",
        "string": 'fn main() {\n    let s = "a¦";\n}\n',
        "comment": "/// the ¦\nfn main() {}\n",
    },
    "java": {
        "body": "class A {\n    void f() {\n        ¦\n    }\n}\n",
        "statement": "class A {\n    int a;\n    ¦\n    int b;\n}\n",
        "rest of line": "class A {\n    int a = foo(¦);\n}\n",
        "string": 'class A {\n    String s = "a¦";\n}\n',
        "comment": "class A {\n    /* the ¦ */\n}\n",
    },
    "c": {
        "body": "int main(void)\n{\n\t¦\n}\n",
        "statement": "int main(void) {\n\tint a = 1;\n\t¦\n\treturn a;\n}\n",
        "rest of line": "int a = foo(¦);\n",
        "string": 'char *s = "a¦";\n',
        "comment": "/* the ¦ */\n",
    },
    "cpp": {
        "body": "class A {\n  ¦\n};\n",
        "statement": "int main() {\n  int a = 1;\n  ¦\n  return a;\n}\n",
        "rest of line": "std::vector<¦> v;\n",
        "string": 'auto s = "a¦";\n',
        "comment": "// the ¦\n",
    },
    "csharp": {
        "body": "class A\n{\n    void F()\n    {\n        ¦\n    }\n}\n",
        "statement": "class A\n{\n    int a;\n    ¦\n    int b;\n}\n",
        "rest of line": "class A\n{\n    int a = Foo(¦);\n}\n",
        "string": 'class A\n{\n    string s = "a¦";\n}\n',
        "comment": "// the ¦\n",
    },
    "ruby": {
        "body": "def area(r)\n  ¦\nend\n",
        "statement": "def area(r)\n  x = r\n  ¦\n  x\nend\n",
        "rest of line": "x = foo(¦)\n",
        "string": "s = 'a¦'\n",
        "comment": "# the ¦\n",
    },
    "php": {
        "body": "<?php\nfunction area($r) {\n    ¦\n}\n",
        "statement": "<?php\n$a = 1;\n¦\n$b = 2;\n",
        "rest of line": "<?php\n$x = foo(¦);\n",
        "string": "<?php\n$s = 'a¦';\n",
        "comment": "<?php\n// the ¦\n",
    },
    "shellscript": {
        "body": "if true; then\n  ¦\nfi\n",
        "statement": "a=1\n¦\necho $a\n",
        "rest of line": "echo ¦\n",
        "string": 'echo "a¦"\n',
        "comment": "# the ¦\n",
    },
    "lua": {
        "body": "function area(r)\n  ¦\nend\n",
        "statement": "local a = 1\n¦\nprint(a)\n",
        "rest of line": "local x = foo(¦)\n",
        "string": 'local s = "a¦"\n',
        "comment": "-- the ¦\n",
    },
    "kotlin": {
        "body": "fun area(r: Int): Int {\n    ¦\n}\n",
        "statement": "fun f() {\n    val a = 1\n    ¦\n    println(a)\n}\n",
        "rest of line": "val x = foo(¦)\n",
        "string": 'val s = "a¦"\n',
        "comment": "// the ¦\n",
    },
    "swift": {
        "body": "func area(r: Int) -> Int {\n    ¦\n}\n",
        "statement": "let a = 1\n¦\nprint(a)\n",
        "rest of line": "let x = foo(¦)\n",
        "string": 'let s = "a¦"\n',
        "comment": "// the ¦\n",
    },
    "scala": {
        "body": "object A {\n  def area(r: Int): Int = {\n    ¦\n  }\n}\n",
        "statement": "object A {\n  val a = 1\n  ¦\n  val b = 2\n}\n",
        "rest of line": "object A {\n  val x = foo(¦)\n}\n",
        "string": 'object A {\n  val s = "a¦"\n}\n',
        "comment": "// the ¦\n",
    },
    "sql": {
        "body": "CREATE TABLE t (\n    ¦\n);\n",
        "statement": "SELECT 1;\n¦\nSELECT 2;\n",
        "rest of line": "SELECT ¦ FROM t;\n",
        "string": "SELECT * FROM t WHERE a = 'x¦';\n",
        "comment": "-- the ¦\nSELECT 1;\n",
    },
    "html": {
        "body": "<ul>\n  ¦\n</ul>\n",
        "statement": "<ul>\n  <li>a</li>\n  ¦\n  <li>b</li>\n</ul>\n",
        "rest of line": "<p>a ¦</p>\n",
        "string": '<a href="x¦">y</a>\n',
        "comment": "<!-- the ¦ -->\n",
    },
    "css": {
        "body": "a {\n  ¦\n}\n",
        "statement": "a {\n  color: red;\n  ¦\n  margin: 0;\n}\n",
        "rest of line": "a {\n  color: ¦;\n}\n",
        "string": 'a {\n  content: "x¦";\n}\n',
        "comment": "/* the ¦ */\n",
    },
    "json": {
        "body": '{\n  "a": {\n    ¦\n  }\n}\n',
        "statement": '{\n  "a": 1,\n  ¦\n}\n',
        "rest of line": '{\n  "a": ¦\n}\n',
        "string": '{\n  "a": "x¦"\n}\n',
        "comment": "// the ¦\n{}\n",
    },
    "yaml": {
        "body": "a:\n  ¦\nb: 1\n",
        "statement": "a: 1\n¦\nb: 2\n",
        "rest of line": "a: ¦\n",
        "string": 'a: "x¦"\n',
        "comment": "# the ¦\n",
    },
    "toml": {
        "body": "a = [\n    ¦\n]\n",
        "statement": "a = 1\n¦\nb = 2\n",
        "rest of line": "a = ¦\n",
        "string": 'a = "x¦"\n',
        "comment": "# the ¦\n",
    },
    "markdown": {
        "statement": "# Title\n\n¦\n\nText.\n",
        "rest of line": "# Title\n\nSome ¦\n",
    },
}
CASES = [(language, kind, marked) for language, holes in HOLES.items() for kind, marked in holes.items()]


def test_every_registered_language_is_tested_here() -> None:
    assert sorted(HOLES) == sorted(language.id for language in LANGUAGES)


@pytest.mark.parametrize(("language", "kind", "marked"), CASES, ids=[f"{case[0]}, {case[1]}" for case in CASES])
def test_the_hole_is_of_its_kind(language: str, kind: str, marked: str) -> None:
    hole = hole_at(marked, language)
    before, _, after = marked.partition("¦")
    assert hole.cursor_context == kind
    assert hole.prefix == before
    # The model sees nothing of a line that only closes what is open.
    assert hole.suffix == re.sub(r"^[)\]}\"'`]+(?=\n|$)", "", after)
    one_line = bool(hole.line_before.strip()) or kind == "rest of line"
    assert hole.extent == ("line" if one_line else "lines")
    if kind in ("body", "statement"):
        assert hole.indent == hole.line_before


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language.id != "markdown"])
def test_the_registry_names_node_types_of_the_grammar(language: Language) -> None:
    tree = opened("", language.id).tree
    assert tree is not None
    node_types = {tree.language.node_kind_for_id(number) for number in range(tree.language.node_kind_count)}
    assert language.strings | language.comments | language.blocks <= node_types


@pytest.mark.parametrize(
    ("language_id", "path", "expected"),
    [
        ("typescriptreact", "/a.tsx", "typescriptreact"),
        ("javascriptreact", "/a.jsx", "javascript"),
        ("shellscript", "/run", "shellscript"),
        ("csharp", "/a.cs", "csharp"),
        ("jsonc", "/a.json", "json"),
        ("", "/a/b/c.PY", "python"),
        ("no-such-language", "/a.rs", "rust"),
        ("no-such-language", "/a.xyz", "no-such-language"),
        ("", "/README", "plaintext"),
    ],
)
def test_a_language_is_found_by_the_editors_id_or_else_by_extension(language_id: str, path: str, expected: str) -> None:
    assert language_for(language_id, path).id == expected


def test_a_language_without_a_grammar_is_cut_by_lines() -> None:
    assert opened("some text\n", "no-such-language").tree is None
    assert hole_at("some text\n¦\n", "no-such-language").extent == "lines"
    assert hole_at("some ¦text\n", "no-such-language").extent == "line"


def test_no_grammar_is_loaded_before_a_document_needs_it() -> None:
    code = "import sys, lsp_server.__main__; print([name for name in sys.modules if name.startswith('tree_sitter_')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


LONG = "total = 'ä€🙂' + first.second(third)  # a comment\n" * 2000
SECONDS = 10.0


@pytest.fixture
def python() -> Language:
    return language_for("python", "")


def parsed(language: Language, text: str) -> str:
    tree = language.parse(text.encode(), None, SECONDS)
    assert tree is not None
    assert tree.root_node.end_byte == len(text.encode())
    return str(tree.root_node)


def test_the_pieces_of_a_text_are_the_text_whatever_its_length() -> None:
    for length in (0, 1, 3, 63, 64, 65, 127, 128, 16_383, 16_384, 16_385, 60_000):
        source = LONG.encode()[:length]
        read, pieces = reader(source), bytearray()
        while piece := read(len(pieces), tree_sitter.Point(0, 0)):
            pieces += piece
        assert bytes(pieces) == source


def test_a_character_that_a_piece_cuts_in_two_is_read_whole(python: Language) -> None:
    for cut in range(70):
        broken = "x = '" + "é" * cut + "🙂€" * 9000 + "'\n"
        assert "ERROR" not in parsed(python, broken)


def test_parsing_after_each_key_takes_no_more_memory(python: Language) -> None:
    source = LONG.encode()
    tree, held = python.parse(source, None, SECONDS), []
    tracemalloc.start()
    try:
        for _ in range(2):
            for _ in range(30):
                assert tree is not None
                tree.edit(5000, 5000, 5000, (100, 0), (100, 0), (100, 0))
                tree = python.parse(source, tree, SECONDS)
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[1] - held[0] < 50_000
