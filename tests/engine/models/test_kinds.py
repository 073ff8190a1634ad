"""A kind of model is one file and one row: what a new row takes to be loaded, described and used for fills."""

import json
from pathlib import Path

import pytest
from scheduler_client import HOLE, answer

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.models import load as loading
from engine.models.kind import Loading, ModelKind, Runtime, Source
from engine.schedule.scheduler import Scheduler


def _load(source: Source, asked: Loading) -> Model:
    """The file of a new kind: a folder that names the one with the network."""
    return asked.load_drafter(Path(source.config["network"]), asked.device)


POINTER = ModelKind(
    lambda source: source.config.get("model_type") == "pointer",
    _load,
    lambda source: Runtime(f"what runs {Path(source.config['network']).name}", reads_suffix=True),
)


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    config = {"model_type": "pointer", "network": str(tiny_model)}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


async def test_a_model_of_a_new_kind_fills_holes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "KINDS", (POINTER, *loading.KINDS))
    scheduler = Scheduler(loading.load(str(folder), threads=1))
    await scheduler.start()
    try:
        assert (await answer(scheduler, HOLE)).candidates
    finally:
        await scheduler.stop()


def test_a_new_kind_says_what_runs_it(folder: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "KINDS", (POINTER, *loading.KINDS))
    assert loading.runtime_of(folder).phrase == f"what runs {tiny_model.name}"


def test_without_its_row_it_is_refused_in_one_line(folder: Path) -> None:
    with pytest.raises(ModelError, match="of model_type 'pointer', which is not supported") as caught:
        loading.load(str(folder))
    assert "\n" not in str(caught.value)
    assert loading.runtime_of(folder).reads_suffix is None
