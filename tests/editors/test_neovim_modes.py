"""When suggestions come in a real Neovim: unasked, only when asked for, or not for a while."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from neovim import Neovim

Open = Callable[..., Neovim]
HINT = """
local namespace = vim.api.nvim_create_namespace('midspan.ghost')
local mark = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })[1]
local lines = mark and vim.list_extend({ mark[4].virt_text }, mark[4].virt_lines or {}) or {}
local last = lines[#lines] or {}
return last[2] and last[2][1] or ''
"""


def silent(neovim: Neovim) -> bool:
    """Type three letters and return whether nothing is suggested after any."""
    return not any(neovim.after_answer(partial(neovim.type, char)) for char in "abc")


def line(neovim: Neovim) -> str:
    text: str = neovim.lua("return require('midspan').statusline()")
    return text


def hint(neovim: Neovim) -> str:
    """Return what is drawn after the suggestion."""
    text: str = neovim.lua(HINT)
    return text


def asked(neovim: Neovim) -> str | None:
    return neovim.after_answer(lambda: neovim.keys("<C-g>"))


@pytest.fixture
def opened(in_neovim: Open, neovim_settings: dict[str, Any]) -> Callable[..., Neovim]:
    """Return a function that opens a Neovim with some settings, in insert mode after the list's dash."""

    def open_ready(**settings: Any) -> Neovim:
        neovim = in_neovim(setup={"settings": {**neovim_settings, **settings}})
        neovim.until_ready()
        neovim.keys("GA")
        return neovim

    return open_ready


def test_without_automatic_there_is_text_only_on_the_key(opened: Callable[..., Neovim]) -> None:
    neovim = opened(automatic=False)

    assert silent(neovim)
    assert line(neovim) == "Midspan when asked"
    assert asked(neovim)
    before, after = neovim.around_cursor()
    ghost = neovim.ghost() or ""
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.text() == before + ghost + after, "it is not accepted")


def test_a_command_switches_between_unasked_and_asked(neovim: Neovim) -> None:
    neovim.offered()

    neovim.nvim.command("Midspan automatic off")
    assert neovim.ghost() is None
    # The server reads the new settings a moment later.
    type_one = partial(neovim.after_answer, lambda: neovim.type("x"))
    neovim.eventually(lambda: type_one() is None, "suggestions still come")
    assert silent(neovim)

    neovim.nvim.command("Midspan automatic")
    assert neovim.offered()
    assert neovim.messages() == [
        "Midspan: suggestions come only when you ask for them",
        "Midspan: suggestions come unasked",
    ]


def test_a_snooze_hides_everything_that_was_not_asked_for(neovim: Neovim) -> None:
    neovim.offered()

    neovim.nvim.command("Midspan snooze 30")
    neovim.eventually(lambda: line(neovim).startswith("Midspan snoozed until "), "the status line does not say so")
    assert neovim.ghost() is None
    assert silent(neovim)
    neovim.keys("<BS><BS><BS>")
    assert asked(neovim), "where it was offered before"

    neovim.nvim.command("Midspan snooze 0")
    neovim.until_ready()
    assert neovim.offered()
    first, second = neovim.messages()
    assert first.startswith("Midspan: snoozed until ")
    assert first.endswith("; `:Midspan snooze 0` ends it")
    assert second == "Midspan: the snooze is over"


def test_the_suggestion_is_back_when_the_snooze_is_ended(neovim: Neovim) -> None:
    ghost = neovim.offered()
    neovim.nvim.command("Midspan snooze")
    neovim.eventually(lambda: "snoozed" in line(neovim), "it is not snoozed")

    neovim.nvim.command("Midspan snooze 0")

    assert neovim.eventually(neovim.ghost, "it does not come back").startswith(ghost[:1])


