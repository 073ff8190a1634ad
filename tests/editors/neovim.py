"""A real Neovim for tests, without a screen: our plugin on its runtimepath, a file open, keys typed as a user types."""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.lsp_editor import PATIENCE_S

pynvim = pytest.importorskip("pynvim", reason="pynvim is not installed: make setup")

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".editors" / "debian" / "root" / "usr" / "bin" / "nvim"
PLUGIN = ROOT / "editors" / "neovim"
NOTES = "Shopping list:\n- \n"
PANGRAMS = "the quick brown fox jumps over the lazy dog and packs my box with five dozen jugs "
KEYMAPS = {
    "accept": "<Tab>",
    "accept_word": "<C-f>",
    "accept_line": "<C-l>",
    "next": "<M-]>",
    "previous": "<M-[>",
    "dismiss": "<C-e>",
    "trigger": "<C-g>",
}
# Counts the requests and the answers of inline completion, and notes the text and cursor of the last answer, so that a
# test knows when there is nothing more to wait for.
_INIT = """
vim.opt.runtimepath:prepend({plugin})
vim.g.loaded_python3_provider = 0
vim.opt.swapfile = false
answered, answered_moment, asked_for = 0, '', 0
local asked = {{}}
function current_moment()
  local cursor = vim.api.nvim_win_get_cursor(0)
  return ('%d %d:%d'):format(vim.api.nvim_buf_get_changedtick(0), cursor[1], cursor[2])
end
vim.api.nvim_create_autocmd('LspRequest', {{ callback = function(event)
  local request, id = event.data.request, event.data.request_id
  if request.method ~= 'textDocument/inlineCompletion' then
    return
  end
  if request.type == 'pending' then
    asked[id], asked_for = current_moment(), asked_for + 1
  elseif request.type == 'complete' then
    answered, answered_moment = answered + 1, asked[id]
  end
end }})
{extra}
require('midspan').setup(vim.json.decode({options}))
"""
_GHOST = """
local namespace = vim.api.nvim_create_namespace('midspan.ghost')
local mark = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })[1]
if not mark then return nil end
local lines = { mark[4].virt_text[1][1] }
for _, line in ipairs(mark[4].virt_lines or {}) do
  table.insert(lines, line[1][1])
end
return table.concat(lines, '\\n')
"""


_SCREEN = """
vim.cmd.redraw()
local rows = {}
for row = 1, vim.o.lines do
  rows[row] = ''
  for column = 1, vim.o.columns do rows[row] = rows[row] .. vim.fn.screenstring(row, column) end
end
return rows
"""


@attrs.frozen
class Setup:
    """How a Neovim is started: setup()'s options, Lua to run before it, and where programs are looked for."""

    options: dict[str, Any]
    extra: str = ""
    path: str = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def write_init(home: Path, setup: Setup) -> Path:
    """Write an init.lua for `setup` into `home`; return its path."""
    home.mkdir(parents=True, exist_ok=True)
    init = home / "init.lua"
    options = json.dumps(json.dumps(setup.options))
    init.write_text(_INIT.format(plugin=json.dumps(str(PLUGIN)), extra=setup.extra, options=options))
    return init


def environment(home: Path, setup: Setup) -> dict[str, str]:
    """Return the variables that keep a Neovim away from the user's own files, and from another Neovim around it."""
    places = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NVIM")}
    return {**kept, **places, "HOME": str(home), "PATH": setup.path}


