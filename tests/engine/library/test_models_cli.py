"""`midspan models` list, info, use and remove, with a model from a hub on loopback."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from support.gguf_files import tiny_network
from support.models_command import NAME, WEIGHTS, ModelsCommand

from engine.client.address import runtime_paths_of
from engine.errors import ModelError
from engine.library.catalog import catalog
from engine.library.device_memory import Verdict
from engine.library.resolve import folder_of
from engine.library.store import choose_for_edits, chosen_for_edits, chosen_model
from engine.models.load import load


def test_a_pulled_model_that_has_changed_is_reported(models: ModelsCommand) -> None:
    folder = models.pull()
    assert "all files are unchanged since the pull" in models.run("info", NAME, "--verify").out

    data = bytearray((folder / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (folder / WEIGHTS).write_bytes(data)
    assert folder_of(NAME) == folder
    assert "its sha256 differs; midspan models remove" in models.fails("info", NAME, "--verify")

    (folder / WEIGHTS).write_bytes(data[:-1])
    with pytest.raises(ModelError, match="instead of"):
        load(NAME, threads=1, device="cpu")
    assert f"bytes instead of {len(data)}" in models.fails("info", NAME)


def test_the_model_in_use_is_the_default(models: ModelsCommand, tiny_model: Path) -> None:
    assert f"get it with: midspan models pull {NAME}" in models.fails("use", NAME)
    models.pull()
    assert chosen_model().model == "embedded"
    assert "in use from now on: dreamon-7b" in models.run("use", NAME).out
    assert chosen_model().model == NAME
    assert runtime_paths_of("default") == runtime_paths_of(NAME) != runtime_paths_of("embedded")
    assert folder_of("default") == models.folder / NAME
    assert "in use" in next(line for line in models.run("list").out.splitlines() if line.startswith(NAME))

    assert models.run("use", str(tiny_model)).status == 0
    assert runtime_paths_of("default") == runtime_paths_of(str(tiny_model))
    assert models.run("use", "embedded").status == 0
    assert runtime_paths_of("default") == runtime_paths_of("embedded")


def test_a_model_for_edits_is_another_choice_and_none_at_first(models: ModelsCommand, tmp_path: Path) -> None:
    path = tiny_network("qwen2").save_gguf(tmp_path / "next-instruct.gguf")
    assert chosen_for_edits().model == "none"
    assert "for next edits that no rule knows: none" in models.run("list").out
    assert f"for next edits from now on: {path}" in models.run("use", "--edits", str(path)).out
    assert (chosen_for_edits().model, chosen_model().model) == (str(path), "embedded")
    assert f"for next edits that no rule knows: {path}" in models.run("list").out
    assert "embedded" not in models.run("use", "--edits", "none").out
    assert chosen_for_edits().model == "none"


def test_a_model_that_predicts_no_edits_is_not_chosen_for_them(models: ModelsCommand) -> None:
    assert "predicts no edits" in models.fails("use", "--edits", "embedded")
    assert chosen_for_edits().model == "none"


def test_a_model_for_edits_that_is_gone_is_none(models: ModelsCommand) -> None:
    choose_for_edits("/nowhere/sweep.gguf")
    assert chosen_for_edits().model == "none"
    assert "is not here any more" in chosen_for_edits().problem
    choose_for_edits("none")


@pytest.mark.slow
def test_an_editor_without_a_model_setting_gets_the_model_in_use(models: ModelsCommand, tmp_path: Path) -> None:
    models.pull()
    models.run("use", NAME)
    (tmp_path / "area.py").write_text("def area(radius):\n    return \n")
    fill = [sys.executable, "-m", "engine.cli", "fill", str(tmp_path / "area.py"), "--at", "2:12", "--json"]
    try:
        answer = subprocess.run(fill, capture_output=True, text=True, env=models.environment, check=True)
        assert json.loads(answer.stdout)["model"] == "tiny"
        ended = models.run("use", "embedded")
        assert "the running engine has ended" in ended.out
    finally:
        stop = [sys.executable, "-m", "engine.cli", "engine", "stop", "--model", NAME]
        subprocess.run(stop, capture_output=True, env=models.environment, check=False)


def test_if_the_model_in_use_is_gone_the_user_learns_it_and_gets_the_embedded_one(models: ModelsCommand) -> None:
    folder = models.pull()
    models.run("use", NAME)
    shutil.rmtree(folder)

    choice = chosen_model()
    assert choice.model == "embedded"
    assert "the chosen model dreamon-7b is not here any more; the embedded model is used" in choice.problem
    status = [sys.executable, "-m", "engine.cli", "engine", "status"]
    ended = subprocess.run(status, capture_output=True, text=True, env=models.environment, check=False)
    assert ended.stderr.splitlines() == [f"midspan: {choice.problem}"]
    assert "no engine is running for the model embedded" in ended.stdout


def test_remove_refuses_the_model_in_use_without_yes(models: ModelsCommand) -> None:
    folder = models.pull()
    models.run("use", NAME)
    assert f"{NAME} is in use" in models.fails("remove", NAME)
    assert folder.is_dir()
    assert "in use from now on: embedded" in models.run("remove", NAME, "--yes").out
    assert not folder.exists()
    assert chosen_model().problem == ""
    assert "is not here" in models.fails("remove", NAME, "--yes")
    assert "is not here" in models.fails("remove", NAME), "nobody is asked about what is not there"


def test_remove_asks_first_and_removes_only_folders_of_midspan(models: ModelsCommand, tiny_model: Path) -> None:
    folder = models.pull()
    assert "nothing was removed" in models.fails("remove", NAME)
    assert folder.is_dir()
    for elsewhere in (str(tiny_model), "..", "../models"):
        assert "is not a model's name" in models.fails("remove", elsewhere, "--yes")
    assert "cannot be removed" in models.fails("remove", "embedded", "--yes")

    (models.folder / "linked").symlink_to(tiny_model)
    assert "remove it by hand" in models.fails("remove", "linked", "--yes")
    assert (tiny_model / "config.json").exists()


def test_list_shows_every_model_whole_with_its_licence(models: ModelsCommand) -> None:
    lines = models.run("list").out.splitlines()
    rows = {line.split()[0]: line for line in lines if line}
    for name, model in catalog().items():
        assert "…" not in rows[name]
        assert model.licence in rows[name]
        assert ("!" in rows[name]) is not model.free
        assert bool(re.search(r" (~\d+ m?s|> 60 s|too large|\?) ", rows[name])) is (name != "embedded"), rows[name]
    as_json = {fields["name"]: fields for fields in json.loads(models.run("list", "--json").out)}
    assert as_json["embedded"]["in_use"]
    assert {name: as_json[name]["catalog"]["family"] for name in catalog()} == {
        name: model.family for name, model in catalog().items()
    }
    assert as_json["llada-8b"]["here"] is None
    assert as_json["llada-8b"]["catalog"]["mask_id"] == 126336


def test_a_narrow_terminal_gets_the_list_whole(models: ModelsCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = models.run("list").out.splitlines()
    assert any(line.startswith("embedded ") and line.rstrip().endswith(" in use") for line in lines)


def test_list_as_json_says_what_fits_this_machine(models: ModelsCommand) -> None:
    sheets = {sheet["name"]: sheet for sheet in json.loads(models.run("list", "--json").out)}
    assert sheets["embedded"]["fits"]["memory"]["int8"] == "fits"
    assert sheets["diffusion-gemma-26b"]["fits"]["memory"]["bf16"] in get_args(Verdict)


def test_info_says_what_would_fit_before_a_pull(models: ModelsCommand) -> None:
    fields = json.loads(models.run("info", "diffusion-gemma-26b", "--json").out)
    memory = fields["fits"]["memory"]
    assert memory["fp8"] is None
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if total < 56e9:
        assert memory["bf16"] == "too large"
    output = models.run("info", "diffusion-gemma-26b").out
    assert "56.5 GB" in output
    assert "not on this hardware" in output
    assert models.hub.requests == []


def test_info_of_a_folder_reads_its_headers(models: ModelsCommand, tiny_model: Path) -> None:
    fields = json.loads(models.run("info", str(tiny_model), "--json").out)
    assert fields["name"] == str(tiny_model)
    assert 50_000 < fields["parameters"] < 100_000
    assert fields["architecture"] == "midspan"
    assert "neither" in models.fails("info", "no/such/folder")
    assert "did you mean dreamon-7b" in models.fails("info", "dreamn-7b")
