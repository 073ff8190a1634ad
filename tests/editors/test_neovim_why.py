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
    assert said == ["Midspan: nothing was asked for in this document yet"]


def test_the_status_says_how_much_is_known(neovim: Neovim) -> None:
    neovim.keys("<Esc>")
    neovim.nvim.command("Midspan status")
    said = neovim.eventually(neovim.messages, "nothing is said")
    assert [line for line in said if line.startswith("memory   2 files, ")]


def why(neovim: Neovim) -> str:
    """Return the line that `:Midspan why` says."""
    neovim.nvim.command("messages clear")
    neovim.nvim.command("Midspan why")
    said: list[str] = neovim.eventually(neovim.messages, "nothing is said")
    return said[0]


def test_a_silence_has_its_reason_and_insert_mode_goes_on(
    in_neovim: Callable[..., Neovim], neovim_settings: dict[str, Any]
) -> None:
    keymaps = {"why": "<M-?>", "dismiss": "<C-e>"}
    neovim = in_neovim("", "work.py", setup={"settings": {**neovim_settings, "gate": 1}, "keymaps": keymaps})
    neovim.until_ready()
    neovim.keys("i")
    neovim.after_answer(lambda: neovim.type("total = a"))
    neovim.keys("<M-?>")
    (said,) = neovim.eventually(neovim.messages, "nothing is said")
    assert said.startswith("Midspan: unsure: ")
    assert neovim.nvim.api.get_mode()["mode"] == "i"


SIGNS = """
local space = vim.api.nvim_get_namespaces()['midspan.held_back']
return vim.tbl_map(function(mark)
  return { mark[2], vim.trim(mark[4].sign_text) }
end, vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true }))
"""


def test_a_sign_says_what_the_gate_held_back_until_the_user_asks_for_it(
    in_neovim: Callable[..., Neovim], neovim_settings: dict[str, Any]
) -> None:
    options = {"settings": {**neovim_settings, "gate": 1}, "held_back": True, "keymaps": {"trigger": "<C-g>"}}
    neovim = in_neovim("\n", "work.py", setup=options)
    neovim.until_ready()
    neovim.keys("i")
    neovim.after_answer(lambda: neovim.type("total = a"))
    neovim.eventually(lambda: neovim.lua(SIGNS) == [[0, "…"]], "no sign")
    assert neovim.ghost() is None
    assert why(neovim).startswith("Midspan: unsure: ")
    neovim.keys("<Esc>")
    assert neovim.lua(SIGNS) == []
    neovim.keys("A")
    neovim.eventually(lambda: neovim.lua(SIGNS) == [[0, "…"]], "no sign")
    neovim.type("b")
    assert neovim.lua(SIGNS) == [[0, "…"]], "it flickers"
    neovim.keys("<C-g>")
    neovim.eventually(neovim.ghost, "nothing is revealed")
    assert neovim.lua(SIGNS) == []


def test_without_the_option_no_sign_is_set(in_neovim: Callable[..., Neovim], neovim_settings: dict[str, Any]) -> None:
    neovim = in_neovim("\n", "work.py", setup={"settings": {**neovim_settings, "gate": 1}})
    neovim.until_ready()
    neovim.keys("i")
    neovim.after_answer(lambda: neovim.type("total = a"))
    assert why(neovim).startswith("Midspan: unsure: ")
    assert neovim.lua(SIGNS) == []
    assert neovim.nvim.current.window.options["signcolumn"] == "auto"


def test_what_was_dismissed_says_so(in_neovim: Callable[..., Neovim]) -> None:
    neovim = in_neovim()
    neovim.until_ready()
    neovim.keys("GA")
    neovim.offered()
    neovim.keys("<C-e>")
    neovim.eventually(lambda: "you dismissed a suggestion here" in why(neovim), "it does not say so")


def test_buffers_that_are_left_alone_say_why(in_neovim: Callable[..., Neovim]) -> None:
    neovim = in_neovim()
    neovim.until_ready()
    neovim.nvim.command("let b:midspan = v:false")
    assert why(neovim).startswith("Midspan: suggestions are off in this buffer; `:Midspan toggle buffer`")
    neovim.nvim.command("enew")
    assert why(neovim).startswith("Midspan: this buffer has no filetype, so it is left alone; `:setfiletype python`")
    neovim.nvim.command("help")
    assert why(neovim).startswith("Midspan: this buffer is no file but of the kind help")


def test_in_a_commit_message_it_says_what_the_model_is_made_for(
    in_neovim: Callable[..., Neovim], neovim_settings: dict[str, Any]
) -> None:
    neovim = in_neovim("\n", "COMMIT_EDITMSG", setup={"settings": {**neovim_settings, "gate": 1}})
    neovim.until_ready()
    assert neovim.nvim.current.buffer.options["filetype"] == "gitcommit"
    neovim.keys("i")
    neovim.after_answer(lambda: neovim.type("Mend th"))
    assert why(neovim).endswith("this is a commit message, and the model is made for code")
