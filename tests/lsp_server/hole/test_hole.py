"""The hole: how much text the model sees around the cursor, and how far a fill may go, also in code that is broken."""

from itertools import pairwise

import attrs
import pytest
from lsprotocol import types
from support.marked import at_cursor, hole_at, opened

from engine.protocol.messages import ModelInfo
from lsp_server.documents.store import Documents, offset_in
from lsp_server.hole.hole import NEAR, context_budget_of, cursor_at_word, cut_hole, indent_unit

UTF16 = types.PositionEncodingKind.Utf16

HOLES = [
    ("a body whose def was never closed", "def f(a:\n    ¦\n", "lines", "body"),
    ("a body at the very end", "class A:\n    def f(self):\n        ¦", "lines", "body"),
    ("a body below a header with a comment", "if x:  # why\n    ¦\n\ny = 1\n", "lines", "body"),
    ("a body below comments", "def f():\n    # first\n    ¦\n\ny = 1\n", "lines", "body"),
    ("a body between unclosed braces of other code", "x = {\ndef f():\n    ¦\n", "lines", "body"),
    ("above the first line of a body", "def f(a,\n      b):\n    ¦\n    return 1\n", "lines", "statement"),
    ("an argument on its own line", "f(\n    ¦\n)\n", "lines", "statement"),
    ("only a bracket after the cursor", "f(\n    a,\n¦)\n", "lines", "statement"),
    ("code after the cursor", "¦foo()\n", "line", "rest of line"),
    ("inside the indentation", "if x:\n  ¦  foo()\n", "line", "rest of line"),
    ("after a header", "if x:¦\n", "line", "rest of line"),
    ("in an unclosed string", 'x = "ab¦\ny = 1\n', "line", "string"),
    ("in the code of an f-string", 'x = f"{a¦}"\n', "line", "rest of line"),
    ("in a line of a docstring", 'def f():\n    """Do it ¦\n    """\n', "line", "string"),
    ("on a blank line of a docstring", 'def f():\n    """Do it.\n\n    ¦\n    """\n', "lines", "string"),
    ("between the quotes", 'x = "¦"\n', "line", "string"),
    ("after the quotes", 'x = "a"¦\n', "line", "rest of line"),
    ("at the end of the text's last comment", "# the ¦", "line", "comment"),
    ("below a comment", "# the\n¦", "lines", "statement"),
    ("an empty file", "¦", "lines", "statement"),
]


@pytest.mark.parametrize(
    ("marked", "extent", "cursor_context"), [row[1:] for row in HOLES], ids=[row[0] for row in HOLES]
)
def test_the_syntax_tree_decides_extent_and_cursor_context(marked: str, extent: str, cursor_context: str) -> None:
    hole = hole_at(marked)
    assert (hole.extent, hole.cursor_context) == (extent, cursor_context)


@pytest.mark.parametrize(
    ("marked", "indent"),
    [
        ("def f():\n¦\n", "    "),
        ("class A:\n\tdef f(self):\n\t¦\n", "\t\t"),
        ("class A:\n  x = 1\n  def f(self):\n  ¦\n", "    "),
        ("if x:\n    y = 1\n    ¦\n", "    "),
        ("def f(a,\n      b):\n¦\n\nx = 1\n", "    "),
    ],
)
def test_the_indent_is_what_the_line_should_have(marked: str, indent: str) -> None:
    assert hole_at(marked).indent == indent


