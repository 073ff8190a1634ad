"""Texts that are hard on a parser: what broke one once, and what a seed makes of a grammar's own pieces."""

import random

import attrs

NAMED: dict[str, tuple[str, str]] = {
    "dashes": ("yaml", "- " * 256 + "x"),
    "questions": ("yaml", "? " * 300),
    "keys on one line": ("yaml", "a: " * 3000),
    "dashes in brackets": ("yaml", "[ " + "- " * 400 + "x"),
    "nested keys": ("yaml", "".join(" " * depth + "a:\n" for depth in range(300))),
    "nested keys and lists": ("yaml", "".join(" " * d + "a:\n" + " " * d + "- b:\n" for d in range(300))),
    "keys after a return": ("yaml", "\r".join(" " * depth + "a:" for depth in range(300))),
    "brackets and dashes": ("yaml", "[ - a\n {" * 3000),
    "heredocs": ("ruby", "x " + "<<A " * 1500 + "\n"),
    "heredocs as arguments": ("ruby", "f(" + ", ".join(f"<<~A{i}" for i in range(1500)) + ")\n"),
    "heredocs with bodies": ("ruby", "x(" + "<<A, " * 1500 + ")\na\nA\n"),
    "heredocs in a list": ("ruby", "[" + "<<A," * 1500 + "]\n"),
    "heredocs in heredocs": ("ruby", "<<~A\n#{" * 1500),
    "a heredoc with a long word": ("ruby", "x = <<" + "A" * 700 + "\nfoo\n" + "A" * 700 + "\n"),
    "a heredoc with a quoted word": ("ruby", 'x = <<"' + "A b" * 300 + '"\nfoo\n'),
    "heredocs that just fit": ("ruby", "f(" + ", ".join("<<" + "A" * w for w in (250, 250, 250, 252)) + ")\nfoo\n"),
    "heredocs that just do not fit": (
        "ruby",
        "f(" + ", ".join("<<" + "A" * w for w in (246, 246, 246, 246, 19)) + ")\n",
    ),
    "strings that are never closed": ("csharp", "class A { void f() {\n" + 'g($"{a");\n' * 600 + "}}"),
    "word lists in word lists": ("ruby", "%W(#{" * 400),
    "strings in strings, Ruby": ("ruby", '"#{' * 400),
    "unclosed literals": ("ruby", "%q(" * 6000),
    "unclosed literals, all kinds": ("ruby", "%q( %w[ %i{ %r< " * 1500),
    "heredocs, shell": ("shellscript", "cat " + "<<A " * 1500 + "\nfoo\nA\n"),
    "heredocs in commands": ("shellscript", "".join(f"cat <<A{i}\n$(cat " for i in range(300))),
    "a long word, shell": ("shellscript", "cat <<" + "A" * 1500 + "\nfoo\n" + "A" * 1500 + "\n"),
    "quotes in quotes": ("markdown", "> " * 300 + "x\n"),
    "quotes without spaces": ("markdown", ">" * 2000 + "x\n"),
    "lists in lists": ("markdown", "- " * 600 + "x\n"),
    "numbered lists": ("markdown", "1. " * 600 + "x\n"),
    "lists line by line": ("markdown", "".join("  " * depth + "- a\n" for depth in range(300))),
    "lists with tabs": ("markdown", "".join("\t" * depth + "- a\n" for depth in range(300))),
    "fences": ("markdown", "```" * 3000),
    "a tag": ("sql", "select $" + "a" * 22 + "$ x $" + "a" * 22 + "$;"),
    "tags": ("sql", "".join(f"select ${'a' * n}$ x ${'a' * n}$;" for n in range(10, 1100))),
    "raw interpolation": ("csharp", 'var x = $"""{x}""";\nvar y = 1;\n'),
    "raw interpolation, four quotes": ("csharp", 'var x = $"""{x}"""";'),
    "strings in strings": ("csharp", "class A { string f = " + '$"{a + ' * 300 + "1" + '}"' * 300),
    "strings in strings, verbatim": ("csharp", "var x = " + '$@"{a + ' * 300 + "1" + '}"' * 300 + ";"),
    "unclosed strings": ("csharp", 'var x = $"abc\n' * 3000),
    "unclosed holes": ("csharp", 'class A { void f() { var x = $@"{(; } }\n' * 3000),
    "nested blocks": ("python", "".join(" " * d + "if x:\n" for d in range(600)) + " " * 600 + 'x = f"{a}"\n'),
    "nested blocks, tabs": ("python", "".join("\t" * d + "if x:\n" for d in range(600)) + "\t" * 600 + 'f"{a}"\n'),
    "nested blocks, continued": (
        "python",
        "".join(" " * min(d, 300) + "\\\n" + " " * max(d - 300, 0) + "if x:\n" for d in range(600)) + '  f"{a}"',
    ),
    "strings in strings, Python": ("python", 'f"{' * 600),
    "unclosed triple quotes": ("python", 'f"""{' * 600),
    "tags in tags": ("html", "<abc>" * 3000),
    "a long tag": ("html", "<" + "a" * 3000 + ">"),
    "heredocs, PHP": ("php", "<?php $x = " + "<<<A\n{$a[" * 500),
    "heredocs with bodies, PHP": ("php", "<?php " + "f(<<<A\n{$a[f(" * 500),
    "a long word, PHP": ("php", "<?php $x = <<<" + "A" * 3000 + "\nfoo\n" + "A" * 3000 + ";\n"),
    "nested blocks, Scala": ("scala", "".join(" " * d + "if x then\n" for d in range(700))),
    "a long bracket": ("lua", "x = [" + "=" * 70000 + "[ a"),
    "a long delimiter": ("cpp", 'auto x = R"' + "a" * 3000 + "(x)" + "a" * 3000 + '"'),
    "a raw string": ("rust", "let x = r" + "#" * 3000 + '"x"' + "#" * 3000),
    "unclosed comments": ("rust", "/*" * 9000),
    "unclosed comments, Java": ("java", "/* " * 9000),
    "unclosed comments, Kotlin": ("kotlin", "/*" * 9000),
    "unclosed comments, C": ("c", "/*/" * 300_000),
    "a raw string, Swift": ("swift", "let x = " + "#" * 3000 + '"x"' + "#" * 3000),
    "raw strings in raw strings": ("swift", '#"\\#(' * 900),
    "unclosed text blocks": ("java", '"""\\' * 6000),
    "a comment in TSX": (
        "typescriptreact",
        "let a = 1;\n 1foofoo[items:\\ \t{[/*];\r\n\n' = ;, [fooend = (do}items:\")/*{]",
    ),
}
"""Language and text, by what it is."""


