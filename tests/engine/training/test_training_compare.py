"""Comparing leads: one checkpoint is continued once for each change."""

from pathlib import Path

import pytest
from small_run import small_config

from engine.training.compare import changed, compare, compared_table
from engine.training.config import ConfigError
from engine.training.train import train


def test_a_change_sets_one_number_of_the_config() -> None:
    config = small_config()
    assert changed(config, "") == config
    assert changed(config, "objective.distilled = 0.25").objective.distilled == 0.25
    assert changed(config, "objective.canvas_lengths = {8 = 1.0}").objective.canvas_lengths == {"8": 1.0}


@pytest.mark.parametrize("change", ["objective.no_such = 1", "distilled", "objective.distilled = 'much'"])
def test_a_text_that_is_no_change_gives_an_error_of_one_line(change: str) -> None:
    with pytest.raises(ConfigError, match="changes no number of the config") as caught:
        changed(small_config(), change)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_leads_continue_from_one_checkpoint_without_changing_it(run_folder: Path, tmp_path: Path) -> None:
    config = small_config()
    checkpoint = train(config, run_folder, minutes=0.02, workers=0, compiled=False)
    before = checkpoint.read_bytes()
    leads = [
        compare(config, checkpoint, run_folder, change, 2, tmp_path / str(number), 1, compiled=False)
        for number, change in enumerate(("", "objective.canvas_weight = 9.0"))
    ]
    assert checkpoint.read_bytes() == before
    assert [lead.change for lead in leads] == ["nothing", "objective.canvas_weight = 9.0"]
    assert leads[0].losses != leads[1].losses
    assert all(lead.accepted >= 1 and set(lead.exact) == {"left-to-right", "threshold, 4 steps"} for lead in leads)
    assert len(compared_table(leads).rows) == 2