LICENCE = "/*\nLicensed under the Apache License.\n\n    http://www.apache.org/licenses/LICENSE-2.0\n*/\n"
NOTES = '"""Notes.\n\n      deep\n        deeper\n"""\n'
PROSE = [
    ("go", LICENCE + "package main\n\nfunc main() {\n¦\n}\n", "\t"),
    ("go", LICENCE + "package main\n\nfunc a() {\n\tx()\n}\n\nfunc main() {\n\tif x {\n¦\n\t}\n}\n", "\t\t"),
    ("java", LICENCE + "class A {\n  void f() {\n    x();\n  }\n\n  void g() {\n¦\n  }\n}\n", "    "),
    ("javascript", "// a\n//    b\n/* c\n      d */\nfunction f() {\n¦\n}\n", "  "),
    ("javascript", "const s = `\n      a\n        b\n`;\nfunction f() {\n¦\n}\n", "  "),
    ("javascript", "const s = `\n    a\n`;\nfunction f() {\n¦\n}\n", "  "),
    ("python", '"""Notes.\n\n  two\n"""\ndef f():\n¦\n', "    "),
    ("rust", LICENCE.replace("    ", "  ") + "fn f() {\n¦\n}\n", "    "),
    ("c", LICENCE + "int\nf(int a,\n  int b)\n{\n\tg();\n}\n\nint h(void)\n{\n¦\n}\n", "\t"),
    ("python", NOTES + "def f():\n    x\n\n\ndef g():\n¦\n", "    "),
    ("python", 'def f():\n  """A.\n\n  Args:\n      x: b\n  """\n  y\n\n\ndef g():\n¦\n', "  "),
    ("python", "x = foo(\n        1,\n)\ny = [\n        2,\n]\n\n\ndef f():\n    z\n\n\ndef g():\n¦\n", "    "),
    ("yaml", "# a\n#     b\nc:\n  d: 1\ne:\n¦\n", "  "),
]


@pytest.mark.parametrize(("language", "marked", "indent"), PROSE)
def test_no_comment_and_no_string_decides_the_indentation(language: str, marked: str, indent: str) -> None:
    assert hole_at(marked, language).indent == indent


def test_without_a_tree_a_licence_does_not_decide_the_indentation_either() -> None:
    snapshot, offset = at_cursor(LICENCE.replace("\n", "\n * ") + "/\npackage a\n\nfunc f() {\n¦\n}\n", "go")
    assert indent_unit(attrs.evolve(snapshot, tree=None), offset) == "\t"


def test_below_a_line_with_too_many_nodes_to_look_at_the_lines_decide() -> None:
    marked = "x = [\n" + "1, " * 5_000 + "\n]\ndef f():\n\tx\n\ndef g():\n¦\n"
    assert indent_unit(*at_cursor(marked)) == "\t"


def test_a_hole_has_both_sides_of_its_line() -> None:
    hole = hole_at("a\nb = foo(¦)  # c\nd\n")
    assert (hole.line_before, hole.line_after) == ("b = foo(", ")  # c")
    assert (hole.prefix, hole.suffix) == ("a\nb = foo(", ")  # c\nd\n")


@pytest.mark.parametrize(
    ("marked", "suffix"),
    [
        ("x = total(parcel.w¦)\ny = 1\n", "\ny = 1\n"),
        ('x = {"a": ["b¦"]}\n', "\n"),
        ("x = total(¦) \n", "\n"),
        ("x = total(¦)\r\ny = 1\n", "\ny = 1\n"),
        ("x = total(¦", ""),
        ("x = total(a¦, b)\n", ", b)\n"),
        ("x = total(¦]\n", "]\n"),
        ("total(\n    a¦)\n", ")\n"),
        ("x = 1¦)\n", ")\n"),
    ],
)
def test_the_model_does_not_see_what_an_editor_closed_by_itself(marked: str, suffix: str) -> None:
    hole = hole_at(marked)
    assert hole.suffix == suffix
    assert hole.line_after == marked.partition("¦")[2].partition("\n")[0].removesuffix("\r")


def test_the_model_sees_a_document_with_crlf_as_one_with_plain_line_ends() -> None:
    hole = hole_at("a = 1\r\nb = ¦\r\nc = 3\r\n")
    assert (hole.prefix, hole.suffix, hole.line_after) == ("a = 1\nb = ", "\nc = 3\n", "")


def test_the_model_does_not_see_a_byte_order_mark() -> None:
    hole = hole_at("\ufeffx = ¦\n")
    assert (hole.prefix, hole.line_before) == ("x = ", "x = ")


def test_a_cursor_after_an_emoji_is_counted_in_utf16_units() -> None:
    snapshot = opened('s = "🙂🙂"\r\nt = "🙂"\r\n')
    hole = cut_hole(snapshot, offset_in(snapshot.source, types.Position(1, 7), UTF16))
    assert hole.line_before == 't = "🙂'
    assert hole.cursor_context == "string"


def test_half_a_surrogate_pair_is_not_sent_to_the_model() -> None:
    assert hole_at("s = '\ud83d'\nx = ¦\n").prefix == "s = '?'\nx = "


LINE = "value = compute(1234567890)\n"


