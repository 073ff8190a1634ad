"""`:Midspan why` in a real Neovim: where the last suggestion came from, and the way there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neovim import Neovim
from support.git_folder import repository

ODD = "destination_of_everything = unlikely_name(other_thing, 4711)\n"
TYPED = "destination_of_everything = unlik"
REST = "ely_name(other_thing, 4711)"


@pytest.fixture
def neovim(in_neovim: Callable[..., Neovim], neovim_settings: dict[str, Any], tmp_path: Path) -> Neovim:
    """Return a Neovim in insert mode whose server has read the workspace of an empty work.py."""
    repository(tmp_path / "project", {"shop/known.py": "first = 1\n" + ODD * 3})
    neovim = in_neovim("\n", "project/work.py", setup={"settings": {**neovim_settings, "maxTokens": 32}})
    neovim.until_ready()
    neovim.keys("i")
    neovim.offered(lambda _: True, "first = second\n")
    neovim.eventually(lambda: "2 files" in (neovim.report()["memory"] or ""), "the workspace is not read")
    neovim.keys("<Esc>ggdGi")
    return neovim


def window(neovim: Neovim) -> list[str]:
    """Open the small window and return its lines."""
    neovim.keys("<Esc>")
    neovim.nvim.command("Midspan why")
    neovim.eventually(lambda: neovim.nvim.current.buffer.options["filetype"] == "midspan-why", "no window opens")
    return list(neovim.nvim.current.buffer[:])


def test_return_goes_to_the_place_of_an_accepted_suggestion(neovim: Neovim) -> None:
    neovim.type(TYPED)
    neovim.eventually(lambda: neovim.ghost() == REST, "the known line is not suggested")
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.text().startswith(TYPED + REST), "it is not accepted")

    summary, place = window(neovim)
    assert summary == f'"{REST}" comes mostly from the workspace'
    assert place.startswith(f'  "{REST}" as in shop/known.py:4, 3 of 3 times; the model alone: ')

    neovim.keys("<CR>")
    neovim.eventually(lambda: neovim.nvim.current.buffer.name.endswith("known.py"), "the place is not opened")
    assert neovim.cursor() == (4, 0)
    assert neovim.lua("return #vim.api.nvim_list_wins()") == 1


def test_q_closes_the_window(neovim: Neovim) -> None:
    neovim.type(TYPED)
    neovim.eventually(lambda: neovim.ghost() == REST, "the known line is not suggested")
    assert len(window(neovim)) == 2
    neovim.keys("q")
    neovim.eventually(lambda: neovim.nvim.current.buffer.name.endswith("work.py"), "the window stays")
    assert neovim.lua("return #vim.api.nvim_list_wins()") == 1


def test_before_any_suggestion_one_line_says_so(in_neovim: Callable[..., Neovim]) -> None:
    neovim = in_neovim()
    neovim.until_ready()
    neovim.nvim.command("Midspan why")
    said = neovim.eventually(neovim.messages, "nothing is said")
    assert said == ["Midspan: nothing has been suggested in this document yet"]


def test_the_status_says_how_much_is_known(neovim: Neovim) -> None:
    neovim.keys("<Esc>")
    neovim.nvim.command("Midspan status")
    said = neovim.eventually(neovim.messages, "nothing is said")
    assert [line for line in said if line.startswith("memory   2 files, ")]
