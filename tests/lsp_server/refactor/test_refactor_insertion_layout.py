"""How a statement that an edit adds is written: its lines, line ends, commas and semicolons, and what is around it."""

# ruff: noqa: E501  a text a line

import pytest
from support.refactor_case import edit_of, reasons, repeated

WRITE = ("def f(a):\n    a.write(1)\n", "def f(a):\n    a.write(1)\n    a.flush()\n")


def test_several_statements_keep_their_empty_lines_and_their_own_lines() -> None:
    old = "def f(a):\n    r = get(a)\n    use(r)\n"
    new = "def f(a):\n    r = get(a)\n\n    if r.bad:\n        raise Bad(r)\n\n    use(r)\n"
    text = "class C:\n  def g(b):\n    if b:\n      s = get(b, 1)\n      use(s)\n"
    assert repeated("python", old, new, text) == (
        "class C:\n  def g(b):\n    if b:\n      s = get(b, 1)\n\n      if s.bad:\n        raise Bad(s)\n\n      use(s)\n"
    )


def test_line_ends_stay_as_they_are() -> None:
    text = "def g(a):\r\n\ta.write(2)\r\n\tgo()\r\n"
    assert repeated("python", *WRITE, text) == "def g(a):\r\n\ta.write(2)\r\n\ta.flush()\r\n\tgo()\r\n"


@pytest.mark.parametrize(
    ("language", "start"),
    [
        ("python", "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"),
        ("python", "\ufeff# -*- coding: utf-8 -*-\n"),
        ("javascript", "#!/usr/bin/env node\n// @ts-check\n"),
        ("typescript", "// @ts-nocheck\n"),
    ],
)
def test_a_file_begins_as_it_did(language: str, start: str) -> None:
    after = repeated(language, "go()\nsend(x)\n", "go()\ncheck(x)\nsend(x)\n", start + "send(y)\n")
    assert after == start + "check(y)\nsend(y)\n"


@pytest.mark.parametrize(
    ("language", "head", "mark"),
    [
        ("rust", "fn f() {\n", "    #[cfg(test)]\n"),
        ("c", "void f() {\n", "#pragma omp critical\n"),
        ("cpp", "void f() {\n", "#pragma omp critical\n"),
    ],
)
def test_an_attribute_stays_with_its_statement(language: str, head: str, mark: str) -> None:
    old, text = f"{head}    go();\n    send(x);\n}}\n", f"{head}    go();\n{mark}    send(y);\n}}\n"
    edit = edit_of(language, [(old, old.replace("    send", "    check(x);\n    send"))], text)
    assert reasons(edit) == ["an attribute or a `#pragma` is above it"]


def test_an_inner_attribute_begins_its_body() -> None:
    old = "fn test_a(d: Db) {\n    go();\n}\n"
    text = "fn test_b(e: Db) {\n    #![allow(x)]\n    stop();\n}\n"
    after = repeated("rust", old, old.replace("    go", "    d.clear();\n    go"), text)
    assert after == text.replace("    stop", "    e.clear();\n    stop")


@pytest.mark.parametrize(
    ("language", "old", "added"),
    [
        ("python", "def f(x):\n    x.write(1)\n", "    log('%s', (x,))\n"),
        ("python", "def f(x):\n    x.write(1)\n", "    x.put(\n        1,\n        [\n            2,\n        ],\n    )\n"),
        ("javascript", "function f(x) {\n    x.write(1);\n", "    if (x.bad) {\n        x.flush();\n\n        x.stop();\n    }\n"),
        ("go", "package p\n\nfunc f(x T) {\n\tx.write(1)\n", "\tx.put(T{\n\t\t1,\n\n\t\t2,\n\t})\n"),
        ("php", "<?php\nfunction f($x) {\n    $x->write(1);\n", "    $x->put([\n        1,\n\n        2,\n    ]);\n"),
    ],
)  # fmt: skip
def test_an_added_statement_has_its_commas_and_lines_as_in_the_example(language: str, old: str, added: str) -> None:
    end = "" if language == "python" else "}\n"
    text = old.replace("1", "3")
    assert repeated(language, old + end, old + added + end, text + end) == text + added + end


@pytest.mark.parametrize("language", ["javascript", "typescript", "javascriptreact", "typescriptreact"])
def test_an_added_line_does_not_go_on_with_one_above_that_has_no_semicolon(language: str) -> None:
    old = "function f(x) {\n  go();\n  send(x);\n}\n"
    example = (old, old.replace("  send", "  [x].forEach(check);\n  send"))
    edit = edit_of(language, [example], old.replace("go();", "go()"))
    assert reasons(edit) == ["without a `;` its lines would be one statement"]
    block = old.replace("go();", "if (x) { go() }")
    assert "[x].forEach" in repeated(language, *example, block)


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_a_comment_before_a_semicolon_is_not_made_twice(language: str) -> None:
    old, text = "send(x);\n", "send(y) /* now */;\n"
    assert repeated(language, old, old + "check(x);\n", text) == text + "check(y);\n"
