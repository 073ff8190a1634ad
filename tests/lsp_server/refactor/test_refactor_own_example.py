"""A rule makes its own example again, and the same of other variables, whatever the edit of an expression is."""

import pytest
from support.random_expressions import ExpressionEdits, renamed, tokens

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn

FORMS = {
    "python": ("def k():\n    x = {}\n", "def k():\n    f({})\n", "def k():\n    return {}\n"),
    "javascript": ("function k() {{ x = {}; }}\n", "function k() {{ f({}); }}\n", "function k() {{ return {}; }}\n"),
    "java": ("class Q {{ void k() {{ x = {}; }} }}\n", "class Q {{ int k() {{ return {}; }} }}\n"),
    "rust": ("fn k() {{ let x = {}; }}\n", "fn k() {{ f({}); }}\n", "fn k() {{ return {}; }}\n"),
    "go": ("package p\n\nfunc k() {{\n\tx := {}\n}}\n", "package p\n\nfunc k() {{\n\tf({})\n}}\n"),
    "php": ("<?php\nfunction k() {{ $x = {}; }}\n", "<?php\nfunction k() {{ return {}; }}\n"),
    "cpp": ("void k() {{ x = {}; }}\n", "int k() {{ return {}; }}\n"),
    "csharp": ("class Q {{ void K() {{ x = {}; }} }}\n", "class Q {{ int K() {{ return {}; }} }}\n"),
    "kotlin": ("fun k() {{ val x = {}\n}}\n", "fun k() {{ f({})\n}}\n"),
    "ruby": ("def k\n  x = {}\nend\n", "def k\n  f({})\nend\n"),
}


@pytest.mark.parametrize("language", FORMS)
def test_a_rule_makes_its_example_again_and_the_same_of_other_variables(language: str) -> None:
    edits, made = ExpressionEdits(language), 0
    for _ in range(150):
        form = edits.random.choice(FORMS[language])
        old = edits.expression(3)
        new = edits.changed(old)
        before, after = (form.format(edits.written(one)) for one in (old, new))
        if before == after or not tokens(language, before) or not tokens(language, after):
            continue
        rules = learn([Example(before, after)], language_for(language, ""))
        for text, wanted in ((before, after), (renamed(before), renamed(after))):
            done = rewrite(rules, "file", text, language_for(language, ""))
            if len(done.places) == 1:
                made += 1
                assert tokens(language, done.applied(text)) == tokens(language, wanted), (before, after, text)
    assert made > 150
