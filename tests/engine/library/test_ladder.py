"""The ladder: which coder fits, and what `midspan models pull coder` does, with a hub on loopback."""

from pathlib import Path

import pytest
from support.hub_server import Repository
from support.ladder_hub import RUNGS, add_rungs
from support.models_command import ModelsCommand

from engine.library.catalog import catalog
from engine.library.device_memory import DeviceMemory
from engine.library.ladder import PassTime, is_any_above, largest, note_slow, offer_above, rungs_here, slow_here
from engine.library.store import EMBEDDED, choose, chosen_model

ANY_TIME = ("--budget-ms", "1e9")
FAST = PassTime(1.0, 70_000_000)


def machine(gigabytes: float) -> DeviceMemory:
    return DeviceMemory("memory", 64_000_000_000, int(gigabytes * 1e9), ("fp32", "int8", "int4"), 4)


@pytest.fixture
def rungs(models: ModelsCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Repository]:
    """The hub's repositories of the rungs, each with a tiny model; with a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    models.environment["HOME"] = str(tmp_path)
    return add_rungs(models.hub, tmp_path)


@pytest.mark.parametrize(
    ("free", "measured", "name"),
    [(8, FAST, RUNGS[1]), (8, PassTime(7.0, 70_000_000), RUNGS[0]), (1.6, FAST, RUNGS[0]), (1, FAST, None)],
)
def test_coder_is_the_largest_whose_memory_fits_and_whose_measured_time_is_in_the_budget(
    free: float, measured: PassTime, name: str | None
) -> None:
    rung = largest(rungs_here([machine(free)], measured), 500)
    assert (rung and rung.model.name) == name


def test_without_a_measured_time_no_rung_is_offered() -> None:
    assert largest(rungs_here([machine(8)], None), 500) is None


def test_a_gpu_has_rungs_of_its_own() -> None:
    gpu = DeviceMemory("RTX 4090", 24 << 30, 24 << 30, ("bf16", "int8"), 2, 1e12, 1.6e14, is_gpu=True)
    rung = largest(rungs_here([machine(8), gpu], None), 500)
    assert rung is not None
    assert rung.model.name == "qwen2.5-coder-7b"
    assert "an estimate" in rung.time


def test_nothing_is_offered_above_the_rung_in_use_or_a_model_that_the_user_chose(models: ModelsCommand) -> None:
    here = rungs_here([machine(8)], FAST)
    offer = offer_above(here, 500)
    assert offer is not None
    assert offer.model == RUNGS[1]
    assert offer.text == (
        "qwen-coder-1.5b-q4 would suggest in about 110 ms (measured here); 1.1 GB to download, licence Apache-2.0"
    )
    models.pull()
    choose("dreamon-7b")
    assert offer_above(here, 500) is None


def test_what_was_too_slow_here_is_not_offered_again(models: ModelsCommand) -> None:
    here = rungs_here([machine(8)], FAST)
    note_slow(RUNGS[1])
    offer = offer_above(here, 500)
    assert offer is not None
    assert offer.model == RUNGS[0]
    note_slow(RUNGS[0])
    note_slow("dreamon-7b")
    assert offer_above(here, 500) is None
    assert slow_here() == set(RUNGS)


def test_the_machine_is_timed_only_where_something_could_be_offered(models: ModelsCommand) -> None:
    here = rungs_here([machine(8)], None)
    assert is_any_above(here)
    assert not is_any_above(rungs_here([machine(1)], None))
    models.pull()
    choose("dreamon-7b")
    assert not is_any_above(here)
    choose(EMBEDDED)
    note_slow(RUNGS[1])
    assert is_any_above(here)
    note_slow(RUNGS[0])
    assert not is_any_above(here)


def test_pull_coder_takes_what_fits_and_makes_it_the_default(models: ModelsCommand, rungs: list[Repository]) -> None:
    offered = models.run("offer", *ANY_TIME).out
    assert "would suggest in about" in offered
    assert offered.endswith("; get it with: midspan models pull coder\n")
    ended = models.run("pull", "coder", *ANY_TIME)
    assert ended.status == 0, ended.err
    chosen = chosen_model()
    assert offered.startswith(chosen.model)
    assert chosen.model in RUNGS
    assert not chosen.problem
    assert f"in use from now on: {chosen.model}" in ended.out
    assert "(measured here), licence Apache-2.0" in ended.out
    again = models.run("pull", "coder", *ANY_TIME)
    assert f"{chosen.model} is here already" in again.out
    if chosen.model == RUNGS[1]:
        assert models.run("offer", *ANY_TIME).out == ""


def test_a_file_of_lm_studio_is_used_without_a_copy(
    models: ModelsCommand, rungs: list[Repository], tmp_path: Path
) -> None:
    folder = tmp_path / ".lmstudio" / "models" / "makers" / "coder"
    folder.mkdir(parents=True)
    files = [folder / catalog()[name].file for name in RUNGS]
    for file in files:
        file.write_bytes((tmp_path / "tiny.gguf").read_bytes())
    ended = models.run("pull", "coder", *ANY_TIME)
    assert ended.status == 0, ended.err
    assert chosen_model().model in [str(file) for file in files]
    assert not models.hub.requests
    assert list(models.folder.glob("*")) == []

    for file in files:  # one that cannot be run is not used
        file.write_bytes(b"GGUF")
    choose("embedded")
    assert models.run("pull", "coder", *ANY_TIME).status == 0
    assert chosen_model().model in RUNGS


def test_whatever_goes_wrong_is_one_line_and_the_old_default_stays(
    models: ModelsCommand, rungs: list[Repository], tmp_path: Path
) -> None:
    slow = models.fails("pull", "coder", "--budget-ms", "1")
    assert "no coder does here: qwen-coder-0.5b-q4 would suggest in about" in slow
    assert "take it all the same with: midspan models pull qwen-coder-0.5b-q4" in slow
    no_hub = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    assert "cannot be reached (ConnectError)" in models.fails("pull", "coder", *ANY_TIME, environment=no_hub)
    for rung in rungs:
        rung.damaged = set(rung.files)
    assert "arrived damaged: its checksum is not the hub's" in models.fails("pull", "coder", *ANY_TIME)
    for rung in rungs:
        rung.damaged, rung.gated = set(), True
    assert "is gated: accept its terms" in models.fails("pull", "coder", *ANY_TIME)
    for rung in rungs:
        rung.gated, rung.commit = False, "f" * 40
        rung.files = {name: b"GGUF" + bytes(100) for name in rung.files}
    models.run("remove", RUNGS[0], "--yes")
    models.run("remove", RUNGS[1], "--yes")
    models.fails("pull", "coder", *ANY_TIME)  # whole, with the hub's checksum, and no model
    assert chosen_model().model == "embedded"
    blocked = tmp_path / "file"
    blocked.write_text("")
    no_place = {"MIDSPAN_MODELS_DIR": str(blocked / "models")}
    assert "set MIDSPAN_MODELS_DIR to a folder" in models.fails("pull", "coder", *ANY_TIME, environment=no_place)
    assert chosen_model().model == "embedded"
