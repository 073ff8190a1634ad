"""The editors that setup knows: which are on this machine, what it would do for each, and doing it."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import attrs

from engine.cli.setup import deeds
from engine.cli.setup.deeds import Deeds
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


NEOVIM_INSTALLED = """\
-- Written by `midspan setup`: what Midspan starts with. Your own setup() in init.lua changes what it names.
return {{
  cmd = {{ {server} }},
  keymaps = {{
    accept = '<Tab>', accept_word = '<M-Right>', accept_line = '<M-End>', dismiss = '<M-e>',
    trigger = '<M-Bslash>', next = '<M-]>', previous = '<M-[>', why = '<M-?>',
  }},
}}
"""
NEOVIM_LAZY = "lazy.nvim loads no packages; add this to its plugins: {{ dir = {target}, lazy = false }}"
HELIX_SERVER = """# Written by `midspan setup`, to the end of this file.
[language-server.midspan]
command = {server}
config = {{ completionItems = true }}
"""
HELIX_LANGUAGES = (
    "python",
    "typescript",
    "javascript",
    "go",
    "rust",
    "java",
    "c",
    "cpp",
    "c-sharp",
    "ruby",
    "php",
    "bash",
)
EMACS = """;;; midspan.el --- Written by `midspan setup`  -*- lexical-binding: t -*-
(with-eval-after-load 'lsp-mode
  (require 'lsp-inline-completion nil t)
  (lsp-register-client
   (make-lsp-client :new-connection (lsp-stdio-connection '({server}))
                    :activation-fn (lambda (&rest _) t)
                    :server-id 'midspan
                    :add-on? t))
  (global-set-key (kbd "C-c m") 'lsp-inline-completion-display))
;;; midspan.el ends here
"""


def helix_language(name: str, servers: list[str]) -> str:
    """Return the entry of languages.toml that gives a language its `servers` and midspan."""
    listed = ", ".join(quoted(server) for server in [*servers, "midspan"])
    return f"\n[[language]]\nname = {quoted(name)}\nlanguage-servers = [{listed}]\n"


def quoted(text: str) -> str:
    """Return a path or a name as a string of Lua, TOML and Emacs Lisp, which quote it as JSON does."""
    return json.dumps(text, ensure_ascii=False)


OLDEST_NEOVIM = (0, 12)


@attrs.frozen
class Editor:
    """An editor that was found. `plan` says what would be done; `install` does it, knowing what was done before.

    `problem` says why nothing can be done; empty if it can. `then` is what is left to the user.
    """

    name: str
    title: str
    plan: str
    install: Callable[[Deeds], Deeds]
    problem: str = ""
    then: str = ""


# By name: the title, the programs, and where these are if they are not on the PATH.
_VSCODE_LIKE = {
    "vscode": ("VS Code", ("code",), ("/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",)),
    "vscodium": ("VSCodium", ("codium", "vscodium"), ("/Applications/VSCodium.app/Contents/Resources/app/bin/codium",)),
    "code-server": ("code-server", ("code-server",), ()),
    "cursor": ("Cursor", ("cursor",), ("/Applications/Cursor.app/Contents/Resources/app/bin/cursor",)),
}
NAMES = (*_VSCODE_LIKE, "neovim", "helix", "emacs")
_PROGRAMS = {"neovim": "nvim", "helix": "hx"}


def why_missing(name: str) -> str:
    """Return that an editor was not found, and what to do."""
    program = _PROGRAMS.get(name, name)
    if name in _VSCODE_LIKE:
        return f"{name} is not on the PATH: add its folder to it, or install dist/midspan.vsix from inside the editor"
    what = "install Neovim 0.12 or newer" if name == "neovim" else "install it"
    return f"{name} is not on the PATH: {what}, or name its folder: PATH=FOLDER:$PATH midspan setup {name}" + (
        f" ({program} is sought)" if program != name else ""
    )


def editors_here() -> list[Editor]:
    """Return the editors on this machine that setup knows, in the order of NAMES."""
    found = [_vscode_like(name) for name in _VSCODE_LIKE]
    return [editor for editor in (*found, _neovim(), _helix(), _emacs()) if editor is not None]


def _vscode_like(name: str) -> Editor | None:
    title, programs, places = _VSCODE_LIKE[name]
    program = _first(programs, places)
    if program is None:
        return None
    try:
        vsix, problem = vscode_extension(), ""
    except MidspanError as error:
        vsix, problem = Path(), str(error)

    def install(earlier: Deeds) -> Deeds:
        is_new = deeds.install_extension(program, vsix)
        return Deeds(extension_of=program if is_new or earlier.extension_of else "")

    return Editor(name, title, f"install the extension {vsix} with {program}", install, problem)


def neovim_version(program: str) -> tuple[int, int]:
    """Return the version of Neovim. Raises MidspanError if it does not say one."""
    said = re.search(r"v(\d+)\.(\d+)", _output(program, "--version"))
    if said is None:
        raise MidspanError(f"{program} does not say its version; try `{program} --version`")
    return int(said[1]), int(said[2])


def _neovim() -> Editor | None:
    program = shutil.which("nvim")
    if program is None:
        return None
    try:
        version = neovim_version(program)
        data = _output(program, "--clean", "--headless", "+lua io.stdout:write(vim.fn.stdpath('data'))", "+qall")
        source, server = neovim_plugin(), quoted(str(server_program()))
    except MidspanError as error:
        return Editor("neovim", "Neovim", "", _nothing, problem=str(error))
    if version < OLDEST_NEOVIM:
        problem = f"{program} is version {version[0]}.{version[1]}; inline completion needs 0.12 or newer"
        return Editor("neovim", "Neovim", "", _nothing, problem)
    pack = Path(data.strip()) / "site" / "pack" / "midspan"
    target = pack / "start" / "midspan"

    def install(earlier: Deeds) -> Deeds:
        files = {target / path.relative_to(source): path.read_bytes() for path in source.rglob("*") if path.is_file()}
        files[target / "lua" / "midspan" / "installed.lua"] = NEOVIM_INSTALLED.format(server=server).encode()
        return Deeds(folder=str(pack), files=deeds.write_files(files, earlier))

    plan = f"write the plugin to {target}; <Tab> accepts a suggestion, <M-\\> asks, <M-?> says why there is none"
    then = NEOVIM_LAZY.format(target=quoted(str(target)))
    has_lazy = (Path(data.strip()) / "lazy" / "lazy.nvim").is_dir()
    return Editor("neovim", "Neovim", plan, install, then=then if has_lazy else "")


def _helix() -> Editor | None:
    program = _first(("hx", "helix"), ())
    if program is None:
        return None
    path = _config_home() / "helix" / "languages.toml"
    try:
        known = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        problem = f"{path} cannot be read: {error}"
        return Editor("helix", "Helix", "", _nothing, problem)
    has_own = "midspan" in known.get("language-server", {})
    named = {entry.get("name") for entry in known.get("language", [])}

    def install(earlier: Deeds) -> Deeds:
        if has_own:
            return earlier
        languages = [name for name in HELIX_LANGUAGES if name not in named]
        entries = [helix_language(name, _helix_servers(program, name)) for name in languages]
        text = HELIX_SERVER.format(server=quoted(str(server_program()))) + "".join(entries)
        return Deeds(added=[deeds.add_text(path, text)])

    plan = f"{path} names midspan already" if has_own else f"add midspan and its languages to {path}"
    clashes = sorted(named & set(HELIX_LANGUAGES)) if not has_own else []
    then = f'in {path}, add "midspan" to the language-servers of {", ".join(clashes)}' if clashes else ""
    return Editor("helix", "Helix", plan, install, then=then)


def _emacs() -> Editor | None:
    if shutil.which("emacs") is None:
        return None
    folder = Path.home() / ".emacs.d"
    if not folder.exists() and (_config_home() / "emacs").exists():
        folder = _config_home() / "emacs"
    path = folder / "midspan.el"

    def install(earlier: Deeds) -> Deeds:
        text = EMACS.format(server=quoted(str(server_program())))
        return Deeds(files=deeds.write_files({path: text.encode()}, earlier))

    return Editor("emacs", "Emacs", f"write {path}", install, then=f'add this to your init file: (load "{path}")')


def undo(done: Deeds) -> list[str]:
    """Undo what setup did for an editor. Returns a line for each thing that was changed since and is left."""
    left = [f"{file.path} was changed, so it is left" for file in deeds.remove_files(done.files)]
    kept = [added.path for added in done.added if not deeds.remove_text(added)]
    left += [f"the lines about midspan in {path} were changed, so they are left" for path in kept]
    if done.folder:
        deeds.remove_empty_folders(Path(done.folder))
    if done.extension_of:
        deeds.uninstall_extension(done.extension_of)
    return left


def _nothing(earlier: Deeds) -> Deeds:
    return earlier


def _first(programs: tuple[str, ...], places: tuple[str, ...]) -> str | None:
    return next((found for name in (*programs, *places) if (found := shutil.which(name))), None)


def _config_home() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _helix_servers(program: str, language: str) -> list[str]:
    """Return the servers that Helix has for a language. Naming ours replaces its list, so these are named again."""
    try:
        health = _output(program, "--health", language)
    except MidspanError:
        return []
    plain = re.sub(r"\x1b\[[0-9;]*m", "", health)
    part = re.search(r"Configured language servers:\n((?:\s+\S.*\n)*)", plain)
    return re.findall(r"^\s+\S\s+([\w.-]+):", part[1], re.MULTILINE) if part else []


def _output(program: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MidspanError(f"{program} does not run ({type(error).__name__}); try `{program} --version`") from None
    return done.stdout
