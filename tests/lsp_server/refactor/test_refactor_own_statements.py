"""A rule of statements makes its own example again, the same of other variables, and nothing twice."""

import pytest
from support.random_expressions import Expression, ExpressionEdits, parts, renamed, tokens, with_part

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example, NoRule
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import with_contexts
from lsp_server.refactor.places.doubts import SURE

# The words of a function, of `x = ...`, `if`, `else`, and two loops; and the end of a body and of a statement.
WORDS = {
    "python": ("def k(a, b, c, d):", "x = {}", "if {}:", "else:", "while {}:", "for i in {}:", "", ""),
    "javascript": ("function k(a, b, c, d) {", "const x = {};", "if ({}) {{", "}} else {{", "while ({}) {{",
                   "for (const i of {}) {{", "}", ";"),
    "typescript": ("function k(a: T, b: T, c: T, d: T) {", "let x = {};", "if ({}) {{", "}} else {{", "while ({}) {{",
                   "for (const i of {}) {{", "}", ";"),
    "java": ("int k(T a, T b, T c, T d) {", "var x = {};", "if ({}) {{", "}} else {{", "while ({}) {{",
             "for (var i : {}) {{", "}", ";"),
    "rust": ("fn k(a: T, b: T, c: T, d: T) {", "let x = {};", "if {} {{", "}} else {{", "while {} {{",
             "for i in {} {{", "}", ";"),
    "go": ("func k(a, b, c, d T) {", "x := {}", "if {} {{", "}} else {{", "for {} {{",
           "for _, i := range {} {{", "}", ""),
    "php": ("function k($a, $b, $c, $d) {", "$x = {};", "if ({}) {{", "}} else {{", "while ({}) {{",
            "foreach ({} as $i) {{", "}", ";"),
    "cpp": ("int k(T a, T b, T c, T d) {", "auto x = {};", "if ({}) {{", "}} else {{", "while ({}) {{",
            "for (auto i : {}) {{", "}", ";"),
    "csharp": ("int K(T a, T b, T c, T d) {", "var x = {};", "if ({}) {{", "}} else {{", "while ({}) {{",
               "foreach (var i in {}) {{", "}", ";"),
    "kotlin": ("fun k(a: T, b: T, c: T, d: T): T {", "val x = {}", "if ({}) {{", "}} else {{", "while ({}) {{",
               "for (i in {}) {{", "}", ""),
    "ruby": ("def k(a, b, c, d)", "x = {}", "if {}", "else", "while {}", "for i in {}", "end", ""),
}  # fmt: skip
AROUND = {"java": ("class Q {", "}"), "csharp": ("class Q {", "}"), "php": ("<?php", ""), "go": ("package p\n", "")}
BODIES = ("if", "while", "for")
"""Statements with one body, after an expression: ("if", condition, ("body", *statements))."""


class _StatementEdits(ExpressionEdits):
    """Makes bodies of statements, and changes of them."""

    def body(self, depth: int) -> Expression:
        return "body", *(self._statement(depth) for _ in range(self.random.randint(1, 2)))

    def _statement(self, depth: int) -> Expression:
        kind = self.random.choice(["do", "do", "let", "return", *BODIES, "else"] if depth else ["do", "let", "return"])
        value = self._call() if kind == "do" else self.expression(2)
        bodies = {"do": 0, "let": 0, "return": 0, "else": 2}.get(kind, 1)
        return kind, value, *(self.body(depth - 1) for _ in range(bodies))

    def _call(self) -> Expression:
        arguments = (self.expression(1) for _ in range(self.random.randint(0, 2)))
        return "call", f"run{self.random.randrange(20)}", *arguments

    def changed_body(self, whole: Expression) -> Expression:
        """Return a body of which a statement, chosen at random, is another one, moved, gone, or in another one."""
        path, body = self.random.choice([one for one in parts(whole) if one[1][0] == "body"])
        at = self.random.randrange(1, len(body))
        one, others = body[at], body[at + 1 :]
        assert isinstance(one, tuple)
        w: Expression = ("do", ("call", "w"))
        around = self.random.choice([("name", "z"), ("call", "ready")])
        choices: list[tuple[object, ...]] = [((kind, around, ("body", one)), *others) for kind in BODIES]
        choices += [(("else", around, ("body", one), ("body", w)), *others)]
        choices += [(("if", around, ("body", one, *others)),), (*others, one), (w, one, *others), (one, w, *others)]
        choices += [others] * (len(body) > 2)
        choices += [((one[0], self.changed(one[1]), *one[2:]), *others) for _ in range(2)]
        choices += [(*one[2][1:], *others)] * 2 if one[0] in BODIES else []
        choices += [(("else", *one[1:], ("body", w)), *others)] if one[0] == "if" else []
        choices += [(("if", one[1], one[2]), *others)] if one[0] == "else" else []
        choices += [((kind, one[1]), *others) for kind in ("let", "return") if one[0] == "do"]
        return with_part(whole, path, (*body[:at], *self.random.choice(choices)))

    def file(self, body: Expression) -> str:
        """Return a function with a body as a file."""
        head, words = AROUND.get(self.language, ("", "")), WORDS[self.language]
        lines = [head[0], words[0], *self._lines(body, "    "), words[6], head[1]]
        return "\n".join(line for line in lines if line) + "\n"

    def _lines(self, body: Expression, indent: str) -> list[str]:
        otherwise, end, tail = (WORDS[self.language][at] for at in (3, 6, 7))
        heads = dict(zip(("let", "if", "otherwise", "while", "for"), WORDS[self.language][1:6], strict=True))
        lines: list[str] = []
        for one in body[1:]:
            assert isinstance(one, tuple)
            value = self.written(one[1])
            if one[0] in ("do", "return"):
                lines.append(indent + ("return " if one[0] == "return" else "") + value + tail)
            else:
                lines.append(indent + heads["if" if one[0] == "else" else one[0]].format(value))
                lines += self._lines(one[2], indent + "    ") if len(one) > 2 else []
                lines += [indent + otherwise.format(), *self._lines(one[3], indent + "    ")] if len(one) > 3 else []
                lines += [indent + end] if len(one) > 2 and end else []
        return lines


@pytest.mark.parametrize("language", WORDS)
def test_a_rule_of_statements_makes_its_example_again_and_nothing_twice(language: str) -> None:
    edits, made, known = _StatementEdits(language), 0, language_for(language, "")
    for _ in range(120):
        old = edits.body(2)
        before, after = edits.file(old), edits.file(edits.changed_body(old))
        if before == after or not tokens(language, before) or not tokens(language, after):
            continue
        try:
            rules = with_contexts(learn([Example(before, after)], known), known)
        except NoRule:
            continue
        for text, wanted in ((before, after), (renamed(before), renamed(after))):
            done = rewrite(rules, "file", text, known, beside=SURE)
            if len(done.places) == 1:
                made += 1
                result = done.applied(text)
                assert tokens(language, result) == tokens(language, wanted), (before, after, text)
                # Where something goes or changes places, other code may be what the old one was.
                if len(tokens(language, before)) < len(tokens(language, after)):
                    assert not rewrite(rules, "file", result, known, beside=SURE).places, (before, after, text)
    assert made > 30
