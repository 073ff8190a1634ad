"""An adapter is trained for a frozen model, which then writes the same text in fewer passes."""

import json
from pathlib import Path

import attrs
import msgpack
import pytest
import torch
from support.fill_tasks import run_to_end, started
from support.gguf_files import SHAPES, tiny_network

from engine.corpus.corpus import CorpusError
from engine.corpus.languages import File
from engine.errors import ModelError
from engine.models.embedded.adapter import ADAPTER_FILE
from engine.models.left_to_right.load import load_gguf
from engine.models.left_to_right.model import LeftToRightModel
from engine.protocol.messages import Fill
from engine.training import adapt
from engine.training.adapt import (
    CHECKPOINT,
    MASKS,
    MIDDLE_TOKENS,
    Examples,
    Progress,
    Run,
    code_of,
    frozen_model,
    train_adapter,
)
from engine.training.checkpoint import CheckpointError

FUNCTION = """def total(values):
    result = 0
    for value in values:
        result += value
    return result


"""
FILES = [File("total.py", "python", FUNCTION * 14)]


@pytest.fixture(autouse=True)
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapt, "HELD_OUT_HOLES", 3)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return a folder with a source file."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "total.py").write_text(FILES[0].text)
    (folder / "notes.md").write_text("# Notes\n\n" + "A line of prose.\n" * 40)
    return folder


def taught(kind: str, path: Path) -> LeftToRightModel:
    """Write a tiny network that knows FUNCTION by heart, as a GGUF, and return its model."""
    tiny = tiny_network(kind)
    examples = Examples(load_gguf(tiny.save_gguf(path), 1), FILES, 3)
    optimizer = torch.optim.Adam(tiny.network.parameters(), 3e-3)
    for _ in range(70):
        tokens = torch.tensor([examples.draw().tokens[-300:]])
        optimizer.zero_grad()
        tiny.network(tokens, labels=tokens).loss.backward()
        optimizer.step()
    tiny.network.requires_grad_(False)
    path.unlink()
    return load_gguf(tiny.save_gguf(path), 1)


