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


HOLD_ANSWERS = """
local client = vim.lsp.get_clients({ name = 'midspan' })[1]
local request = client.request
Held = {}
client.request = function(self, method, params, handler, ...)
  if method ~= 'textDocument/inlineCompletion' then
    return request(self, method, params, handler, ...)
  end
  return request(self, method, params, function(...)
    local answer = { ... }
    table.insert(Held, function() handler(unpack(answer)) end)
  end, ...)
end
"""
TYPE_AND_ANSWER = """
local typed = ...
local cursor = vim.api.nvim_win_get_cursor(0)
vim.api.nvim_buf_set_text(0, cursor[1] - 1, cursor[2], cursor[1] - 1, cursor[2], { typed })
vim.api.nvim_win_set_cursor(0, { cursor[1], cursor[2] + #typed })
Held[1]()
"""


@pytest.mark.parametrize("goes_along", [True, False])
def test_an_answer_that_comes_after_the_next_key_is_shown_if_that_goes_along_with_it(
    neovim: Neovim, goes_along: bool
) -> None:
    ghost = neovim.offered(lambda text: len(text) > 2 and text[0].isalnum())
    neovim.keys("<Esc>")
    neovim.eventually(lambda: neovim.ghost() is None, "it stays")
    neovim.lua(HOLD_ANSWERS)
    neovim.keys("a")
    neovim.eventually(lambda: neovim.lua("return #Held > 0"), "no answer")

    neovim.lua(TYPE_AND_ANSWER, ghost[0] if goes_along else "§")

    assert neovim.ghost() == (ghost[1:] if goes_along else None)