class Neovim:
    """One Neovim in `home` with `file` open. To be closed."""

    def __init__(self, home: Path, file: Path, setup: Setup) -> None:
        argv = [str(PROGRAM), "--embed", "--headless", "-u", str(write_init(home, setup)), str(file)]
        outer, inner = dict(os.environ), environment(home, setup)
        os.environ.clear()
        os.environ.update(inner)
        try:
            self.nvim = pynvim.attach("child", argv=argv)
        finally:
            os.environ.clear()
            os.environ.update(outer)
        self.file = file

    def close(self) -> None:
        try:
            self.nvim.command("qall!")
        except (OSError, EOFError):  # Neovim leaves without a goodbye.
            pass
        finally:
            self.nvim.close()

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.nvim.exec_lua(code, *arguments)

    def keys(self, keys: str) -> None:
        """Press keys, in Neovim's notation."""
        while keys:
            keys = keys[self.nvim.input(keys) :]

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self.keys(text.replace("<", "<lt>").replace("\n", "<CR>"))

    def eventually(self, true: Callable[[], Any], what: str) -> Any:
        """Wait until `true` is, and return what it is; fail with `what` did not happen."""
        deadline = time.monotonic() + PATIENCE_S
        while not (value := true()):
            assert time.monotonic() < deadline, f"{what}; messages: {self.messages()}"
            time.sleep(0.01)
        return value

    def until_ready(self) -> None:
        self.eventually(lambda: self.state() == "ready", "the engine does not get ready")

    def state(self) -> str:
        """Return the state that the status line knows of."""
        state: str = (self.status() or {}).get("state", "")
        return state

    def status(self) -> dict[str, Any] | None:
        found = self.lua(
            "local client = vim.lsp.get_clients({ name = 'midspan' })[1]\n"
            "return client and require('midspan.status').of(client.id) or nil"
        )
        return found if isinstance(found, dict) else None

    def report(self) -> Any:
        """Return the answer of the server's command midspan.status."""
        return self.lua(
            "local client = vim.lsp.get_clients({ name = 'midspan' })[1]\n"
            "return client:request_sync('workspace/executeCommand', { command = 'midspan.status' }, 10000).result"
        )

    def ghost(self) -> str | None:
        """Return the ghost text as it is drawn, or None."""
        found = self.lua(_GHOST)
        return found if isinstance(found, str) and found else None

    def asked(self) -> int:
        """Return how often the editor has asked for a suggestion."""
        return int(self.lua("return asked_for"))

    def answered(self) -> int:
        return int(self.lua("return answered"))

    def settled(self) -> str | None:
        """Wait until the text and the cursor are those of the last answer, and return the ghost text then."""
        is_settled = partial(self.lua, "return answered_moment == current_moment()")
        self.eventually(is_settled, "no request is answered")
        return self.ghost()

    def after_answer(self, act: Callable[[], None]) -> str | None:
        """Do `act`, wait until a request made after it is answered, and return the ghost text then."""
        if self.answered() > 0:
            self.settled()
        before = self.answered()
        act()
        self.eventually(lambda: self.answered() > before, "no request is answered")
        return self.settled()

    def offered(self, fits: Callable[[str], Any] = bool, keys: str = PANGRAMS) -> str:
        """Type `keys` until a suggestion that `fits` is shown. Insert mode is on."""
        for char in keys:
            ghost = self.after_answer(partial(self.type, char))
            if ghost is not None and fits(ghost):
                return ghost
        raise AssertionError("nothing that fits is ever offered")

    def text(self) -> str:
        return "\n".join(self.nvim.current.buffer[:]) + "\n"

    def screen(self) -> list[str]:
        """Return the rows that Neovim draws, as text."""
        rows: list[str] = self.lua(_SCREEN)
        return [row.rstrip() for row in rows]

    def cursor(self) -> tuple[int, int]:
        row, column = self.nvim.current.window.cursor
        return row, column

    def around_cursor(self) -> tuple[str, str]:
        """Return the text before the cursor and that after it."""
        row, column = self.cursor()
        lines = self.text().split("\n")
        before = lines[row - 1].encode()[:column].decode()
        after = lines[row - 1].encode()[column:].decode()
        return "\n".join([*lines[: row - 1], before]), "\n".join([after, *lines[row:]])

    def saved(self) -> str:
        """Save, and return what is on disk."""
        self.nvim.command("write")
        return self.file.read_text()

    def messages(self) -> list[str]:
        return [line for line in self.nvim.command_output("messages").split("\n") if line]
