"""README, followed to the letter on a bare home: from a clone to an accepted suggestion, in Neovim and in VS Code.

pip and npm fetch what they need from their registries. `pytest -s` shows how many commands were typed, and how long all
took.
"""

import contextlib
import os
import shlex
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from code_server import CodeServer, what_is_missing
from fresh_clone import FreshClone, commands_after
from support.browser_driver import eventually
from support.lsp_editor import PATIENCE_S, engine_home
from vscode_typing import type_until_ghost
from vscode_window import OUT
from workbench import Workbench

pynvim = pytest.importorskip("pynvim", reason="pynvim is not installed: make setup")

NVIM = Path(__file__).parents[2] / ".editors" / "debian" / "root" / "usr" / "bin" / "nvim"
GHOST = """
local namespace = vim.api.nvim_create_namespace('midspan.ghost')
local mark = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })[1]
return mark and mark[4].virt_text[1][1] or vim.NIL
"""
MISSING = what_is_missing()
MOST_COMMANDS = 3
INSTALLS_S = 300.0
"""pip fetches the server's packages."""
KNOWN = "".join(f"def {name}_value(numbers):\n    return numbers[0]\n\n\n" for name in ("first", "second", "third"))
BEGUN, REST = f"{KNOWN}def fourth_value(numbers):\n    ", "return numbers"
"""What is typed until a suggestion is shown."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
needs_vscode = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshClone]:
    """A clone whose user types what README says for VS Code. `code` is code-server, which has the same command line."""
    home = tmp_path_factory.mktemp("home")
    with engine_home(home / "runtime", Path("embedded")):
        yield FreshClone.of(home)


@pytest.fixture(scope="module")
def server(clone: FreshClone) -> CodeServer:
    """The user's VS Code, after the commands of README."""
    if MISSING:
        pytest.skip(MISSING)
    server = vscode_of(clone, "code")
    for command in commands_after("**VS Code"):
        clone.type(command)
    return server


@needs_vscode
def test_vs_code_from_a_clone_to_an_accepted_suggestion(server: CodeServer, clone: FreshClone) -> None:
    server.serve()
    window = Workbench(server)
    start = time.monotonic()
    try:
        window.open_first("first.py")
        window.press_button("Install")
        eventually(lambda: window.shows("ready"), "the status item showing ready", INSTALLS_S)
        window.open("area.py", f"{BEGUN}|\n")
        typed, ghost = type_until_ghost(window, REST)
        clone.seconds.append(time.monotonic() - start)
        window.press("Tab")
        assert window.saved("area.py") == f"{BEGUN}{typed}{ghost}\n"
    except AssertionError:
        window.keep(OUT / "readme_vscode")
        raise
    finally:
        window.close()
        server.stop()
    tell("VS Code", clone)


@needs_vscode
def test_make_dist_leaves_what_people_install(server: CodeServer, clone: FreshClone) -> None:
    dist = clone.folder / "dist"
    (wheel,) = dist.glob("*.whl")
    assert {path.name for path in dist.iterdir()} == {
        wheel.name,
        "midspan.vsix",
        "midspan.nvim.tar.gz",
        f"{'-'.join(wheel.name.split('-')[:2])}.tar.gz",
    }
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    # The card of the model is for who reads the repository; its licence comes along.
    files = {path.name for path in (clone.folder / "engine" / "weights").iterdir()} - {"README.md"}
    assert {f"engine/weights/{name}" for name in files} <= set(names)
    assert {"LICENSE", "NOTICE"} <= {name.rpartition("/licenses/")[2] for name in names}
    assert "engine/cli/setup/neovim/lua/midspan/init.lua" in names
    assert any(name.startswith("engine/models/embedded/_kernel") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "editors/"))]
    with zipfile.ZipFile(dist / "midspan.vsix") as file:
        assert f"extension/server/{wheel.name}" in file.namelist()
        assert file.read(f"extension/server/{wheel.name}") == wheel.read_bytes()
    assert not (clone.folder / "editors" / "vscode" / "server").exists()
    with tarfile.open(dist / "midspan.nvim.tar.gz") as archive:
        assert "midspan.nvim/lua/midspan/init.lua" in archive.getnames()


