"""Leads compared: one checkpoint gone on with, once for each change."""

from pathlib import Path

import pytest
from small_run import small_config

from engine.training.compare import changed, compare, compared_table
from engine.training.config import ConfigError
from engine.training.train import train


def test_a_change_is_one_number_of_the_config() -> None:
    config = small_config()
    assert changed(config, "") == config
    assert changed(config, "objective.distilled = 0.25").objective.distilled == 0.25
    assert changed(config, "objective.canvas_lengths = {8 = 1.0}").objective.canvas_lengths == {"8": 1.0}


@pytest.mark.parametrize("change", ["objective.no_such = 1", "distilled", "objective.distilled = 'much'"])
def test_what_is_no_change_is_told_in_one_line(change: str) -> None:
    with pytest.raises(ConfigError, match="changes no number of the config") as told:
        changed(small_config(), change)
    assert "\n" not in str(told.value)


@pytest.mark.slow
def test_leads_go_on_from_one_checkpoint_and_leave_it_alone(run_folder: Path, tmp_path: Path) -> None:
    config = small_config()
    checkpoint = train(config, run_folder, minutes=0.02, workers=0, compiled=False)
    before = checkpoint.read_bytes()
    found = [
        compare(config, checkpoint, run_folder, change, 2, tmp_path / str(number), 1, compiled=False)
        for number, change in enumerate(("", "objective.canvas_weight = 9.0"))
    ]
    assert checkpoint.read_bytes() == before
    assert [one.change for one in found] == ["nothing", "objective.canvas_weight = 9.0"]
    assert found[0].losses != found[1].losses
    assert all(one.accepted >= 1 and set(one.exact) == {"left-to-right", "threshold, 4 steps"} for one in found)
    assert len(compared_table(found).rows) == 2
