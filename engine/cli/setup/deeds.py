"""Doing and undoing: files written, lines added, extensions installed. What was changed since is left, and said.

What was done is kept in a file of the data folder, so that setup can undo that and nothing else.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs
import cattrs

from engine.errors import MidspanError
from engine.folders import data_folder
from engine.whole_files import make_folder, write_whole


@attrs.frozen
class WrittenFile:
    """A file that setup wrote. `digest` is the sha256 of its bytes."""

    path: str
    digest: str


@attrs.frozen
class AddedText:
    """Lines that setup added to the end of a file, which may have been missing before."""

    path: str
    text: str


@attrs.frozen
class Deeds:
    """What setup did for one editor: files in a `folder` of its own, lines, an extension installed by a program."""

    folder: str = ""
    files: list[WrittenFile] = attrs.field(factory=list)
    added: list[AddedText] = attrs.field(factory=list)
    extension_of: str = ""


@attrs.define
class Receipt:
    """The deeds of all editors, by the editor's name."""

    editors: dict[str, Deeds] = attrs.field(factory=dict)

    @classmethod
    def read(cls) -> "Receipt":
        """Read the receipt; empty if there is none. Raises MidspanError if it is damaged."""
        path = receipt_path()
        if not path.exists():
            return cls()
        try:
            return cattrs.structure(json.loads(path.read_text("utf-8")), cls)
        except (OSError, ValueError, cattrs.BaseValidationError) as error:
            problem = f"{path} cannot be read ({type(error).__name__}), so setup does not know what it did"
            raise MidspanError(f"{problem}; remove that file, and what it named by hand") from None

    def write(self) -> None:
        """Write the receipt, or remove it if nothing is left to undo."""
        path = receipt_path()
        if not self.editors:
            path.unlink(missing_ok=True)
            return
        make_folder(path.parent)
        write_whole(path, json.dumps(attrs.asdict(self), indent=1).encode())


def receipt_path() -> Path:
    """Return where the receipt is."""
    return data_folder() / "setup.json"


def digest_of(path: Path) -> str:
    """Return the sha256 of a file; empty if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


EXTENSION_ID = "midspan.midspan"
_SECONDS = 120


def write_files(files: Mapping[Path, bytes], earlier: Deeds) -> list[WrittenFile]:
    """Write `files`, and remove those of `earlier` that are no more.

    Raises MidspanError, before anything is written, if a file is there that setup did not write or that was changed.
    """
    known = {Path(file.path): file.digest for file in earlier.files}
    for path in files:
        if path.exists() and digest_of(path) != known.get(path):
            raise MidspanError(f"{path} is there and is not as setup wrote it; move it away, then run setup again")
    new = [path for path in files if not path.exists()]
    try:
        for path, content in files.items():
            make_folder(path.parent)
            write_whole(path, content)
    except OSError:
        # A later run would take these for files of the user's.
        for path in new:
            path.unlink(missing_ok=True)
        raise
    gone = [file for file in earlier.files if Path(file.path) not in files]
    remove_files(gone)
    return [WrittenFile(str(path), digest_of(path)) for path in files]


def remove_files(files: list[WrittenFile]) -> list[WrittenFile]:
    """Remove files. Returns those that were changed since, which are left."""
    changed = []
    for file in files:
        path = Path(file.path)
        # A link is none of ours: the user moved the file to where it leads.
        if path.is_symlink() or (path.exists() and digest_of(path) != file.digest):
            changed.append(file)
        else:
            path.unlink(missing_ok=True)
    return changed


def remove_empty_folders(folder: Path) -> None:
    """Remove the folders without a file, in `folder` and itself."""
    if not folder.is_dir():
        return
    for inner in sorted(folder.rglob("*"), key=lambda each: len(each.parts), reverse=True):
        if inner.is_dir() and not any(inner.iterdir()):
            inner.rmdir()
    if not any(folder.iterdir()):
        folder.rmdir()


def add_text(path: Path, text: str) -> AddedText:
    """Add `text` to the end of a file, with its line ends; it is made if it is missing. Returns what was added."""
    before = _read(path) if path.exists() else ""
    newline = "\r\n" if "\r\n" in before else "\n"
    added = (f"\n{text}" if before.strip() else text).replace("\n", newline)
    joint = "" if not before or before.endswith("\n") else newline
    make_folder(path.parent)
    write_whole(path, (before + joint + added).encode())
    return AddedText(str(path), added)


def remove_text(added: AddedText) -> bool:
    """Remove what was added. Returns False, and leaves the file, if those lines were changed since."""
    path = Path(added.path)
    if not path.exists():
        return True
    text = _read(path)
    if text.count(added.text) != 1:
        return False
    rest = text.replace(added.text, "")
    if rest.strip() or path.is_symlink():
        write_whole(path, rest.encode())
    else:
        path.unlink()
    return True


def _read(path: Path) -> str:
    """Return the text of a file, byte for byte: no line end is converted. Raises MidspanError if it is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise MidspanError(f"{path} is not UTF-8; convert it, then run setup again") from None


def install_extension(program: str, vsix: Path) -> bool:
    """Install the extension. Returns whether it was missing before. Raises MidspanError with the program's own line."""
    was_there = EXTENSION_ID in _ask(program, "--list-extensions").lower().split()
    _ask(program, "--install-extension", str(vsix), "--force")
    return not was_there


def uninstall_extension(program: str) -> None:
    """Uninstall the extension, if its editor is still there. Raises MidspanError with the program's own line."""
    if shutil.which(program) and EXTENSION_ID in _ask(program, "--list-extensions").lower().split():
        _ask(program, "--uninstall-extension", EXTENSION_ID)


def _ask(program: str, *arguments: str) -> str:
    try:
        # Without a terminal, so that no editor asks anything.
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env={**os.environ, "DONT_PROMPT_WSL_INSTALL": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MidspanError(f"{program} {arguments[0]} failed: {error}") from None
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise MidspanError(f"{program} {arguments[0]} failed: {said[-1].strip() if said else done.returncode}")
    return done.stdout
