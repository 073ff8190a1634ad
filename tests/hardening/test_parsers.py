"""No text ends a parser or keeps it for long, in any grammar; a server that has such a text open answers each key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hardening.hostile_keys import HostileKeys
from hardening.parser_texts import ParserText, long_lines, made, named
from hardening.parsers import ParserProcess
from lsp_server.languages.registry import LANGUAGES, language_for

_SEEDS = range(3)
_NAMED = {each.name: each for each in named()}
_TYPED_INTO = (
    "dashes",
    "nested keys",
    "heredocs as arguments",
    "a heredoc with a quoted word",
    "nested blocks",
    "quotes in quotes",
    "tags",
    "unclosed strings",
    "unclosed literals",
    "unclosed comments, Java",
    "a comment in TSX",
)
_ORDINARY: dict[str, str] = {
    "yaml": "steps:\n" + "  - name: a - b\n    run: |\n" + " " * 60 + "echo a: b\n" + "  - {a: [b, c], d: 'e'}\n" * 200,
    "python": "".join("    " * depth + "if a:\n" for depth in range(80))
    + "    " * 80
    + "x = 1 + \\\n"
    + " " * 90
    + "2\n",
    "ruby": "".join(f"def a{i}\n  b << 'c'\n  d = 1 << 3\n  <<~TEXT\n    e\n  TEXT\nend\n" for i in range(40)),
    "markdown": "> > - a\n>     - 1. b\n\n" + "-" * 200 + "\n\n* * *\n" + "| - | - |\n" * 300,
    "csharp": "class A {\n" + 'string f(int a) => $"{a} of {f(1)}";\n' * 200 + "}\n",
    "sql": "create function f() returns int as $function$ select 1 $function$ language sql;\nselect $1, $2;\n" * 50,
    "javascript": "function f(a) { return { b: [1, (2)] } }\n" * 20_000,
}


@pytest.fixture(scope="module")
def parsers() -> Iterator[ParserProcess]:
    process = ParserProcess()
    yield process
    process.close()


@pytest.fixture(scope="module")
def keys(home: Path) -> Iterator[HostileKeys]:
    server = HostileKeys(home)
    yield server
    server.close()


@pytest.mark.parametrize("hostile", named(), ids=lambda each: f"{each.language}-{each.name}")
def test_what_once_broke_a_parser_is_parsed_or_refused(hostile: ParserText, parsers: ParserProcess) -> None:
    parsers.parse(hostile)


@pytest.mark.parametrize("language", [each.id for each in LANGUAGES])
def test_texts_that_nobody_thought_of_end_no_parser(language: str, parsers: ParserProcess) -> None:
    for seed in _SEEDS:
        parsers.parse(ParserText(f"seed {seed}", language, made(language, seed)))


@pytest.mark.parametrize("language", _ORDINARY)
def test_what_people_write_has_a_tree(language: str) -> None:
    assert language_for(language, "").parse(_ORDINARY[language].encode(), None, 60) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", _TYPED_INTO)
def test_a_key_in_a_text_that_no_parser_gets_is_answered(name: str, keys: HostileKeys) -> None:
    keys.type_into(_NAMED[name])


@pytest.mark.slow
@pytest.mark.parametrize("hostile", long_lines(), ids=lambda each: each.language)
def test_a_key_in_a_line_of_2_mb_is_answered(hostile: ParserText, keys: HostileKeys) -> None:
    keys.type_into(hostile)
