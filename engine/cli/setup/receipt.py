"""What setup has done on this machine, so that it can undo that and nothing else. It is a file in the data folder."""

import hashlib
import json
from pathlib import Path

import attrs
import cattrs

from engine.errors import MidspanError
from engine.folders import data_folder
from engine.whole_files import write_whole


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
        path.parent.mkdir(parents=True, exist_ok=True)
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
