"""The model card says where weights come from, what they were trained on, and what was measured."""

import json
from pathlib import Path

from small_run import TRAINING, drawn_network, small_config

from engine.evaluation.rows import Row, write_rows
from engine.training.checkpoint import NEWEST, PARENT, Progress, save
from engine.training.convert import WHEEL_SHA256
from engine.training.export import ORIGIN, write_card

PROGRESS = Progress(
    step=100, minutes=20.0, earlier=10.0, stream_tokens=2_000_000, canvas_rows=600_000, middle_tokens=300_000
)
ROW = Row(
    strategy="verify",
    language="python",
    kind="rest of line",
    number=1,
    seen="both sides",
    exact=True,
    first_line=True,
    similarity=1.0,
    valid=True,
    passed=None,
    tokens=4,
    steps=2,
    ms=3.0,
    confidence=0.9,
    finish="complete",
    text="x",
)


def trained(folder: Path) -> Path:
    folder.mkdir(parents=True)
    save(folder / PARENT, drawn_network())
    save(folder / NEWEST, drawn_network(), progress=PROGRESS)
    held_out = [{"middle": 1.5, "above": 2.0, "full": 4.25, "partial": 3.0}, {"middle": 1.25, "full": 4.0}]
    rows = [json.dumps({"step": 1, "held_out": each}) for each in held_out]
    (folder / "metrics.jsonl").write_text("\n".join([*rows, json.dumps({"step": 2, "middle": 9.0})]))
    return folder


def test_a_card_names_the_parent_with_its_digest_the_last_losses_and_the_judge_first(tmp_path: Path) -> None:
    work = trained(tmp_path / "run")
    (work / "evaluation").mkdir()
    for name in ("held-out", "judge"):
        write_rows([ROW], work / "evaluation" / f"{name}.jsonl")
    card = write_card(small_config(), TRAINING, work, tmp_path / "model").read_text()
    assert "SmolLM2-135M-Instruct by Hugging Face" in card
    assert WHEEL_SHA256 in card
    assert "2.0 million tokens read, 0.3 million of them in the\nmiddles of holes" in card
    assert "1.250 in the middles of holes, 4.000 on canvases with all masked" in card
    assert 0 < card.index("released in 2025") < card.index("Older packages")
    assert "#### python, rest of line, 1 holes" in card


def test_two_runs_that_averaged_their_weights_count_together(tmp_path: Path) -> None:
    one, other = trained(tmp_path / "one"), trained(tmp_path / "other")
    card = write_card(small_config(), TRAINING, one, tmp_path / "model", other).read_text()
    assert "2 runs side by side" in card
    assert "200 steps and 60 minutes in all, 4.0\nmillion tokens read" in card


def test_a_converted_model_that_was_not_trained_and_another_parent_are_named(tmp_path: Path) -> None:
    save(tmp_path / PARENT, drawn_network())
    (tmp_path / ORIGIN).write_text("SmolLM2-360M\n")
    card = write_card(small_config(), TRAINING, tmp_path, tmp_path / "model").read_text()
    assert "not trained yet" in card
    assert "changed version of SmolLM2-360M." in card
    assert "135M" not in card
    assert "## Measured" not in card
