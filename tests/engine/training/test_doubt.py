"""How much a model's sureness is believed is fitted by what its lines would have been worth, and kept beside it."""

from pathlib import Path

import pytest
from support.gguf_files import tiny_network
from support.kernel_passes import skip_without

from engine.corpus.corpus import packages
from engine.corpus.languages import File
from engine.errors import ModelError
from engine.models.left_to_right.doubt import DOUBT, MOST, fitted_doubt_of, keep_doubt
from engine.models.left_to_right.load import load_gguf
from engine.training import doubt as fitting
from engine.training.doubt import DOUBTS, Fitted, Line, Shown, fit_doubt

CODE = "".join(f"def total_{number}(values):\n    return sum(values) + {number}\n\n\n" for number in range(12))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    skip_without("plain")
    return tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf", "Q4_0")


def lines(confidence: float, right: float, count: int = 100) -> list[Line]:
    """Return lines of 20 characters, a share of which is right."""
    return [Line(confidence, 20, at < right * count) for at in range(count)]


def test_a_model_that_is_as_right_as_it_is_sure_is_not_doubted() -> None:
    honest = [*lines(0.95, 0.95), *lines(0.7, 0.7), *lines(0.3, 0.3)]
    assert Fitted.of(honest, honest).doubt == 1


def test_a_model_that_is_surer_than_it_is_right_is_doubted_until_its_wrong_lines_are_hidden() -> None:
    sure = [*lines(0.99, 0.95), *lines(0.9, 0.4), *lines(0.8, 0.2)]
    fitted = Fitted.of(sure, lines(0.99, 1.0, 200))
    assert fitted.doubt > 1
    chosen, other = fitted.table[fitted.doubt]
    assert (chosen.lines, chosen.right) == (100, 95)
    assert other == Shown.of(lines(0.99, 1.0, 200), fitted.doubt)
    assert chosen.keys == max(halves[0].keys for halves in fitted.table.values())


def test_a_line_counts_as_an_editor_shows_it() -> None:
    assert Line(0.99, 20, True).shown(1)
    assert not Line(0.99, 2, True).shown(1), "it is too short"
    assert not Line(0.6, 20, True).shown(4)
    assert Shown.of([Line(0.99, 20, True), Line(0.99, 20, False)], 1).keys == (19 - 2) + (-2 - 20)


def test_a_few_lines_choose_nothing() -> None:
    with pytest.raises(ModelError, match="3 and 100 lines are too few"):
        Fitted.of(lines(0.9, 1.0, 3), lines(0.9, 1.0))


def test_a_model_fills_the_lines_of_both_halves_of_the_packages(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "FEWEST_LINES", 2)
    files = [File(f"{package}/part{at}.py", "python", f"# {at}\n{CODE}") for package in "ab" for at in range(40)]
    files.sort(key=lambda file: file.path.split("/")[0])
    assert len(list(packages(files))) >= 2
    fitted = fit_doubt(load_gguf(path, 1), str(path), files, minutes=1, count=3)
    assert fitted.lines == (3, 3)
    assert fitted.doubt in DOUBTS


def test_what_is_kept_beside_a_model_is_what_its_editors_hear(path: Path) -> None:
    assert fitted_doubt_of(path) is None
    assert load_gguf(path, 1).info.doubt == DOUBT
    assert keep_doubt(path, 2.0) == path.with_name("tiny.gguf.doubt.json")
    assert load_gguf(path, 1).info.doubt == 2


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"doubt": 0.5}', '{"doubt": true}', f'{{"doubt": {MOST + 1}}}', '{"doubt": NaN}']
)
def test_a_damaged_file_is_named_in_one_line(path: Path, content: str) -> None:
    path.with_name("tiny.gguf.doubt.json").write_text(content)
    with pytest.raises(ModelError, match="midspan train fit") as caught:
        load_gguf(path, 1)
    assert "\n" not in str(caught.value)
