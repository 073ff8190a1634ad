"""Typing and calibration figures counted by hand, and all of benchmarks/quality/quality.py with the tiny model."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
from support.sources import source_paths
from typer.testing import CliRunner

from benchmarks.quality.typing_tasks import (
    Inserted,
    Screen,
    Stroke,
    Typing,
    TypingTask,
    cut,
    cut_span,
    insert,
    insertions,
    is_hopeless,
    places,
    press,
    tally,
    type_place,
)
from engine.corpus.corpus import File
from engine.evaluation.calibration import Judged, calibration_error, gate_for, gate_table, reliability
from engine.evaluation.keystrokes import is_start, keys
from engine.evaluation.rows import STRATEGIES, read_rows
from engine.protocol.confidence import FEWEST_CHARACTERS, GLANCE, WRONG
from engine.training.cli import app

ROOT = Path(__file__).parents[3]


def typed(text: str, screens: dict[int, str]) -> list[Stroke]:
    """Type `text` with `screens` shown at their positions."""
    strokes, position = [], 0
    while position < len(text):
        stroke, written = press(text[position:], Screen(screens.get(position, "")))
        strokes.append(stroke)
        position += written
    return strokes


def test_a_newline_with_its_indentation_is_one_key() -> None:
    assert keys("ab\n    c\n\td") == 6
    assert len(typed("ab\n    c\n\td", {})) == 6


def test_without_suggestions_nothing_is_saved() -> None:
    typing = tally([typed("x = 1\ny = 2", {}), typed("z", {})])
    assert (typing.places, typing.characters, typing.keys, typing.saved) == (2, 12, 12, 0.0)
    assert (typing.shown, typing.right, typing.whole) == (0.0,) * 3


def test_a_right_rest_of_a_line_is_taken_with_one_key() -> None:
    typing = tally([typed("return value\nx", {7: "value"})])
    assert (typing.characters, typing.keys) == (14, 10)
    assert typing.saved == round(4 / 14, 4)
    assert typing.right == 1.0


def test_a_wrong_suggestion_is_not_taken_and_counts_as_shown() -> None:
    typing = tally([typed("abcd", {0: "abxx", 1: "abc", 2: "cd"})])
    assert (typing.keys, typing.characters) == (3, 4)
    assert (typing.shown, typing.right) == (1.0, round(1 / 3, 4))


def test_a_right_start_of_a_line_is_taken_with_one_key_and_typing_continues_after_it() -> None:
    typing = tally([typed("return value + 1\nx", {0: "return value", 13: "+ 1"})])
    assert (typing.characters, typing.keys) == (18, 5)
    assert typing.saved == round(1 - 5 / 18, 4)
    assert (typing.right, typing.whole) == (1.0, 0.5)


def test_a_start_of_a_line_is_right_but_not_whole() -> None:
    typing = tally([typed("return value + 1", {0: "return value"})])
    assert (typing.right, typing.whole) == (1.0, 0.0)


def test_a_start_that_ends_inside_a_name_or_a_number_is_not_right() -> None:
    assert is_start("value", "value + 1")
    assert is_start("value +", "value + 1")
    assert is_start("value + 1", "value + 1")
    assert not is_start("val", "value + 1")
    assert not is_start("value - ", "value + 1")
    assert not is_start("x = 1", "x = 10")
    assert not is_start("x = 1", "x = 1.5")
    assert not is_start("x = 1.", "x = 1.5")
    assert not is_start("", "value + 1")
    stroke, written = press("value + 1\n", Screen("val"))
    assert (stroke.shown, stroke.right, written) == (True, False, 1)


def test_a_very_short_start_is_right_but_not_taken() -> None:
    short = "value"[: FEWEST_CHARACTERS - 1]
    assert press(f"{short} + 1", Screen(short)) == (Stroke(True, True, 1), 1)
    assert press(short, Screen(short))[1] == len(short), "but a short rest of a line is taken"


def test_a_suggestion_at_the_end_of_a_line_is_wrong() -> None:
    stroke, written = press("\n    x", Screen("junk"))
    assert (stroke.shown, stroke.right, written) == (True, False, 5)


def test_several_lines_are_all_taken_only_if_all_are_right() -> None:
    rest = "a = 1\n    b = 2\n    c = 3"
    assert press(rest, Screen("a = 1\n    b = 2"))[1] == len("a = 1\n    b = 2")
    assert press(rest, Screen("a = 1\n    b = "))[1] == len("a = 1")
    assert press(rest, Screen("a = 1\n    x = 9"))[1] == len("a = 1")
    assert press(rest, Screen("a =\n    x = 9"))[1] == len("a =")
    assert press(rest, Screen(rest))[0] == Stroke(shown=True, right=True, gained=keys(rest), whole=True)


@pytest.mark.parametrize(
    ("candidate", "hopeless"),
    [
        ("other", True),
        ("value", False),
        ("value - 1", False),
        ("values", True),
        ("val", False),
        ("", False),
        ("+ 1", True),
    ],
)
def test_a_candidate_is_hopeless_if_no_start_of_it_is_right(candidate: str, hopeless: bool) -> None:
    assert is_hopeless(candidate, "value + 1") == hopeless


def test_quiet_is_the_share_without_ghost_text_where_nothing_right_could_be_shown() -> None:
    hidden, shown = Screen(best="other"), Screen("other", best="other")
    right_but_hidden, nothing = Screen(best="value"), Screen()
    screens = [hidden, hidden, hidden, shown, right_but_hidden, nothing]
    typing = tally([[press("value + 1", screen)[0] for screen in screens]])
    assert typing.quiet == 0.75
    assert typing.right == 0.0


async def typing_of(text: str, screens: dict[int, str]) -> Typing:
    """Type `text` with `screens` shown at their positions, and what is left of the one before at all others."""
    begun, shown = 0, ""

    async def suggest(typed: int) -> Screen:
        nonlocal begun, shown
        if typed in screens:
            begun, shown = typed, screens[typed]
        along = text[begun:typed]
        return Screen(shown[len(along) :] if shown.startswith(along) else "")

    return tally([await type_place(TypingTask("a.py", "python", "", text, ""), suggest)])


async def test_net_keys_are_the_saved_ones_minus_a_glance_each_and_the_price_of_wrong_ones() -> None:
    right = await typing_of("return value + 1", {7: "value + 1"})
    assert (right.offers, right.net) == (1, round((8 - GLANCE) / 16, 4))
    wrong = await typing_of("return value + 1", {7: "other"})
    assert (wrong.offers, wrong.net) == (1, round((-GLANCE - WRONG) / 16, 4))


async def test_what_is_typed_along_is_one_offer_and_a_longer_text_another() -> None:
    along = await typing_of("return value + 1", {7: "vary"})
    assert (along.shown, along.offers) == (round(3 / 16, 4), 1)
    grown = await typing_of("return value + 1", {7: "vary", 9: "rying"})
    assert grown.offers == 2
    assert grown.net == round(-2 * (GLANCE + WRONG) / 16, 4)


async def test_an_offer_is_wrong_if_a_line_below_its_first_is() -> None:
    text = "first = 1\nsecond = 2"
    both, one = [await typing_of(text, {0: shown}) for shown in (text, "first = 1\nsecond = 3")]
    assert both.net == round((len(text) - 1 - GLANCE) / len(text), 4)
    assert one.net == round((len("first = 1") - 1 - GLANCE - WRONG) / len(text), 4)


async def test_lengths_are_of_right_offers() -> None:
    typing = await typing_of("abcd + efghijklmn + opq", {0: "abcd", 7: "efghijklmn", 20: "other thing"})
    assert (typing.offers, typing.length, typing.short) == (3, 7, 0.5)


def test_an_insertion_gives_the_file_back_and_ends_before_a_word() -> None:
    files = [File(path.stem, "python", path.read_text()) for path in source_paths()]
    texts = {file.path: file.text for file in files}
    tasks = insertions(files, "python", 10)
    assert len(tasks) == 10
    assert tasks == insertions(files, "python", 10)
    for task in tasks:
        assert task.above + task.text + task.below == texts[task.path]
        assert re.fullmatch(r"[^\W\d][\w.]*(\(|, )", task.text)
        assert re.match(r"\w", task.below)
    assert insertions(files, "cobol", 3) == []


@pytest.mark.parametrize(
    ("line", "spans"),
    [
        ("    value = connect(hostname, port)", {"connect(", "hostname, "}),
        ("def connect(hostname, port):", {"hostname, "}),
        ("# connect(hostname, port)", set()),
        ("a sentence, and another", set()),
        ("    self.connect(a, b)", {"self.connect("}),
    ],
)
def test_a_span_is_an_argument_or_the_start_of_a_call(line: str, spans: set[str]) -> None:
    file, rng = File("a.py", "python", f"x = 1\n{line}\ny = 2\n"), random.Random(0)
    tasks = [cut_span(file, 1, rng) for _ in range(30)]
    assert {task.text for task in tasks if task is not None} == spans


async def test_what_is_inserted_is_right_if_it_is_what_was_cut_out() -> None:
    tasks = [TypingTask("a.py", "python", "f(", "name, ", "x)\n")] * 3
    texts = iter(["name, ", "name", ""])

    async def suggest(_: int) -> Screen:
        return Screen(next(texts))

    assert await insert(tasks, [suggest] * 3) == Inserted(places=3, shown=2, right=1)


def test_places_are_consecutive_lines_of_code_and_give_the_file_back() -> None:
    files = [File(path.stem, "python", path.read_text()) for path in source_paths()]
    texts = {file.path: file.text for file in files}
    tasks = places(files, "python", 10)
    assert len(tasks) == 10
    assert tasks == places(files, "python", 10)
    for task in tasks:
        assert task.above + task.text + task.below == texts[task.path]
        assert task.text.count("\n") == 2
        assert not task.text[0].isspace()
        assert task.below[:1] in ("", "\n")
    assert places(files, "cobol", 3) == []
    assert cut(File("a.py", "python", "x = 12345\n\nyy = 12345\n"), 0, 2) is None


def fills(*groups: tuple[float, int, int]) -> list[Judged]:
    """Return fills from (confidence, number right, number wrong)."""
    return [
        Judged(confidence, right)
        for confidence, good, bad in groups
        for right, count in ((True, good), (False, bad))
        for _ in range(count)
    ]


def test_fills_that_are_right_as_often_as_they_claim_have_no_calibration_error() -> None:
    assert calibration_error(fills((0.25, 1, 3), (0.75, 3, 1), (1.0, 2, 0))) == 0.0
    assert calibration_error(fills((0.9, 0, 10))) == 0.9
    assert calibration_error(fills((0.95, 0, 5), (0.05, 0, 5))) == 0.5
    assert calibration_error([]) == 0.0


def test_reliability_has_a_bin_for_each_tenth_with_fills() -> None:
    bins = reliability(fills((0.0, 0, 2), (0.05, 1, 0), (1.0, 3, 1)))
    assert [(each.low, each.high, each.count) for each in bins] == [(0.0, 0.1, 3), (0.9, 1.0, 4)]
    assert bins[-1].right == 0.75


def test_the_gate_is_the_lowest_one_with_six_of_ten_right() -> None:
    judged = fills((0.9, 20, 0), (0.6, 10, 10), (0.3, 5, 5), (0.1, 1, 29))
    gate = gate_for(judged)
    assert gate is not None
    assert (gate.threshold, gate.shown, gate.right) == (0.3, 50 / 80, 0.7)
    assert gate_for(judged, wanted=0.8) == gate_for(judged, wanted=0.76) != gate
    assert gate_for(fills((0.9, 19, 0))) is None
    assert gate_for(fills((0.9, 1, 99))) is None


def test_the_gate_table_ends_at_the_last_gate_that_shows_a_fill() -> None:
    table = gate_table(fills((0.12, 1, 1), (0.52, 1, 0)))
    assert [gate.threshold for gate in table] == pytest.approx([percent / 100 for percent in range(0, 55, 5)])
    assert (table[0].shown, table[-1].right) == (1.0, 1.0)


GO = "package a\n\nfunc Double(number int) int {\n\ttwice := number + number\n\tlog.Print(twice)\n\treturn twice\n}\n"


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_the_quality_benchmark_runs_from_files_to_figures(tiny_model: Path, tmp_path: Path) -> None:
    sources = source_paths()
    rows = [[path.stem, "python", path.read_text()] for path in sources]
    rows += [["a.go", "go", GO * 5]]
    (tmp_path / "judge.msgpack").write_bytes(msgpack.packb(rows))
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "quality" / "quality.py"),
        "--share",
        "0.01",
        "--model",
        str(tiny_model),
    ]
    run = subprocess.run(
        [*command, "--corpus", str(tmp_path), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "right among shown, python" in run.stdout
    assert "keys saved, mean of the others" in run.stdout
    assert "net keys, python" in run.stdout
    assert "before a word, something shown" in run.stdout
    quality = json.loads((tmp_path / "out" / "quality.json").read_text())
    assert quality["split"] == "judge"
    assert {summary["language"] for summary in quality["fills"]} == {"python", "go"}
    assert set(quality["typing"]) == {"python", "go"}
    assert list(quality["typing"]["python"]) == ["word completion", "runs alone", "model alone", "file", "workspace"]
    assert all(typing["keys"] > 0 for typing in quality["typing"]["python"].values())
    written = read_rows(tmp_path / "out" / "quality.jsonl")
    assert {row.seen for row in written} == {"both sides", "above only"}
    assert {row.strategy for row in written} == {strategy.name for strategy in STRATEGIES}


def test_train_eval_prints_tables_and_writes_rows(tiny_model: Path, tmp_path: Path) -> None:
    rows = [[path.stem, "python", path.read_text()] for path in source_paths()]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "held-out.msgpack").write_bytes(msgpack.packb(rows))
    target = tmp_path / "evaluation" / "python.jsonl"
    command = ["eval", "--model", str(tiny_model), "--work", str(tmp_path), "--count", "2"]
    result = CliRunner().invoke(app, [*command, "--rows", str(target)])
    assert result.exit_code == 0, result.output
    assert "python, rest of line, 2 holes" in result.output
    assert "calibration error" in result.output
    assert len(read_rows(target)) == 2 * 2 * len(STRATEGIES)
