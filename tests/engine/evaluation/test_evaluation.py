"""The evaluation: which holes are filled, with which strategies, and how fills are judged, all with the tiny random
model.
"""

import itertools
from pathlib import Path

import pytest
from support.sources import source_paths

from benchmarks.quality.suffix import suffix_gains, without_suffix
from engine.corpus.corpus import File
from engine.corpus.holes import KINDS, TrainingHole
from engine.corpus.languages import LANGUAGES
from engine.errors import MidspanError
from engine.evaluation.measure import measure
from engine.evaluation.rows import (
    DENOISE,
    STRATEGIES,
    TWIN,
    VERIFY,
    Reference,
    Row,
    Task,
    edit_distance,
    edit_similarity,
    extent_of,
    held_out,
    read_rows,
    write_rows,
)
from engine.evaluation.summary import accepted_an_iteration, speeds, summarize
from engine.fill.interface import FillStrategy, Model
from engine.models.load import load

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    return load(str(tiny_model), threads=1)


@pytest.fixture(scope="module")
def files() -> list[File]:
    return [File(path.stem, "python", path.read_text()) for path in source_paths()]


def make_row(
    number: int,
    strategy: FillStrategy,
    *,
    tokens: int = 4,
    ms: float = 10.0,
    exact: bool = False,
    steps: int = 4,
    whole: bool = True,
) -> Row:
    return Row(
        strategy=strategy.name,
        language="python",
        kind="rest of line",
        number=number,
        seen="both sides" if whole else "above only",
        exact=exact,
        first_line=exact,
        similarity=float(exact),
        valid=True if exact else None,
        confidence=0.5,
        tokens=tokens,
        steps=steps,
        ms=ms,
        finish="complete",
        text="",
    )


def test_the_same_seed_cuts_the_same_holes(files: list[File]) -> None:
    for kind in KINDS:
        tasks = held_out(files, "python", kind, 12)
        assert len(tasks) == 12
        assert tasks == held_out(files, "python", kind, 12)
        assert held_out(files, "python", kind, 5) == tasks[:5]
        assert tasks != held_out(files, "python", kind, 12, seed=3)
    assert held_out(files, "cobol", "lines", 3) == []


@pytest.mark.parametrize(
    ("before", "middle", "after", "kind", "extent"),
    [
        ("x = ", "1", "\ny\n", "rest of line", "line"),
        ("f(", "a", ")\n", "inside", "line"),
        ("if x:\n    ", "y = 1", "\n", "lines", "lines"),
        ("if x:\n    ", "y = 1\n    z = 2", "\n", "body", "lines"),
        ("a", "b", "c", "span", "line"),
        ("a", "b\nc", "d", "span", "lines"),
    ],
)
def test_the_extent_of_a_hole_does_not_reveal_its_length(
    before: str, middle: str, after: str, kind: str, extent: str
) -> None:
    assert extent_of(TrainingHole(before, middle, after, kind, "a.py", "python")) == extent


async def test_every_strategy_fills_every_hole_and_verify_equals_left_to_right(model: Model, files: list[File]) -> None:
    tasks = [*held_out(files, "python", "rest of line", 3), *held_out(files, "python", "lines", 2)]
    rows = await measure(model, tasks)
    assert len(rows) == len(tasks) * len(STRATEGIES)
    assert all(row.ms > 0 and row.valid is not None and 0 <= row.confidence <= 1 for row in rows)
    texts = {(row.hole, row.strategy): row.text for row in rows}
    assert all(texts[hole, TWIN.name] == texts[hole, VERIFY.name] for hole, _ in texts)


async def test_holes_filled_together_get_the_same_answers_as_alone(model: Model, files: list[File]) -> None:
    tasks = held_out(files, "python", "rest of line", 6)
    alone, together = await measure(model, tasks), await measure(model, tasks, together=4)
    assert [(row.hole, row.strategy, row.text) for row in alone] == [
        (row.hole, row.strategy, row.text) for row in together
    ]
    assert not any(row.ms for row in together)


async def test_a_task_without_suffix_sends_no_code_after_the_cursor(model: Model, files: list[File]) -> None:
    tasks = held_out(files, "python", "inside", 4)
    blind = without_suffix(tasks)
    assert all(task.fill(TWIN).suffix == "" for task in blind)
    assert all(task.fill(TWIN).suffix for task in tasks if task.hole.suffix.strip())
    rows = [*await measure(model, tasks, (TWIN,)), *await measure(model, blind, (TWIN,))]
    assert [gain.holes for gain in suffix_gains(rows)] == [len(blind)]
    assert [summary.holes for summary in summarize(rows)] == [len(tasks)]