@needs_vscode
def test_setup_installs_the_extension_and_takes_it_out_again(server: CodeServer, clone: FreshClone) -> None:
    other = vscode_of(clone, "code-server")
    extensions = f"{shlex.join(other.command())} --list-extensions"
    midspan = f"PYTHONPATH=. {sys.executable} -m engine.cli setup"
    would = " ".join(clone.run(midspan).split())
    assert f"code-server would install the extension {clone.folder}/dist/midspan.vsix" in would
    assert "midspan.midspan" not in clone.run(extensions)
    clone.run(f"{midspan} code-server")
    assert "midspan.midspan" in clone.run(extensions)
    # In the other one the user has installed it himself.
    clone.run(f"{midspan} vscode")
    clone.run(f"{midspan} --remove")
    assert "midspan.midspan" not in clone.run(extensions)
    assert "midspan.midspan" in clone.run("code --list-extensions")


@pytest.mark.skipif(not NVIM.exists(), reason="Neovim is not here: make editors")
def test_neovim_from_a_clone_to_an_accepted_suggestion(tmp_path: Path) -> None:
    clone = FreshClone.of(tmp_path)
    (clone.programs / "nvim").symlink_to(NVIM)
    commands = commands_after("**Neovim")
    for command in commands:
        clone.type(command)
    start = time.monotonic()
    file = tmp_path / "area.py"
    file.write_text(f"{BEGUN}\n")
    with engine_home(tmp_path / "runtime", Path("embedded")):
        nvim = attach(clone, file)
        try:
            nvim.input("GA")
            wait(lambda: nvim.exec_lua("return #vim.lsp.get_clients({ name = 'midspan', bufnr = 0 })"), "the server")
            typed = ""
            while not (ghost := ghost_within(nvim, 1.0)):
                assert len(typed) < len(REST), "nothing is suggested"
                nvim.input(REST[len(typed)])
                typed += REST[len(typed)]
            clone.seconds.append(time.monotonic() - start)
            nvim.input("<Tab>")
            expected = f"{BEGUN}{typed}{ghost}"
            wait(lambda: "\n".join(nvim.current.buffer[:]) == expected, "the suggestion in the text")
        finally:
            close(nvim)
    tell("Neovim", clone)
    clone.run("~/.midspan/bin/midspan setup --remove")
    assert not (tmp_path / ".local" / "share" / "nvim" / "site" / "pack" / "midspan").exists()


def vscode_of(clone: FreshClone, name: str) -> CodeServer:
    """Give the user a VS Code with the command `name`."""
    places = {f"XDG_{name}_HOME": str(clone.home / f".{name.lower()}") for name in ("CONFIG", "DATA", "CACHE")}
    server = CodeServer(clone.home / f"of-{name}", {}, {**clone.environment(), **places, "PYTHONPATH": ""})
    program = clone.programs / name
    program.write_text(f'#!/bin/sh\nexec {" ".join(server.command())} "$@"\n')
    program.chmod(0o755)
    return server


def attach(clone: FreshClone, file: Path) -> Any:
    """Start this user's Neovim with the file open."""
    outer = dict(os.environ)
    os.environ.clear()
    os.environ.update(clone.environment())
    try:
        return pynvim.attach("child", argv=[str(NVIM), "--embed", "--headless", str(file)])
    finally:
        os.environ.clear()
        os.environ.update(outer)


def close(nvim: Any) -> None:
    with contextlib.suppress(OSError, EOFError):  # Neovim leaves without a goodbye.
        nvim.command("qall!")
    nvim.close()


def ghost_within(nvim: Any, seconds: float) -> str:
    """Return the suggestion as soon as one is shown; empty if none is within these seconds."""
    deadline = time.monotonic() + seconds
    while not (ghost := nvim.exec_lua(GHOST)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return ghost or ""


def wait(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)
    return seen


def tell(editor: str, clone: FreshClone) -> None:
    """Say what a user had to do; fails if that is too much."""
    *commands, last = clone.seconds
    times = ", ".join(f"{seconds:.0f} s" for seconds in commands)
    work = f"{clone.computed:.0f} s of processor time, the rest waits for downloads and for the machine"
    print(f"\n{editor}: {len(clone.typed)} commands typed ({times}: {work}), then {last:.0f} s to the first suggestion")
    assert len(clone.typed) <= MOST_COMMANDS
