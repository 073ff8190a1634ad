"""What a real Neovim draws of a suggestion, and when the next one is asked for."""

from collections.abc import Callable

import pytest
from neovim import Neovim

Open = Callable[..., Neovim]
SHOW = """
local text = ...
local client = vim.lsp.get_clients({ name = 'midspan' })[1]
local cursor = vim.api.nvim_win_get_cursor(0)
local at = { line = cursor[1] - 1, character = cursor[2] }
local item = { insertText = text, range = { start = at, ['end'] = at } }
require('midspan.ghost').show(client, { item }, false)
"""


@pytest.fixture
def go(in_neovim: Open) -> Neovim:
    """Return a Neovim in insert mode at the end of a Go file, where nothing is suggested by itself."""
    neovim = in_neovim(
        "func main() {\n\tif x {\n", "main.go", setup={"settings": {"enabled": False}}, extra="vim.o.tabstop = 4"
    )
    neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
    neovim.keys("GA")
    neovim.settled()
    return neovim


def test_tabs_are_drawn_as_wide_as_they_are_in_the_text(go: Neovim) -> None:
    go.lua(SHOW, " y\n\t\treturn\n\t}\n\ta\tb")

    assert go.ghost() == " y\n        return\n    }\n    a   b"


def test_a_cursor_that_moves_away_takes_the_text_off_at_once(go: Neovim) -> None:
    go.lua(SHOW, "rest")
    assert go.ghost() == "rest"

    go.keys("<Left>")
    go.eventually(lambda: go.cursor()[1] == 6, "the cursor stays")

    assert go.ghost() is None


def test_escape_takes_the_text_off(go: Neovim) -> None:
    go.lua(SHOW, "rest\nand more")

    go.keys("<Esc>")

    go.eventually(lambda: go.ghost() is None, "it stays")
    assert go.lua("return require('midspan').accept()") is False


@pytest.mark.parametrize("key", ["<Tab>", "<C-f>", "<C-l>"])
def test_after_an_accept_the_next_one_is_asked_for_without_a_key(neovim: Neovim, key: str) -> None:
    neovim.offered()
    text, answered = neovim.text(), neovim.answered()

    neovim.keys(key)

    neovim.eventually(lambda: neovim.text() != text, "it is not accepted")
    neovim.settled()
    assert neovim.answered() > answered
