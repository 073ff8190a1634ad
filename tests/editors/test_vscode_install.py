"""VS Code without a language server: where the extension looks for one, and how a user gets one."""

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from code_server import ROOT, CodeServer, package_extension, what_is_missing
from support.lsp_editor import engine_home
from vscode_window import window_of
from workbench import CHOICE, STATUS, Workbench, eventually

MISSING = what_is_missing()
BASE = {
    "midspan.model": "embedded",
    "midspan.idleMinutes": 10,
    "midspan.server.path": "",
    "midspan.server.package": "",
}

pytestmark = [pytest.mark.skipif(MISSING is not None, reason=str(MISSING)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Midspan as a wheel; built from a copy, as setuptools leaves its marks where it builds."""
    source, wheels = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    for name in ("engine", "lsp_server"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    building = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
    subprocess.run([sys.executable, *building, str(source)], check=True)
    return next(wheels.glob("*.whl"))


@pytest.fixture(scope="module")
def window(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A window of the extension that carries the wheel. At first the workspace has an environment with Midspan."""
    with engine_home(tmp_path_factory.mktemp("run"), Path("embedded")):
        folder = tmp_path_factory.mktemp("vscode")
        server = CodeServer(folder, BASE, _environment(folder))
        server.folder.mkdir()
        environment_of(server).symlink_to(sys.prefix)
        carrying = Path(shutil.copy(package_extension(), folder / "midspan.vsix"))
        with zipfile.ZipFile(carrying, "a") as vsix:
            vsix.write(wheel, f"extension/server/{wheel.name}")
        with window_of(server, carrying) as workbench:
            yield workbench


@pytest.fixture
def without_server(vscode: Workbench) -> Workbench:
    """The window, where no server can be found."""
    environment_of(vscode.server).unlink(missing_ok=True)
    local_program(vscode.server).unlink(missing_ok=True)
    find_again(vscode, "error")
    return vscode


def test_the_workspaces_environment_comes_first_and_the_path_next(vscode: Workbench) -> None:
    assert str(environment_of(vscode.server)) in running(vscode)
    environment_of(vscode.server).unlink()
    local_program(vscode.server).parent.mkdir(parents=True)
    local_program(vscode.server).symlink_to(Path(sys.prefix) / "bin" / "midspan-lsp")
    find_again(vscode, "ready")
    assert str(local_program(vscode.server)) in running(vscode)
    vscode.command("Midspan: Choose the Server")
    eventually(partial(is_offered, vscode, "~/.local/bin"), "where the server was found")
    assert not is_offered(vscode, "the PATH")
    vscode.press("Escape")


def test_the_red_status_item_says_what_is_wrong_and_what_to_do(without_server: Workbench) -> None:
    without_server.command("Notifications: Clear All Notifications")
    assert [text.strip() for text in without_server.texts(STATUS)] == ["Midspan: install the server"]
    said = status(without_server)
    assert "Nothing is suggested: the language server is not installed here." in said
    assert "Click to install it, or to choose one that you have." in said


def test_the_red_status_item_lets_the_user_choose_a_program(without_server: Workbench) -> None:
    mend(without_server, "Choose a Server")
    choose(without_server, "Another one")
    eventually(partial(is_offered, without_server, ".."), "the files in the dialog")
    program = Path(sys.prefix) / "bin" / "midspan-lsp"
    without_server.press("Control+A")
    without_server.type(str(program))
    without_server.press("Enter")
    without_server.wait_for_status("ready")
    assert str(program) in running(without_server)
    without_server.server.configure({})
    without_server.wait_for_status("error")


def test_what_pip_says_is_shown_and_nothing_half_done_is_left(without_server: Workbench) -> None:
    without_server.server.configure({"midspan.server.package": "no-such-package-of-midspan"})
    mend(without_server, "Install the Server")
    said = "Midspan: No matching distribution found for no-such-package-of-midspan"
    eventually(lambda: said in without_server.notifications(), "pip's own error")
    assert not private_environment(without_server.server)
    without_server.server.configure({})


def test_an_installation_can_be_cancelled(without_server: Workbench) -> None:
    mend(without_server, "Install the Server")
    eventually(lambda: without_server.shows("starting"), "an item that says that something goes on")
    without_server.press_button("Cancel")
    eventually(lambda: "Midspan: it was cancelled" in without_server.notifications(), "the end of the installation")
    assert not private_environment(without_server.server)
    assert without_server.shows("error")


def test_a_server_that_is_missing_is_installed_from_the_extension(without_server: Workbench) -> None:
    mend(without_server, "Install the Server")
    without_server.wait_for_status("ready")
    (interpreter,) = private_environment(without_server.server)
    assert str(interpreter) in running(without_server)
    assert list(interpreter.parents[1].rglob("site-packages/lsp_server/__main__.py"))


def mend(vscode: Workbench, choice: str) -> None:
    """Click the red status item, and choose what it offers."""
    vscode.ask("click", selector=STATUS)
    for offered in ("Install the Server", "Choose a Server", "Show Log"):
        eventually(partial(is_offered, vscode, offered), offered)
    choose(vscode, choice)


def is_offered(vscode: Workbench, choice: str) -> bool:
    return any(choice in row for row in vscode.texts(CHOICE))


def choose(vscode: Workbench, choice: str) -> None:
    eventually(partial(is_offered, vscode, choice), choice)
    vscode.ask("click", selector=f'{CHOICE}:has-text("{choice}")')


def private_environment(server: CodeServer) -> list[Path]:
    """Return the interpreter of the extension's own environment, if it is there."""
    return list((server.root / "data").rglob("globalStorage/midspan.midspan/server/bin/python"))


def environment_of(server: CodeServer) -> Path:
    return server.folder / ".venv"


def local_program(server: CodeServer) -> Path:
    return server.root / "home" / ".local" / "bin" / "midspan-lsp"


def find_again(vscode: Workbench, state: str) -> None:
    """Have the extension look for a server again, by a setting that it watches."""
    vscode.server.configure({"midspan.server.path": "/no/such/midspan-lsp"})
    vscode.wait_for_status("error")
    vscode.command("Notifications: Clear All Notifications")
    vscode.server.configure({})
    eventually(lambda: vscode.shows(state) and "no such program" not in status(vscode), f"the status {state}")


def status(vscode: Workbench) -> str:
    return str(vscode.ask("attribute", selector=STATUS, name="aria-label"))


def running(vscode: Workbench) -> str:
    """Return the command line of the language server that runs."""
    log = f"{vscode.server.root / 'home'}"
    servers = [process for process in psutil.process_iter(["cmdline", "environ"]) if is_server(process, log)]
    return "\n".join(" ".join(process.info["cmdline"]) for process in servers)


def is_server(process: psutil.Process, home: str) -> bool:
    cmdline = process.info["cmdline"] or []
    named = "lsp_server" in cmdline or any(part.endswith("midspan-lsp") for part in cmdline)
    return named and (process.info["environ"] or {}).get("HOME") == home


def _environment(folder: Path) -> dict[str, str]:
    """The installation is real, but the packages that Midspan needs are those of this environment."""
    packages = folder / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "midspan" not in path.name and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    return {
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": str(packages),
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder / "home"),
    }
