"""Where setup takes what it installs from: a clone, the folder of a wheel, or the installed package."""

import json
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from engine.errors import MidspanError

_ROOT = Path(__file__).parents[3]
EXTENSION_FILE = "midspan.vsix"


def server_program() -> Path:
    """Return the path of this installation's midspan-lsp. Raises MidspanError if it is missing."""
    name = "midspan-lsp.exe" if sys.platform == "win32" else "midspan-lsp"
    program = Path(sysconfig.get_path("scripts")) / name
    if not program.exists():
        raise MidspanError(f"{program} is missing; install Midspan again")
    return program


def neovim_plugin() -> Path:
    """Return the folder of the Neovim plugin: a clone's own, or the copy in the wheel. Raises MidspanError."""
    for folder in (_ROOT / "editors" / "neovim", Path(__file__).parent / "neovim"):
        if (folder / "lua" / "midspan" / "init.lua").exists():
            return folder
    raise MidspanError("this installation has no Neovim plugin; install a wheel from `make dist`, or the clone")


def vscode_extension() -> Path:
    """Return the .vsix that `make dist` has built. Raises MidspanError if it is not there."""
    places = [folder / EXTENSION_FILE for folder in _dist_folders()]
    for path in places:
        if path.exists():
            return path
    looked = f" (looked at {', '.join(map(str, places))})" if places else ""
    raise MidspanError(f"{EXTENSION_FILE} is missing{looked}; run `make dist` in a clone of Midspan, then setup again")


def _dist_folders() -> list[Path]:
    """Return where a .vsix may be: in the clone that this code is of or was installed from, or beside its wheel."""
    folders = [_ROOT / "dist"] if (_ROOT / "editors" / "vscode" / "package.json").exists() else []
    origin = _installed_from()
    if origin is not None:
        folders.append(origin.parent if origin.suffix == ".whl" else origin / "dist")
    return list(dict.fromkeys(folders))


def _installed_from() -> Path | None:
    """Return the folder or the wheel that Midspan was installed from, as its direct_url.json says (PEP 610)."""
    try:
        text = metadata.distribution("midspan").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    url = urlsplit(json.loads(text)["url"]) if text else None
    return Path(url2pathname(url.path)) if url is not None and url.scheme == "file" else None