_PIECES: dict[str, str] = {
    "yaml": "- |? |a: |: |[ |{ |, |\n|\n  |\n\t|\r|'|\"|>\n||&a |*a |!t |# |--- |  |%YAML",
    "ruby": "<<A|<<~B |<<-'C'|\nA\n|\nB\n|#{|}|%q(|%w[|%W{|%i<|\"|'|`|/|\n|=begin\n|=end\n|__END__\n|def a |end |?x|:a",
    "shellscript": "<<A |<<-'B' |\nA\n|\nB\n|$(|)|${|}|`|'|\"|$'|((|))|[[ |]] |\n|case a in |esac |; do |#",
    "markdown": "> |>|- |* |1. |10) |\n|\n\n|    |\t|```\n|~~~|# |===|---|a|<div>|<!--|[a]: b|**|  |<?",
    "sql": "$$|$a$|$aaaaaaaaaaaaaaaaaaaaaaaaa$|'|\"|--|/*|*/|(|)|select |from |begin |end |;|create function a() |\n",
    "csharp": '$"|$@"|$"""|$$"""|"|"""|{|}|{{|(|)|;|\n|var x = |@"|\'|//|/*|*/|#if A\n|class A |:x|\\',
    "python": 'if x:\n|\n  |\n    |\n\t|f"|f\'\'\'|{|}|(|)|"|\'|"""|\\\n|#|def f():|\r|\f|class A:|:|=',
    "html": "<a>|</a>|<li>|<p>|<|>|<!--|-->|<script>|</script>|\"|'|=|&amp;|<br/>|\n|<abc-def>|<!DOCTYPE|/",
    "php": "<?php |?>|<<<A\n|\nA;|<<<'B'\n|\nB\n|{$|${|}|\"|'|`|/*|*/|//|#[|(|)|[|];|\n|fn|$a",
}
_COMMON = (
    '(|)|[|]|{|}|<|>|"|\'|`|"""|\'\'\'|/*|*/|//|#|\\|\n|\n    |\t|\r|;|:|,|.|=|=>|->|a|1|é|文|\x00|r#"|${|#"|@|$|R"a('
)


def made(language: str, seed: int) -> str:
    """Return a text of at most some hundred kB: pieces of the language, nested, repeated, unclosed or mixed."""
    dice = random.Random(f"{language} {seed}")
    pieces = [piece or "|\n" for piece in (_PIECES.get(language, "a") + "|" + _COMMON).split("|")]
    text: list[str] = [dice.choice(("", "", "<?php " if language == "php" else "x = "))]
    for _ in range(dice.randint(1, 6)):
        few, times = dice.choices(pieces, k=dice.randint(1, 4)), int(10 ** dice.uniform(0, 3.4))
        kind = dice.randrange(5)
        if kind == 0:
            text += dice.choices(pieces, k=min(times, 600))
        elif kind == 1:
            step = dice.choice((" ", "  ", "\t", " \t", "> ", "- "))
            text += (step * depth + "".join(few) + "\n" for depth in range(min(times, 600)))
        elif kind == 2:
            word = dice.choice(("A", "a1_", "é")) * min(times, 900)
            text.append("".join(few) + word + "".join(few))
        else:
            text.append("".join(few) * times)
    return "".join(text)


@attrs.frozen
class ParserText:
    """A text in a language, and what it is called in a message."""

    name: str
    language: str
    text: str


def long_lines() -> list[ParserText]:
    """Return lines of nearly 2 MB, the most that is served, in the languages that they are hard for."""
    units = {"(": "python", "[1,": "json", "[": "javascript", "{": "java", "<a>": "html", "f(": "rust", "a: ": "yaml"}
    units |= {'"': "go", "- ": "markdown", "$(": "shellscript", "/*/": "c", "\\": "toml", "é(": "plaintext", "<": "cpp"}
    units |= {"`": "typescript", "#{": "ruby", "x ": "sql", "$a[": "php", "?.": "swift", "[[": "lua", "case ": "scala"}
    return [
        ParserText(f"a long line of {unit}", language, unit * (1_900_000 // len(unit.encode())))
        for unit, language in units.items()
    ]


def named() -> list[ParserText]:
    """Return the texts that broke something once, or nearly did."""
    return [ParserText(name, *found) for name, found in NAMED.items()]
