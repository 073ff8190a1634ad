"""The lines of the plugin's README load it in a real Neovim: with lazy.nvim, with vim.pack, and without a manager."""

import contextlib
import json
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
from neovim import PLUGIN, PROGRAM, ROOT, Setup, environment, pynvim
from support.lsp_editor import PATIENCE_S, engine_home

from lsp_server.settings import setting_names

SERVER = Path(sys.executable).with_name("midspan-lsp")
LAZY = ROOT / ".editors" / "lazy.nvim"
BLOCKS = re.findall(r"```lua\n(.*?)```", (PLUGIN / "README.md").read_text("utf-8"), re.DOTALL)
CLONE = "~/src/midspan"
WRITTEN_KEYS = ("<Tab>", "<M-Right>", "<M-End>", "<M-e>", "<M-Bslash>", "<M-]>", "<M-[>", "<M-?>")
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


@pytest.fixture
def installed(home: Path) -> Path:
    """The same home after `midspan setup neovim`. Its midspan-lsp is not on the PATH."""
    written = [sys.executable, "-m", "engine.cli", "setup", "neovim"]
    variables = {**environment(home, Setup({})), "MIDSPAN_DATA_DIR": str(home / "midspan")}
    path = f"{PROGRAM.parent}{os.pathsep}{variables['PATH']}"
    subprocess.run(written, env={**variables, "PATH": path}, cwd=ROOT, check=True, capture_output=True)
    return home


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


def test_what_setup_has_written_gives_way_to_the_users_own_configuration(installed: Path) -> None:
    check_that_it_runs(installed, "")
    with opened(installed, "require('midspan').setup({ keymaps = { accept = '<C-y>' } })") as nvim:
        until_served(nvim)
        assert is_ours(nvim, "<C-y>")
        assert not is_ours(nvim, "<Tab>")
        assert is_ours(nvim, "<M-e>"), "what the user does not name stays"


def test_a_setup_that_comes_after_the_written_one_gives_its_keys_back(installed: Path) -> None:
    with opened(installed, "vim.keymap.set('i', '<Tab>', 'mine')") as nvim:
        until_served(nvim)
        nvim.exec_lua("require('midspan').setup({ keymaps = { accept = '<C-y>', dismiss = false } })")
        assert is_ours(nvim, "<C-y>")
        assert nvim.funcs.maparg("<Tab>", "i") == "mine"
        assert nvim.funcs.maparg("<M-e>", "i") == ""


# Each is another value than the default.
SETTINGS = {
    "enabled": True,
    "gate": "eager",
    "automatic": False,
    "languages": {"markdown": False},
    "model": "embedded",
    "maxLines": 2,
    "wholeLines": True,
    "pauseMs": 400,
    "nextEdits": False,
    "editsModel": "none",
    "completionItems": True,
    "memory": "file",
    "relatedFiles": "never",
    "exclude": ["*.secret"],
    "budgetMs": 900,
    "maxTokens": 8,
    "contextTokens": 256,
    "rule": "threshold",
    "device": "cpu",
    "precision": "int8",
    "threads": 1,
    "memoryMegabytes": 32,
    "idleMinutes": 5,
    "refactorMaxFiles": 10,
    "refactorMaxPlaces": 10,
    "refactorMaxSeconds": 5,
    "logLevel": "debug",
}


def test_each_setting_and_option_can_be_changed_in_init_lua_after_midspan_setup(installed: Path) -> None:
    assert list(SETTINGS) == setting_names()
    settings = f"vim.json.decode({json.dumps(json.dumps(SETTINGS))})"
    for options in (
        f"settings = {settings}",
        *(f"settings = {{ {name} = {settings}.{name} }}" for name in ("threads", "languages", "exclude")),
        "filetypes = { markdown = false }",
        "next_edit = false",
        "keymaps = { refill = 'gR' }",
        "tab = { 'by line', 'inside words only accept' }",
        f"cmd = {{ {str(SERVER)!r} }}",
    ):
        with opened(installed, f"require('midspan').setup({{ {options} }})") as nvim:
            until_served(nvim)
            wait(nvim, "#require('midspan').statusline() > 0")
            assert [key for key in WRITTEN_KEYS if not is_ours(nvim, key)] == [], options
            assert nvim.funcs.exists(":Midspan") == 2
            assert nvim.command_output("messages") == "", options
            if options.startswith(f"settings = {settings}"):
                assert nvim.exec_lua("return vim.lsp.get_clients()[1].settings.midspan") == SETTINGS


