"""Switches, trouble and help in real Neovim, with our plugin, and the real server and engine."""

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from neovim import PLUGIN, Neovim

Open = Callable[..., Neovim]


def silent(neovim: Neovim) -> bool:
    """Type three letters and return whether nothing is suggested after any."""
    return not any(neovim.after_answer(partial(neovim.type, char)) for char in "abc")


def test_the_switch_turns_everything_off_and_on(neovim: Neovim) -> None:
    neovim.offered()

    neovim.nvim.command("Midspan toggle")
    neovim.eventually(lambda: neovim.state() == "off", "it is not off")
    assert neovim.ghost() is None
    assert silent(neovim)
    assert neovim.lua("return require('midspan').statusline()") == "Midspan off"

    neovim.nvim.command("Midspan toggle")
    neovim.until_ready()
    assert neovim.offered()
    assert neovim.messages() == ["Midspan: suggestions are off everywhere", "Midspan: suggestions are on everywhere"]


def test_a_filetype_can_be_off_from_the_start_and_another_be_switched(in_neovim: Open) -> None:
    neovim = in_neovim(setup={"filetypes": {"text": False}})
    neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
    neovim.keys("GA")
    assert silent(neovim)

    neovim.nvim.command("Midspan toggle filetype")
    neovim.eventually(neovim.messages, "nothing is said")
    assert neovim.messages() == ["Midspan: suggestions are on in text files"]
    neovim.type("d")
    neovim.until_ready()
    assert neovim.offered()


def test_a_buffer_can_be_switched(neovim: Neovim) -> None:
    neovim.settled()
    neovim.nvim.command("Midspan toggle buffer")
    asked = neovim.report()["asked"]
    for char in "abc":
        neovim.type(char)
    assert neovim.lua("return require('midspan').statusline()") == "Midspan off"

    assert neovim.report()["asked"] == asked

    neovim.nvim.command("Midspan toggle buffer")
    assert neovim.offered()


def test_a_killed_engine_is_told_of_and_comes_back(neovim: Neovim) -> None:
    neovim.offered()

    os.kill(neovim.report()["engine"]["pid"], signal.SIGKILL)
    neovim.eventually(lambda: neovim.state() == "error", "nobody notices")
    died = neovim.status()
    assert died is not None
    assert "The engine died; it starts again" in died["message"]

    def type_on() -> bool:
        neovim.after_answer(lambda: neovim.type("a"))
        return neovim.state() == "ready"

    neovim.eventually(type_on, "the engine does not come back")
    assert neovim.offered()
    assert neovim.state() == "ready"
    assert neovim.messages() == []


def test_a_restart_gives_another_engine(neovim: Neovim) -> None:
    first = neovim.report()["engine"]["pid"]

    neovim.nvim.command("Midspan restart")
    neovim.eventually(
        lambda: (neovim.report()["engine"] or {"pid": first})["pid"] != first, "the engine is the old one"
    )

    assert neovim.offered()


def test_a_wrong_setting_is_one_clear_line(in_neovim: Open, neovim_settings: dict[str, Any]) -> None:
    neovim = in_neovim(setup={"settings": {**neovim_settings, "budgetMs": "fast"}})
    neovim.until_ready()
    neovim.keys("GA")

    assert neovim.offered(), "the default is used"
    (line,) = neovim.messages()
    assert line.startswith("Midspan: the setting midspan.budgetMs is")
    assert "allowed is" in line


@pytest.mark.parametrize(
    ("setup", "line"),
    [
        ({"colour": {}}, "setup() has no option colour; there are"),
        ({"cmd": "midspan-lsp"}, "the option cmd must be a list with a program and its arguments"),
        ({"keymaps": {"accpet": "<Tab>"}}, "keymaps has no action accpet; there are accept,"),
        (
            {"cmd": 1, "next_edit": 1},
            "the option cmd must be a list with a program and its arguments; it is ignored; ",
        ),
    ],
)
def test_a_wrong_option_is_one_clear_line(in_neovim: Open, setup: dict[str, Any], line: str) -> None:
    neovim = in_neovim(setup=setup)

    (said,) = neovim.messages()
    assert said.startswith(f"Midspan: {line}")


def test_a_model_that_is_not_there_is_one_clear_line(in_neovim: Open, neovim_settings: dict[str, Any]) -> None:
    neovim = in_neovim(setup={"settings": {**neovim_settings, "model": "/no/such/model"}})

    neovim.eventually(lambda: neovim.state() == "error", "there is no error")
    (line,) = neovim.eventually(neovim.messages, "nothing is said")
    assert "/no/such/model" in line
    assert neovim.lua("return require('midspan').statusline()") == "Midspan error"
    neovim.nvim.command("checkhealth midspan")
    assert "midspan doctor" in neovim.text()


def test_checkhealth_is_green(neovim: Neovim, ready_line: str) -> None:
    neovim.keys("<Esc>")
    neovim.nvim.command("checkhealth midspan")

    report = neovim.text()
    assert "ERROR" not in report
    assert "WARNING" not in report
    assert "midspan-lsp" in report
    assert f"The engine: {ready_line}" in report


def test_a_missing_server_is_told_of_with_what_to_do(in_neovim: Open) -> None:
    neovim = in_neovim(path="/usr/bin:/bin")

    (line,) = neovim.messages()
    assert line.startswith("Midspan: midspan-lsp is not found; `pip install .` in a clone of Midspan brings it")
    neovim.nvim.command("checkhealth midspan")
    assert "ERROR" in neovim.text()
    assert "midspan setup neovim" in neovim.text()


def test_status_and_log_can_be_read(in_neovim: Open, ready_line: str) -> None:
    neovim = in_neovim()
    neovim.until_ready()
    neovim.nvim.command("Midspan status")
    said = neovim.eventually(neovim.messages, "nothing is said")
    assert said[0] == f"state    {ready_line}"

    neovim.nvim.command("Midspan log")
    assert "connected to the engine" in neovim.text()


def test_the_help_opens_and_its_tags_are_those_of_the_text(in_neovim: Open, tmp_path: Path) -> None:
    neovim = in_neovim()
    for topic in ("midspan", "midspan-setup", ":Midspan", "midspan-keymaps"):
        neovim.nvim.command(f"help {topic}")
        assert Path(neovim.nvim.current.buffer.name).name == "midspan.txt"

    copy = tmp_path / "doc"
    copy.mkdir()
    (copy / "midspan.txt").write_text((PLUGIN / "doc" / "midspan.txt").read_text())
    neovim.nvim.command(f"helptags {copy}")
    assert (copy / "tags").read_text() == (PLUGIN / "doc" / "tags").read_text(), "run :helptags editors/neovim/doc"


def test_neovims_own_way_starts_it_too(in_neovim: Open, neovim_settings: dict[str, Any]) -> None:
    config = f"{{ settings = {{ midspan = vim.json.decode([[{json.dumps(neovim_settings)}]]) }} }}"
    neovim = in_neovim(extra=f"vim.lsp.config('midspan', {config}) vim.lsp.enable('midspan') do return end")
    neovim.until_ready()
    neovim.keys("GA")
    ghost = neovim.offered()
    before, after = neovim.around_cursor()

    neovim.lua("require('midspan').accept()")

    neovim.eventually(lambda: neovim.text() == before + ghost + after, "the text is another")