def figures(work: Path, name: str) -> list[object]:
    """Return a figure of each line of a run's metrics that has it."""
    lines = [json.loads(line) for line in (work / "metrics.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if name in line]


@pytest.mark.timeout(480)
@pytest.mark.parametrize("kind", SHAPES)
def test_a_trained_canvas_drafts_what_the_model_writes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    without = taught(kind, path)
    run = Run(frozen_model(str(path), 1), tmp_path, FILES, FILES, rank=16)
    run.report()
    for _ in range(110):
        run.step(0.0)
    run.report()
    run.save()
    first, last = figures(tmp_path, "accepted")
    assert isinstance(first, float)
    assert isinstance(last, float)
    assert first < 0.2
    assert last > 0.5

    model = load_gguf(path, 1)
    assert model.canvas_tokens == MASKS
    text, passes, passes_without = FILES[0].text, 0, 0
    for start in range(400, 1100, 100):
        fill = Fill(id=1, prefix=text[:start], suffix=text[start + 200 :], extent="lines", max_tokens=24)
        drafted, alone = (run_to_end(each, started(each, fill, each.default)) for each in (model, without))
        assert drafted.committed().tokens == alone.committed().tokens
        passes, passes_without = passes + drafted.steps, passes_without + alone.steps
    assert passes < passes_without


def test_each_row_learns_what_the_model_itself_predicts_after_all_tokens_before(tmp_path: Path) -> None:
    model = frozen_model(str(tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf")), 1)
    run = Run(model, tmp_path, FILES, FILES, rank=4)
    example = Examples(model, FILES, 5).draw()
    _, learned = run.frozen.read(example)
    network = tiny_network("qwen2")
    expected = network.logits(example.tokens)[example.anchors[0] :].argmax(-1)
    found = learned.tokens[: len(expected), 0].numpy()
    assert (found == expected).mean() > 0.9  # In bf16 one that is nearly as likely may win.
    assert learned.shares.sum(-1).allclose(torch.ones(len(learned.shares)))


def test_an_example_has_the_engines_layout_and_anchors_in_the_middle(tmp_path: Path) -> None:
    model = load_gguf(tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf"), 1)
    examples = Examples(model, FILES, 1)
    marks = model.specials.fim
    assert marks is not None
    for _ in range(20):
        example = examples.draw()
        assert example.tokens.count(marks.middle) == 1
        assert example.anchors == sorted(set(example.anchors))
        assert example.tokens.index(marks.middle) <= example.anchors[0]
        assert example.anchors[-1] + MASKS < len(example.tokens)


def test_a_run_stops_after_its_session_and_the_same_command_goes_on(code: Path, tmp_path: Path) -> None:
    path, work = tiny_network("qwen3").save_gguf(tmp_path / "tiny.gguf"), tmp_path / "run"

    def steps() -> int:
        state = torch.load(work / CHECKPOINT, weights_only=True)["progress"]
        return Progress(**state).step

    train_adapter(str(path), work, code, minutes=60, session=1e-9)
    assert steps() == 0
    target = train_adapter(str(path), work, code, minutes=60, session=1e-3)
    first = steps()
    assert first > 0
    assert target == work / ADAPTER_FILE
    (work / "part").write_bytes(b"killed while it wrote")
    train_adapter(str(path), work, code, minutes=60, session=1e-3)
    assert steps() > first
    assert not list(work.glob("*.part"))
    assert len(figures(work, "right")) > 2


def test_a_folder_is_adapted_in_place(code: Path, tmp_path: Path) -> None:
    folder = tiny_network("llama").save_folder(tmp_path / "tiny")
    train_adapter(str(folder), folder, code, minutes=0.01)
    from engine.models.load import load

    model = load(str(folder), threads=1, device="cpu")
    assert isinstance(model, LeftToRightModel)
    assert model.canvas_tokens == MASKS


def test_a_full_disk_ends_a_run_in_one_line_and_the_checkpoint_stays(code: Path, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    path, work = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf"), tmp_path / "run"
    train_adapter(str(path), work, code, minutes=60, session=1e-9)
    before = (work / CHECKPOINT).read_bytes()
    (work / CHECKPOINT).with_suffix(".part").symlink_to("/dev/full")
    with pytest.raises(CheckpointError, match=r"^\S+ cannot be written \(.*\); make room and start it again$"):
        train_adapter(str(path), work, code, minutes=60, session=1e-9)
    assert (work / CHECKPOINT).read_bytes() == before
    train_adapter(str(path), work, code, minutes=60, session=1e-9)


def test_a_packed_corpus_is_read_by_its_splits(tmp_path: Path) -> None:
    rows = [attrs.astuple(file) for file in FILES]
    (tmp_path / "held-out.msgpack").write_bytes(msgpack.packb(rows))
    assert code_of(tmp_path, "judge", "held-out") == FILES
    (tmp_path / "judge.msgpack").write_bytes(msgpack.packb(rows * 2))
    assert code_of(tmp_path, "judge", "held-out") == FILES * 2


def test_a_long_middle_is_cut_to_what_the_network_has_positions_for(tmp_path: Path) -> None:
    model = load_gguf(tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf"), 1)
    examples = Examples(model, [File("names.py", "python", "名前 = '値'\n" * 900)], 1)
    longest = max(len(examples.draw().tokens) for _ in range(20))
    assert longest > MIDDLE_TOKENS
    assert longest <= model.info.reading_tokens + MIDDLE_TOKENS


def test_what_cannot_be_trained_is_refused_in_one_line(code: Path, tmp_path: Path) -> None:
    path, work = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf"), tmp_path / "run"
    with pytest.raises(ModelError, match="the rank is 65; the kernel runs 1 to 64"):
        train_adapter(str(path), work, code, minutes=1, rank=65)
    (code / "total.py").unlink()
    with pytest.raises(CorpusError, match="has no code to learn from"):
        code_of(code)
    work.mkdir()
    (work / CHECKPOINT).write_bytes(b"none")
    with pytest.raises(CheckpointError, match="is damaged, or another model's"):
        Run(frozen_model(str(path), 1), work, FILES, FILES, rank=4)