def test_prefix_and_suffix_are_bounded() -> None:
    hole = hole_at(LINE * 3000 + "¦\n" + LINE * 3000)
    assert NEAR.prefix - NEAR.stride - len(LINE) <= len(hole.prefix) <= NEAR.prefix
    assert NEAR.suffix - len(LINE) <= len(hole.suffix) <= NEAR.suffix + 1
    assert hole.prefix.startswith("value")
    assert hole.suffix.endswith("\n")


def test_prefix_and_suffix_of_one_long_line_are_bounded_too() -> None:
    hole = hole_at("x" * 100_000 + "¦" + "y" * 50_000)
    assert len(hole.prefix) <= NEAR.prefix
    assert len(hole.suffix) <= NEAR.suffix


def test_typing_does_not_move_the_edges_of_prefix_and_suffix() -> None:
    snapshot, offset = at_cursor(LINE * 2400 + "¦\n" + LINE * 1200)
    prefixes, suffixes = [], []
    for typed in range(0, len(LINE) * 4, 2):
        hole = cut_hole(snapshot.replaced(offset, offset, (LINE * 4)[:typed]), offset + typed)
        prefixes.append(hole.prefix)
        suffixes.append(hole.suffix)
    moves = sum(not later.startswith(earlier) for earlier, later in pairwise(prefixes))
    assert moves <= 1
    assert len(set(suffixes)) == 1


def test_a_hole_is_cut_at_once_after_an_edit() -> None:
    documents = Documents()
    documents.open("file:///a.py", "python", 0, "def f():\n\n\nx = 1\n")
    position = types.Position(1, 0)
    documents.change(
        "file:///a.py", 1, [types.TextDocumentContentChangePartial(types.Range(position, position), "    ")], UTF16
    )
    snapshot = documents.snapshot("file:///a.py")
    assert snapshot is not None
    assert cut_hole(snapshot, 13).cursor_context == "body"


SMALL = ModelInfo("small", "embedded", "Apache-2.0", 1, 384, 32, "absorbing", "cpu", "float32")
LARGE = attrs.evolve(SMALL, name="large", context_tokens=262_144)


def test_a_model_with_a_short_context_gets_the_near_text_and_no_other_file() -> None:
    assert context_budget_of(SMALL) == NEAR
    assert NEAR.related == 0


def test_a_model_with_a_long_context_gets_the_whole_file_and_others() -> None:
    budget = context_budget_of(LARGE)

    assert budget.prefix > 500_000
    assert budget.related == 48_000
    assert sum(attrs.astuple(budget)) <= 3 * LARGE.context_tokens


@pytest.mark.parametrize(("tokens", "reading"), [(8_000, 0), (0, 8_000), (100_000, 8_000), (8_000, 100_000)])
def test_the_smaller_of_the_users_and_the_models_limit_counts(tokens: int, reading: int) -> None:
    assert context_budget_of(attrs.evolve(LARGE, reading_tokens=reading), tokens) == context_budget_of(LARGE, 8_000)


@pytest.mark.parametrize(("opening", "closing"), [("{", "}"), ("(", ")"), ("[", "]")])
def test_what_is_nested_deeper_than_any_code_is_cut_by_lines(opening: str, closing: str) -> None:
    hole = hole_at(f"x = {opening * 3000}\n¦\n{closing * 3000}\n")
    assert (hole.extent, hole.cursor_context) == ("lines", "statement")


def test_of_a_line_of_a_million_characters_only_what_is_near_is_looked_at() -> None:
    hole = hole_at("x = 1\n" + "a + " * 250_000 + "¦" + " + b" * 250_000 + "\n")
    assert 1000 < len(hole.line_before) < 10_000
    assert 1000 < len(hole.line_after) < 10_000
    assert hole.prefix.endswith(hole.line_before)
    assert hole.suffix.startswith(hole.line_after[:1000])


def test_of_a_word_of_a_million_letters_only_what_is_near_is_replaced() -> None:
    snapshot = opened("a" * 1_000_000)
    cursor = cursor_at_word(snapshot, types.Position(0, 1_000_000), types.PositionEncodingKind.Utf16)
    assert 1000 < len(cursor.inserted) < 10_000


def test_a_body_below_very_many_comments_is_found_or_not_but_at_once() -> None:
    assert hole_at("def f():\n" + "    # a\n" * 20_000 + "    ¦\n\ny = 1\n").extent == "lines"
