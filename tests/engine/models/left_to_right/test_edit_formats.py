"""Formats of models for edits: what is written into a prompt, and which answers are a region's new text."""

import attrs
import pytest
from support.masked_checkpoints import tiny_tokenizer
from tokenizers import AddedToken

from engine.models.edit_formats import EDIT_FORMATS, EditFormat, EditPrompt, Mark, Piece, format_of, marker_offsets
from engine.protocol.rewrite import PastEdit, Report

REGION = "def main():\n    load(1)\n    return 2\n"
ASKED = EditPrompt(
    path="app.py",
    above="import os\n",
    region=REGION,
    below="x = 1\n",
    cursor=REGION.index("load"),
    edits=[PastEdit("app.py", "def load(a):\n", "def load(a, b):\n", 9)],
    related=[("other.py", "y = 2\n")],
)
ROWS = {row.name: row for row in EDIT_FORMATS}


def shown(pieces: list[Piece]) -> str:
    return "".join(piece.token if isinstance(piece, Mark) else piece for piece in pieces)


def test_sweep_shows_the_edits_and_the_region_before_and_now() -> None:
    assert shown(ROWS["sweep"].prompt(ASKED)) == (
        "<|file_sep|>other.py\ny = 2\n"
        "<|file_sep|>app.py.diff\noriginal:\ndef load(a):\nupdated:\ndef load(a, b):\n"
        f"<|file_sep|>original/app.py\n{REGION}"
        f"<|file_sep|>current/app.py\n{REGION}"
        "<|file_sep|>updated/app.py\n"
    )


def test_sweep_shows_the_region_without_an_edit_that_was_made_in_it() -> None:
    own = attrs.evolve(ASKED, edits=[PastEdit("app.py", "    load()\n", "    load(1)\n", 3)])
    assert "original/app.py\ndef main():\n    load()\n    return 2\n<" in shown(ROWS["sweep"].prompt(own))


def test_what_the_editor_reports_comes_after_related_code_where_a_format_has_a_place_for_it() -> None:
    asked = attrs.evolve(ASKED, reports=[Report(2, "    load(1)", "missing argument b")])
    sweep, instruct = (shown(ROWS[name].prompt(asked)) for name in ("sweep", "instruct"))
    assert "y = 2\n<|file_sep|>context/diagnostics\nLine 2: missing argument b\n<|file_sep|>app.py.diff\n" in sweep
    assert "The editor says of `    load(1)`: missing argument b\nThe part:\n" in instruct
    for name in ("zeta2", "zeta2.1"):
        assert ROWS[name].prompt(asked) == ROWS[name].prompt(ASKED)


