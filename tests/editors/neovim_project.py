"""A project with an edit to repeat in a real Neovim, and what the preview shows of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from neovim import Neovim
from support.git_folder import repository

APP = "import http\n\nhttp.get(one)\n\n\nhttp.get(two)\nprint(3)\nhttp.get(three)\n"
OTHER = "import http\n\n\ndef load():\n    name = '🦊', http.get(four)  # ü\n    return name\n"
LOCAL = "def load(http):\n    return http.get(five)\n"
PREVIEW_OFF = "vim.lsp.config('midspan', { capabilities = { experimental = { midspanPreview = false } } })"
MENU = """
local title = ...
vim.lsp.buf.code_action({ apply = true, filter = function(action)
  return action.title:find(title, 1, true) ~= nil
end })
"""
BUFFERS = """
local found = {}
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].buftype == '' then
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
    local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\\n') .. '\\n'
    found[name] = { text, vim.bo[buf].modified, vim.bo[buf].buflisted }
  end
end
return found
"""
OFFERED = """
local client = vim.lsp.get_clients({ name = 'midspan', bufnr = 0 })[1]
if not client then return {} end
local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
params.context = { diagnostics = {} }
local answer = client:request_sync('textDocument/codeAction', params, 5000, 0)
return vim.tbl_map(function(action) return action.title end, answer and answer.result or {})
"""


def write_project(folder: Path) -> Path:
    """Write a git repository with two files that http.get(...) fits, and one where http is something else."""
    return repository(folder, {"other.py": OTHER, "sub/local.py": LOCAL})


def open_edited(in_neovim: Callable[..., Neovim], project: Path, extra: str = "") -> Neovim:
    """Open the project's app.py, and give its first call another argument by hand."""
    neovim = in_neovim(APP, f"{project.name}/app.py", setup={"settings": {"enabled": False}}, extra=extra)
    neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
    neovim.keys("3Gf)i, timeout=1<Esc>")
    neovim.eventually(lambda: offered(neovim), "the edit is not offered for repeating")
    return neovim


def offered(neovim: Neovim) -> list[str]:
    """Return the titles of the code actions at the cursor."""
    titles: list[str] = neovim.lua(OFFERED)
    return titles


def choose(neovim: Neovim, title: str) -> None:
    """Choose a code action from Neovim's own menu."""
    neovim.lua(MENU, title)


def preview(neovim: Neovim, title: str = "in the workspace") -> list[str]:
    """Choose a code action and return the preview's lines."""
    choose(neovim, title)
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    return lines(neovim)


def filetype(neovim: Neovim) -> str:
    kind: str = neovim.lua("return vim.bo.filetype")  # in one request: the preview's buffer may be gone at the next
    return kind


def lines(neovim: Neovim) -> list[str]:
    shown: list[str] = neovim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)")
    return shown


def ticks(neovim: Neovim) -> list[str]:
    return [line.split("  ")[0] for line in lines(neovim) if line.startswith("[")]


def buffers(neovim: Neovim) -> dict[str, Any]:
    """Return text, whether modified and whether listed, of each file's buffer by the file's name."""
    found: dict[str, Any] = neovim.lua(BUFFERS)
    return {name: tuple(values) for name, values in found.items()}


def edited(text: str) -> str:
    """Return a text after the edit in all places."""
    for name in ("one", "two", "three", "four"):
        text = text.replace(f"http.get({name})", f"http.get({name}, timeout=1)")
    return text