def test_a_second_setup_changes_what_it_names_and_tells_the_server(installed: Path) -> None:
    with opened(installed, "require('midspan').setup({ settings = { automatic = false, threads = 1 } })") as nvim:
        until_served(nvim)
        wait(nvim, "require('midspan').statusline() == 'Midspan when asked'")
        nvim.exec_lua("require('midspan').setup({ settings = { enabled = false } })")
        wait(nvim, "require('midspan').statusline() == 'Midspan off'")
        nvim.exec_lua("require('midspan').setup({ settings = { enabled = true } })")
        wait(nvim, "require('midspan').statusline() == 'Midspan when asked'")


def test_a_name_that_no_setting_has_is_said(installed: Path) -> None:
    with opened(installed, "require('midspan').setup({ settings = { budgetms = 900 } })") as nvim:
        until_served(nvim)
        wait(nvim, "vim.fn.execute('messages'):find('no setting is called', 1, true)")
        said = nvim.command_output("messages")
        assert "no setting is called budgetms; did you mean budgetMs?" in said


def test_the_server_in_the_environment_of_the_readme_is_found_without_the_path(home: Path) -> None:
    programs = home / ".midspan" / "bin"
    programs.mkdir(parents=True)
    (programs / "midspan-lsp").symlink_to(SERVER)
    with opened(home, block("runtimepath:append"), path="/usr/bin:/bin") as nvim:
        until_served(nvim)
        assert nvim.command_output("messages") == ""


def block(mark: str) -> str:
    """Return the one block of Lua that has this mark."""
    (found,) = [text for text in BLOCKS if mark in text]
    return str(found)


def check_that_it_runs(home: Path, init: str, path: str = Setup({}).path) -> None:
    """Start Neovim with this init.lua; check that the module, the command, a key and the language server are there."""
    with opened(home, init, path) as nvim:
        until_served(nvim)
        assert nvim.exec_lua("return require('midspan').statusline()") is not None
        assert nvim.funcs.exists(":Midspan") == 2
        assert is_ours(nvim, "<Tab>")


@contextlib.contextmanager
def opened(home: Path, init: str, path: str = "/usr/bin:/bin") -> Iterator[Any]:
    """Open a file in a Neovim with this init.lua."""
    (home / "config" / "nvim").mkdir(parents=True, exist_ok=True)
    (home / "config" / "nvim" / "init.lua").write_text(init)
    (home / "notes.txt").write_text("Shopping list:\n")
    nvim = start(home, path)
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
    wait(nvim, "#vim.lsp.get_clients({ name = 'midspan', bufnr = 0 }) > 0")


def wait(nvim: Any, true: str) -> None:
    """Wait until an expression of Lua is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not nvim.exec_lua(f"return {true}"):
        assert time.monotonic() < deadline, f"{true}: {nvim.command_output('messages')}"
        time.sleep(0.02)


def start(home: Path, path: str) -> Any:
    """Start a Neovim that reads its own init.lua. It answers no question, so questions get their default answers."""
    outer, inner = dict(os.environ), environment(home, Setup({}, path=path))
    os.environ.clear()
    os.environ.update(inner, MIDSPAN_RUNTIME_DIR=str(home / "runtime"))
    try:
        return pynvim.attach("child", argv=[str(PROGRAM), "--embed", "--headless", str(home / "notes.txt")])
    finally:
        os.environ.clear()
        os.environ.update(outer)
