"""Neovim with the plugins that people have beside ours: blink.cmp 1, nvim-cmp with cmp-buffer, sidekick.nvim.

A test is skipped where its plugin is not in .editors/plugins.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from neovim import ROOT, Neovim

Open = Callable[..., Neovim]
PLUGINS = ROOT / ".editors" / "plugins"
SHOP = "shopping_list = 1\nshopping_list_of_everybody = 2\n\n"
BLINK = """
require('blink.cmp').setup({
  fuzzy = { implementation = 'lua' },
  sources = { default = { 'buffer' }, min_keyword_length = 2 },
  completion = { list = { selection = { preselect = PRESELECT, auto_insert = false } } },
})
"""
CMP = """
vim.cmd('runtime! plugin/cmp.lua after/plugin/cmp_buffer.lua')
local cmp = require('cmp')
cmp.register_source('buffer', require('cmp_buffer'))
cmp.setup({
  sources = { { name = 'buffer' } },
  completion = { completeopt = PRESELECT and 'menu,menuone,noinsert' or 'menu,menuone,noselect' },
})
"""
MENUS = [
    (("blink.cmp",), BLINK, "require('blink.cmp').is_menu_visible()"),
    (("nvim-cmp", "cmp-buffer"), CMP, "require('cmp').visible()"),
]


def with_plugins(*names: str) -> str:
    """Return Lua that puts plugins on Neovim's runtimepath; skip the test if one is missing."""
    for name in names:
        if not (PLUGINS / name).exists():
            pytest.skip(f"{name} is not in .editors/plugins")
    return "".join(f"vim.opt.runtimepath:append('{PLUGINS / name}')\n" for name in names)


def with_open_menu(in_neovim: Open, extra: str, is_open: str) -> Neovim:
    """Return a Neovim with the Lua `extra`, where the start of a word is typed and the menu for it is open."""
    neovim = in_neovim(SHOP, "shop.py", extra=extra)
    neovim.until_ready()
    neovim.keys("GA")
    neovim.type("shop")
    neovim.eventually(lambda: neovim.lua(f"return {is_open}"), "no menu opens")
    return neovim


@pytest.mark.parametrize(("plugins", "setup", "is_open"), MENUS, ids=["blink.cmp", "nvim-cmp"])
def test_the_suggestion_continues_the_entry_that_another_menu_has_selected(
    in_neovim: Open, plugins: tuple[str, ...], setup: str, is_open: str
) -> None:
    extra = with_plugins(*plugins) + setup.replace("PRESELECT", "true")
    neovim = with_open_menu(in_neovim, extra, is_open)

    neovim.eventually(lambda: (neovim.ghost() or "").startswith("ping_list"), "it does not begin with the entry")


@pytest.mark.parametrize(("plugins", "setup", "is_open"), MENUS, ids=["blink.cmp", "nvim-cmp"])
def test_beside_another_menu_without_a_selection_the_suggestion_is_there_and_can_be_taken(
    in_neovim: Open, plugins: tuple[str, ...], setup: str, is_open: str
) -> None:
    extra = with_plugins(*plugins) + setup.replace("PRESELECT", "false")
    neovim = with_open_menu(in_neovim, extra, is_open)
    ghost = neovim.eventually(neovim.ghost, "there is no suggestion beside the menu")
    before, after = neovim.around_cursor()
    neovim.keys("<Tab>")

    neovim.eventually(lambda: neovim.text() == before + ghost + after, "it is not accepted")


def test_sidekick_takes_the_next_edits(in_neovim: Open, neovim_settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    config = {
        "cmd": ["midspan-lsp"],
        "filetypes": ["python"],
        "root_markers": [".git"],
        "settings": {"midspan": neovim_settings},
    }
    extra = f"""{with_plugins("sidekick.nvim")}
    require('sidekick').setup({{}})
    vim.lsp.config('midspan_copilot', vim.json.decode([=[{json.dumps(config)}]=]))
    vim.lsp.enable('midspan_copilot')
    do return end
    """
    neovim = in_neovim("import http\n\nhttp.get(one)\n\n\nhttp.get(two)\nhttp.get(three)\n", "app.py", extra=extra)
    neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
    neovim.keys("3Gf)i, timeout=1<Esc>")

    def applied(count: int) -> bool:
        return neovim.text().count("timeout=1") == count

    for count in (2, 3):
        neovim.eventually(lambda: neovim.lua("return require('sidekick.nes').have()"), "no next edit is shown")
        neovim.lua("require('sidekick.nes').apply()")
        neovim.eventually(partial(applied, count), "it is not applied")
