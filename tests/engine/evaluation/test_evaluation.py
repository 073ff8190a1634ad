"""The evaluation: which holes are filled, how, and what a fill is worth. All by the tiny random model."""

import itertools
from pathlib import Path

import pytest
from sources import source_paths

from engine.corpus.corpus import File
from engine.corpus.holes import KINDS, TrainingHole
from engine.corpus.languages import LANGUAGES
from engine.errors import MidspanError
from engine.evaluation.measure import Row, first_line_confidence, measure
from engine.evaluation.similarity import edit_distance, edit_similarity
from engine.evaluation.summary import accepted_an_iteration, speeds, suffix_gains, summarize
from engine.evaluation.syntax import Reference
from engine.evaluation.task import Task, extent_of, held_out, without_suffix
from engine.evaluation.ways import DENOISE, TWIN, VERIFY, WAYS, FillStrategy
from engine.fill.interface import Model
from engine.models.load import load
from engine.protocol import confidence
from engine.protocol.messages import Candidate
from engine.training import evaluate

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def family(tiny_model: Path) -> Model:
    return load(str(tiny_model), threads=1)


@pytest.fixture(scope="module")
def files() -> list[File]:
    return [File(path.name, "python", path.read_text()) for path in source_paths()]


def row(
    number: int,
    way: FillStrategy,
    *,
    tokens: int = 4,
    ms: float = 10.0,
    exact: bool = False,
    steps: int = 4,
    whole: bool = True,
) -> Row:
    return Row(
        way=way.name,
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
def test_a_free_line_is_asked_for_without_telling_that_it_is_one(
    before: str, middle: str, after: str, kind: str, extent: str
) -> None:
    assert extent_of(TrainingHole(before, middle, after, kind, "a.py", "python")) == extent


async def test_every_way_fills_every_hole_and_left_to_right_is_verified(family: Model, files: list[File]) -> None:
    tasks = [*held_out(files, "python", "rest of line", 3), *held_out(files, "python", "lines", 2)]
    rows = await measure(family, tasks)
    assert len(rows) == len(tasks) * len(WAYS)
    assert all(one.ms > 0 and one.valid is not None and 0 <= one.confidence <= 1 for one in rows)
    texts = {(one.hole, one.way): one.text for one in rows}
    assert all(texts[hole, TWIN.name] == texts[hole, VERIFY.name] for hole, _ in texts)


async def test_holes_filled_together_get_the_answers_they_get_alone(family: Model, files: list[File]) -> None:
    tasks = held_out(files, "python", "rest of line", 6)
    alone, together = await measure(family, tasks), await measure(family, tasks, together=4)
    assert [(one.hole, one.way, one.text) for one in alone] == [(one.hole, one.way, one.text) for one in together]
    assert not any(one.ms for one in together)


async def test_without_the_suffix_nothing_behind_the_cursor_is_sent(family: Model, files: list[File]) -> None:
    tasks = held_out(files, "python", "inside", 4)
    blind = without_suffix(tasks)
    assert all(task.fill(TWIN).suffix == "" for task in blind)
    assert all(task.fill(TWIN).suffix for task in tasks if task.hole.suffix.strip())
    rows = [*await measure(family, tasks, (TWIN,)), *await measure(family, blind, (TWIN,))]
    assert [gain.holes for gain in suffix_gains(rows)] == [len(blind)]
    assert [summary.holes for summary in summarize(rows)] == [len(tasks)]


async def test_the_confidence_is_what_the_gate_goes_by(family: Model, files: list[File]) -> None:
    """Of an answer that is shown as it is, the engine's rule and the language server's are the same number."""
    answers = [
        Candidate("\n  a = b\n  c", ["\n ", " a", " = b", "\n", "  c"], [0.2, 0.9, 0.4, 0.1, 0.1], "complete"),
        Candidate("one", ["on", "e"], [0.5, 0.25], "complete", end_confidence=0.5),
        Candidate("x", ["x"], [0.0], "complete"),
        Candidate("", [], [], "complete"),
    ]
    for answer in answers:
        assert first_line_confidence(answer) == pytest.approx(confidence.first_line_confidence(answer, answer.text))
    for one in await measure(family, held_out(files, "python", "lines", 4), (TWIN, DENOISE)):
        assert 0 <= one.confidence <= 1


def test_edit_similarity_counts_what_would_have_to_be_changed() -> None:
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
def test_a_fill_is_valid_when_the_file_has_no_more_errors(
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


def test_a_file_that_is_broken_already_may_stay_as_broken() -> None:
    reference = Reference(TrainingHole("def f(:\n    ", "return 1", "\n", "lines", "a.py", "python"))
    assert reference.allows("return 2")
    assert Reference(TrainingHole("a", "b", "c", "span", "a.cob", "cobol")).allows("d") is None


def test_speed_is_told_by_the_length_of_the_twins_answer() -> None:
    lengths = {0: 1, 1: 7, 2: 8, 3: 31, 4: 64, 5: 0}
    rows = [row(number, TWIN, tokens=tokens, ms=tokens * 10.0) for number, tokens in lengths.items()]
    rows += [row(number, DENOISE, tokens=3, ms=20.0) for number in lengths]
    found = {speed.bucket: (speed.holes, speed.speedup) for speed in speeds(rows, DENOISE)}
    assert found == {"1-7": (2, 2.0), "8-15": (1, 4.0), "16-31": (1, 15.5), "32+": (1, 32.0)}


def test_an_iteration_commits_what_left_to_right_needs_so_many_passes_for() -> None:
    drafted = [row(0, VERIFY, tokens=5, steps=2), row(1, VERIFY, tokens=2, steps=1)]
    assert accepted_an_iteration([*drafted, row(0, TWIN, tokens=5, steps=6), row(1, TWIN, tokens=2, steps=3)]) == 3.0
    assert accepted_an_iteration([row(0, TWIN)]) == 0.0


def test_the_suffix_is_worth_what_the_same_holes_lose_without_it() -> None:
    seen = [row(number, TWIN, exact=number < 6) for number in range(10)]
    blind = [row(number, TWIN, exact=number < 2, whole=False) for number in range(8)]
    (gain,) = suffix_gains([*seen, *blind])
    assert (gain.holes, gain.exact_with, gain.exact_without, gain.ratio) == (8, 0.75, 0.25, 3.0)


def test_a_summary_leaves_out_what_was_not_judged() -> None:
    (summary,) = summarize([row(0, TWIN, exact=True), row(1, TWIN), row(2, TWIN)])
    assert (summary.holes, summary.exact, summary.valid, summary.passed) == (3, 0.3333, 1.0, None)


async def test_rows_are_read_as_they_were_written(family: Model, files: list[File], tmp_path: Path) -> None:
    rows = await measure(family, held_out(files, "python", "lines", 2), (TWIN,))
    evaluate.write_rows(rows, tmp_path / "rows" / "python.jsonl")
    assert evaluate.read_rows(tmp_path / "rows" / "python.jsonl") == rows
    (tmp_path / "old.jsonl").write_text('{"way": "threshold", "exact": true}\n')
    with pytest.raises(MidspanError, match=r"old\.jsonl has no rows"):
        evaluate.read_rows(tmp_path / "old.jsonl")


def test_a_task_sends_no_more_than_the_language_server() -> None:
    task = Task(TrainingHole("a" * 9000, "b", "c" * 9000, "span", "a.py", "python"), 0, "line")
    assert (len(task.fill(TWIN).prefix), len(task.fill(TWIN).suffix)) == (6000, 3000)