def test_edit_similarity_counts_the_characters_to_change() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    assert edit_similarity("abcd", "abcd") == edit_similarity("", "") == 1
    assert edit_similarity("abc", "cab") == pytest.approx(1 / 3)  # the same characters are not the same text
    for first, second in itertools.product(("", "a", "ab", "return x"), repeat=2):
        assert edit_similarity(first, second) == edit_similarity(second, first)


@pytest.mark.parametrize(
    ("language", "path", "text", "good", "bad"),
    [
        ("python", "a.py", "def f(x):\n    return <x + 1>\n\nf(1)\n", "x", "x +)"),
        ("typescript", "a.tsx", "const a = <<b>{c}</b>>;\n", "<i>é</i>", "<b>{c}"),
        ("javascript", "a.js", "let a = <b>;\nlet c = 2;\n", "[1,\n 2]", "[1, (2]"),
        ("go", "a.go", "package a\n\nvar b = <1>\n", 'f("x")', "f("),
    ],
)
def test_a_fill_is_valid_if_the_file_has_no_more_errors_than_before(
    language: str, path: str, text: str, good: str, bad: str
) -> None:
    before, _, rest = text.partition("<")
    middle, _, after = rest.rpartition(">")
    reference = Reference(TrainingHole(before, middle, after, "span", path, language))
    assert reference.allows(middle) is True
    assert reference.allows(good) is True
    assert reference.allows(bad) is False


@pytest.mark.parametrize("language", sorted(set(LANGUAGES.values())))
def test_every_language_of_the_corpus_has_a_grammar(language: str) -> None:
    assert Reference(TrainingHole("", "", "\n", "lines", "a", language)).allows("") is True


def test_a_fill_of_a_broken_file_is_valid_if_it_adds_no_error() -> None:
    reference = Reference(TrainingHole("def f(:\n    ", "return 1", "\n", "lines", "a.py", "python"))
    assert reference.allows("return 2")
    assert Reference(TrainingHole("a", "b", "c", "span", "a.cob", "cobol")).allows("d") is None


def test_speeds_are_grouped_by_the_length_of_the_twins_answer() -> None:
    lengths = {0: 1, 1: 7, 2: 8, 3: 31, 4: 64, 5: 0}
    rows = [make_row(number, TWIN, tokens=tokens, ms=tokens * 10.0) for number, tokens in lengths.items()]
    rows += [make_row(number, DENOISE, tokens=3, ms=20.0) for number in lengths]
    by_bucket = {speed.bucket: (speed.holes, speed.speedup) for speed in speeds(rows, DENOISE)}
    assert by_bucket == {"1-7": (2, 2.0), "8-15": (1, 4.0), "16-31": (1, 15.5), "32+": (1, 32.0)}


def test_accepted_tokens_an_iteration_are_the_twins_passes_over_those_of_verify() -> None:
    drafted = [make_row(0, VERIFY, tokens=5, steps=2), make_row(1, VERIFY, tokens=2, steps=1)]
    assert (
        accepted_an_iteration([*drafted, make_row(0, TWIN, tokens=5, steps=6), make_row(1, TWIN, tokens=2, steps=3)])
        == 3.0
    )
    assert accepted_an_iteration([make_row(0, TWIN)]) == 0.0


def test_a_suffix_gain_compares_the_same_holes_with_and_without_their_suffix() -> None:
    seen = [make_row(number, TWIN, exact=number < 6) for number in range(10)]
    blind = [make_row(number, TWIN, exact=number < 2, whole=False) for number in range(8)]
    (gain,) = suffix_gains([*seen, *blind])
    assert (gain.holes, gain.exact_with, gain.exact_without, gain.ratio) == (8, 0.75, 0.25, 3.0)


def test_a_summary_ignores_rows_that_were_not_judged() -> None:
    (summary,) = summarize([make_row(0, TWIN, exact=True), make_row(1, TWIN), make_row(2, TWIN)])
    assert (summary.holes, summary.exact, summary.valid, summary.passed) == (3, 0.3333, 1.0, None)


async def test_rows_are_read_back_as_they_were_written(model: Model, files: list[File], tmp_path: Path) -> None:
    rows = await measure(model, held_out(files, "python", "lines", 2), (TWIN,))
    write_rows(rows, tmp_path / "rows" / "python.jsonl")
    assert read_rows(tmp_path / "rows" / "python.jsonl") == rows
    (tmp_path / "old.jsonl").write_text('{"way": "threshold", "exact": true}\n')
    with pytest.raises(MidspanError, match=r"old\.jsonl has no rows"):
        read_rows(tmp_path / "old.jsonl")


def test_a_task_sends_no_more_code_than_the_language_server() -> None:
    task = Task(TrainingHole("a" * 9000, "b", "c" * 9000, "span", "a.py", "python"), 0, "line")
    assert (len(task.fill(TWIN).prefix), len(task.fill(TWIN).suffix)) == (6000, 3000)