def test_an_instruct_model_reads_first_what_stays_from_edit_to_edit() -> None:
    text = shown(ROWS["instruct"].prompt(ASKED))
    places = [
        text.rindex(part)
        for part in ("In other.py:\n```\ny = 2\n```\n", "def load(a, b):", f"The part:\n```\n{REGION}")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("row", EDIT_FORMATS, ids=lambda row: row.name)
def test_related_code_and_reports_with_a_mark_of_the_format_are_left_out(row: EditFormat) -> None:
    mark = row.marks[0]
    odd = attrs.evolve(
        ASKED, related=[("a.py", mark), ("b.py", "b\n")], reports=[Report(1, mark, ""), Report(2, "", "c")]
    )
    assert row.without_marks(odd) == attrs.evolve(odd, related=odd.related[1:], reports=odd.reports[1:])


def test_zeta2_has_the_code_below_first_and_the_region_between_merge_marks() -> None:
    assert shown(ROWS["zeta2"].prompt(ASKED)) == (
        "<[fim-suffix]>x = 1\n<[fim-prefix]><filename>other.py\ny = 2\n\n"
        "<filename>edit_history\n--- a/app.py\n+++ b/app.py\n@@ -9,1 +9,1 @@\n-def load(a):\n+def load(a, b):\n\n"
        "<filename>app.py\nimport os\n<<<<<<< CURRENT\ndef main():\n    <|user_cursor|>load(1)\n    return 2\n=======\n"
        "<[fim-middle]>"
    )


def test_zeta21_numbers_the_blocks_of_the_region() -> None:
    region = "".join(f"a{number}\n" for number in range(8)) + "\n" + "".join(f"b{number}\n" for number in range(8))
    asked = attrs.evolve(ASKED, region=region, cursor=0)
    text = shown(ROWS["zeta2.1"].prompt(asked))
    assert "<|marker_1|>\n<|user_cursor|>a0\n" in text
    assert "\n\n<|marker_2|>\nb0\n" in text
    assert text.endswith("b7\n<|marker_3|>\n<[fim-middle]>")
    second = "<|marker_2|>\nc\n<|marker_3|>"
    assert ROWS["zeta2.1"].read(asked, second) == region[: marker_offsets(region)[1]] + "c\n"


def test_an_instruct_model_is_asked_in_turns_and_begins_with_what_is_kept() -> None:
    kept = REGION.index("    load")
    text = shown(ROWS["instruct"].prompt(attrs.evolve(ASKED, kept=kept)))
    assert text.startswith("<|im_start|>system\n")
    assert text.endswith("<|im_start|>assistant\n```\ndef main():\n")
    assert "def load(a, b):\n" in text
    assert REGION in text


@pytest.mark.parametrize("row", EDIT_FORMATS, ids=lambda row: row.name)
def test_an_unchanged_answer_leaves_the_region_as_it_is(row: EditFormat) -> None:
    kept = 0 if row.name == "zeta2.1" else REGION.index("    load")
    asked = attrs.evolve(ASKED, kept=kept)
    assert row.read(asked, row.unchanged(asked)) == REGION


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("sweep", "  \n"),
        ("zeta2", "def main():\n    load(1, 2)\n"),
        ("zeta2.1", "def main():\n    load(1, 2)\n"),
        ("zeta2.1", "<|marker_2|>\nx\n<|marker_1|>"),
        ("zeta2.1", "<|marker_1|>\nx\n<|marker_9|>"),
        ("instruct", "def main():\n    load(1, 2)\n"),
    ],
)
def test_half_an_answer_and_one_without_its_marks_is_nothing(name: str, answer: str) -> None:
    assert ROWS[name].read(ASKED, answer) is None


@pytest.mark.parametrize("name", ["zeta2", "zeta2.1"])
def test_zed_says_in_its_own_way_that_nothing_changes(name: str) -> None:
    says = {"zeta2": "NO_EDITS\n>>>>>>> UPDATED", "zeta2.1": "<|marker_2|><|marker_2|>"}[name]
    assert ROWS[name].read(ASKED, says) == REGION


def test_blank_lines_at_the_end_of_a_region_stay() -> None:
    asked = attrs.evolve(ASKED, region=f"{REGION}\n\n")
    for name, answer in (("instruct", f"{REGION}```"), ("sweep", REGION)):
        assert ROWS[name].read(asked, answer) == asked.region


def test_tabs_stay_and_the_last_line_has_an_end() -> None:
    assert ROWS["instruct"].read(ASKED, "func a() {\n\tb()\n}\n```") == "func a() {\n\tb()\n}\n"
    assert ROWS["sweep"].read(ASKED, "a\n\tb") == "a\n\tb\n"


@pytest.mark.parametrize("row", EDIT_FORMATS, ids=lambda row: row.name)
def test_a_text_with_a_mark_of_the_format_is_ambiguous(row: EditFormat) -> None:
    assert not row.is_ambiguous(ASKED)
    for mark in (*row.marks, *row.reserved):
        assert row.is_ambiguous(attrs.evolve(ASKED, below=f"x {mark}\n"))


def test_the_format_follows_from_the_name_and_the_tokens_of_a_model() -> None:
    tokenizer = tiny_tokenizer()
    assert format_of("Qwen2.5 Coder Instruct", tokenizer) is None
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in ("<|im_start|>", "<|im_end|>")])
    assert format_of("Qwen2.5 Coder Instruct", tokenizer) is ROWS["instruct"]
    assert format_of("Qwen2.5 Coder", tokenizer) is None