def test_a_language_can_be_switched_from_a_file_of_another(neovim: Neovim) -> None:
    neovim.nvim.command("Midspan toggle python")
    neovim.eventually(neovim.messages, "nothing is said")
    assert neovim.offered(), "this is no Python file"

    neovim.nvim.command("Midspan toggle text")
    neovim.eventually(lambda: len(neovim.messages()) == 2, "nothing is said")
    assert silent(neovim)
    assert neovim.messages() == [
        "Midspan: suggestions are off in python files",
        "Midspan: suggestions are off in text files",
    ]


def test_what_is_asked_for_is_answered_whatever_the_gate_and_says_how_sure_it_is(opened: Callable[..., Neovim]) -> None:
    neovim = opened(gate=1)
    assert silent(neovim)

    assert asked(neovim)

    assert hint(neovim).split(",")[0].endswith(" % sure")


def test_the_next_of_several_has_its_number(opened: Callable[..., Neovim]) -> None:
    neovim = opened(gate=1)
    for char in "abcdefghijklmnopqrstuvwxyz":
        neovim.after_answer(partial(neovim.type, char))
        if asked(neovim) and " of " in hint(neovim):
            break
    else:
        pytest.fail("the model never has two candidates")
    first = neovim.ghost()
    assert ", 1 of " in hint(neovim)

    neovim.keys("<M-]>")
    neovim.eventually(lambda: neovim.ghost() != first, "there is no next one")

    assert ", 2 of " in hint(neovim)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"exclude": ["*.txt"]}, "this file is left alone: it"),
        ({"languages": {"text": False, "plaintext": False}}, "suggestions are switched off for"),
        ({"enabled": False}, "suggestions are switched off; "),
    ],
)
def test_who_asks_in_vain_reads_why(
    in_neovim: Open, neovim_settings: dict[str, Any], settings: dict[str, Any], why: str
) -> None:
    neovim = in_neovim(setup={"settings": {**neovim_settings, **settings}})
    neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
    neovim.keys("GA")

    assert asked(neovim) is None

    neovim.eventually(lambda: any(why in said for said in neovim.messages()), f"{why} is not said")


def test_who_asks_where_the_buffer_is_off_reads_why(neovim: Neovim) -> None:
    neovim.nvim.command("Midspan toggle buffer")

    neovim.keys("<C-g>")

    neovim.eventually(lambda: len(neovim.messages()) == 2, "nothing is said")
    assert neovim.messages()[1].startswith("Midspan: suggestions are off in this buffer; ")


def test_the_command_completes_its_words(in_neovim: Open) -> None:
    neovim = in_neovim()

    def completed(start: str) -> list[str]:
        found: list[str] = neovim.lua("return vim.fn.getcompletion(..., 'cmdline')", f"Midspan {start}")
        return found

    assert {"automatic", "snooze", "status", "toggle"} <= set(completed(""))
    assert completed("sn") == ["snooze"]
    assert completed("automatic ") == ["off", "on"]
    assert completed("toggle type") == ["typescript", "typescriptreact"]
    assert "buffer" in completed("toggle ")


def test_a_wrong_word_is_one_clear_line(in_neovim: Open) -> None:
    neovim = in_neovim()

    neovim.keys(":Midspan snooze long<CR>:Midspan toggle pyhton<CR>")

    neovim.eventually(lambda: len(neovim.messages()) == 2, "nothing is said")
    assert neovim.messages() == [
        "Midspan: :Midspan snooze takes minutes, 0, 5, 30, 60; not long",
        "Midspan: :Midspan toggle takes a language, all, buffer, filetype; not pyhton",
    ]


def test_the_status_counts_what_was_shown_and_accepted(neovim: Neovim) -> None:
    neovim.offered()
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.report()["accepted"] == 1, "it is not counted")
    neovim.keys("<Esc>")

    neovim.nvim.command("Midspan status")

    said = neovim.eventually(neovim.messages, "nothing is said")
    assert [each.split()[0] for each in said[:4]] == ["state", "model", "shown", "asked"]
    assert ": 1 accepted, 0 of them in part; 0 dismissed" in said[2]
