"""The lines of the plugin's README load it in a real Neovim: with lazy.nvim, with vim.pack, and without a manager."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsp_editor import PATIENCE_S, engine_home
from neovim import PLUGIN, PROGRAM, ROOT, Setup, environment, pynvim

LAZY = ROOT / ".editors" / "lazy.nvim"
BLOCKS = re.findall(r"```lua\n(.*?)```", (PLUGIN / "README.md").read_text("utf-8"), re.DOTALL)
CLONE = "~/src/midspan"
WITH_LAZY = """
vim.opt.rtp:prepend({manager!r})
require('lazy').setup({{ {spec} }}, {{ rocks = {{ enabled = false }} }})
"""
needs_lazy = pytest.mark.skipif(not LAZY.exists(), reason="lazy.nvim is not here: make editors-lazy")

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="Neovim is not here: make editors")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home folder with a clone of Midspan's plugin, as a git repository, where the README has it."""
    repository = tmp_path / CLONE.removeprefix("~/")
    shutil.copytree(PLUGIN, repository / "editors" / "neovim")
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "plugin"]):
        subprocess.run([*git, *arguments], check=True)
    with engine_home(tmp_path / "runtime", Path("embedded")):
        yield tmp_path


@needs_lazy
def test_with_lazy_from_a_clone(home: Path) -> None:
    check_that_it_runs(home, WITH_LAZY.format(manager=str(LAZY), spec=block("dir = ")))


@needs_lazy
def test_with_lazy_from_a_repository(home: Path) -> None:
    spec = block("url = ").replace(CLONE, f"file://{home}/src/midspan")
    check_that_it_runs(home, WITH_LAZY.format(manager=str(LAZY), spec=spec))


def test_with_vim_pack(home: Path) -> None:
    check_that_it_runs(home, block("vim.pack.add"))


def test_without_a_manager(home: Path) -> None:
    check_that_it_runs(home, block("runtimepath:append"))


def test_what_setup_has_written_leaves_the_users_own_configuration_alone(home: Path) -> None:
    written = [sys.executable, "-m", "engine.cli", "setup", "neovim"]
    variables = {**environment(home, Setup({})), "MIDSPAN_DATA_DIR": str(home / "midspan")}
    path = f"{PROGRAM.parent}{os.pathsep}{variables['PATH']}"
    subprocess.run(written, env={**variables, "PATH": path}, cwd=ROOT, check=True, capture_output=True)
    check_that_it_runs(home, "")
    with opened(home, "require('midspan').setup({ keymaps = { accept = '<C-y>' } })") as nvim:
        until_served(nvim)
        assert is_ours(nvim, "<C-y>")
        assert not is_ours(nvim, "<Tab>")


def block(mark: str) -> str:
    """Return the one block of Lua that has this mark."""
    (found,) = [text for text in BLOCKS if mark in text]
    return str(found)


def check_that_it_runs(home: Path, init: str) -> None:
    """Start Neovim with this init.lua; check that the module, the command, a key and the language server are there."""
    with opened(home, init) as nvim:
        until_served(nvim)
        assert nvim.exec_lua("return require('midspan').statusline()") is not None
        assert nvim.funcs.exists(":Midspan") == 2
        assert is_ours(nvim, "<Tab>")


@contextlib.contextmanager
def opened(home: Path, init: str) -> Iterator[Any]:
    """Open a file in a Neovim with this init.lua."""
    (home / "config" / "nvim").mkdir(parents=True, exist_ok=True)
    (home / "config" / "nvim" / "init.lua").write_text(init)
    (home / "notes.txt").write_text("Shopping list:\n")
    nvim = start(home)
    try:
        yield nvim
    finally:
        with contextlib.suppress(OSError, EOFError):  # Neovim leaves without a goodbye.
            nvim.command("qall!")
        nvim.close()


def is_ours(nvim: Any, key: str) -> bool:
    """Return whether our plugin has this key in insert mode. Neovim has a mapping of its own for some."""
    return "Midspan" in nvim.funcs.maparg(key, "i", False, True).get("desc", "")


def until_served(nvim: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not nvim.exec_lua("return #vim.lsp.get_clients({ name = 'midspan', bufnr = 0 })"):
        assert time.monotonic() < deadline, nvim.command_output("messages")
        time.sleep(0.02)


def start(home: Path) -> Any:
    """Start a Neovim that reads its own init.lua. It answers no question, so questions get their default answers."""
    outer = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment(home, Setup({})), MIDSPAN_RUNTIME_DIR=str(home / "runtime"))
    try:
        return pynvim.attach("child", argv=[str(PROGRAM), "--embed", "--headless", str(home / "notes.txt")])
    finally:
        os.environ.clear()
        os.environ.update(outer)
