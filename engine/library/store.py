"""The pulled models, and which model is the default. Does not import torch.

Each pulled model has a folder with a record of its files and their source. The default is the embedded one, until the
user chooses another with `midspan models use`.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import cattrs

from engine.errors import ModelError
from engine.folders import config_folder, models_folder
from engine.json_file import read_json, write_config
from engine.library.gguf_file import is_gguf
from engine.library.packed_weights import packed_files
from engine.whole_files import write_whole

RECORD = "midspan-model.json"
PARTIAL = ".partial"
NAME = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*(?<!\.partial)")
_READ_BYTES = 4 * 1024 * 1024
_converter = cattrs.Converter(forbid_extra_keys=False)


@attrs.frozen
class StoredFile:
    """A file of a model: its name without a folder, its size in bytes and its sha256 in hex."""

    name: str
    size: int
    sha256: str


@attrs.frozen
class ModelRecord:
    """The content of midspan-model.json in a pulled model's folder.

    `revision` was requested, and `commit` is what the hub resolved it to. `accepted` is true if the user accepted a
    licence that is not free.
    """

    name: str
    hub: str
    revision: str
    commit: str
    licence: str
    accepted: bool = False
    files: tuple[StoredFile, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def write(self, path: Path) -> None:
        """Write the record to `path`, completely or not at all. Raises OSError."""
        write_whole(path, f"{json.dumps(attrs.asdict(self), indent=2)}\n".encode())


def read_record(path: Path) -> ModelRecord | None:
    """Return the record in the file `path`; None if there is no file. Raises ModelError when it is damaged."""
    try:
        return _converter.structure(read_json(path), ModelRecord)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError, cattrs.BaseValidationError) as error:
        raise ModelError(
            f"{path} cannot be read ({type(error).__name__}); remove the model and pull it again"
        ) from None


def folder_for(name: str) -> Path:
    """Return the folder of the model `name`, which need not exist. Raises ModelError if the name is not valid."""
    if not NAME.fullmatch(name):
        raise ModelError(f"{name!r} is not a model's name; `midspan models list` shows the names")
    return models_folder() / name


def is_pulled(name: str) -> bool:
    """Whether the model `name` was pulled completely. `check` tells whether its files are still complete."""
    return bool(NAME.fullmatch(name)) and (folder_for(name) / RECORD).is_file()


def partial_folder(name: str) -> Path:
    """Return the folder for the files of a pull that is not complete."""
    folder = folder_for(name)
    return folder.with_name(folder.name + PARTIAL)


def pulled_names() -> list[str]:
    """Return the names of all pulled models."""
    try:
        return sorted(folder.name for folder in models_folder().iterdir() if is_pulled(folder.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def check(folder: Path, record: ModelRecord) -> None:
    """Compare the sizes of the files in `folder` with the record. Raises ModelError for the first that differs."""
    for file in record.files:
        path = folder / file.name
        size = path.stat().st_size if path.is_file() else None
        if size != file.size:
            problem = "is missing" if size is None else f"has {size} bytes instead of {file.size}"
            raise ModelError(f"{path} {problem}; {_pull_again(record)}")


def verify(folder: Path, record: ModelRecord, on_bytes: Callable[[int], None]) -> None:
    """Compare the sha256 of the files in `folder` with the record. Raises ModelError for the first that differs.

    `on_bytes` is called with the number of bytes after each block that was read.
    """
    check(folder, record)
    for file in record.files:
        if sha256_of(folder / file.name, on_bytes) != file.sha256:
            raise ModelError(f"{folder / file.name} is not what was pulled: its sha256 differs; {_pull_again(record)}")


def sha256_of(path: Path, on_bytes: Callable[[int], None] = lambda _: None) -> str:
    """Return the sha256 of a file in hex. Raises ModelError when the file cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(_READ_BYTES):
                digest.update(block)
                on_bytes(len(block))
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None
    return digest.hexdigest()


def folders_of(name: str) -> list[Path]:
    """Return the folders of the model `name` and of an incomplete pull. Raises ModelError if there are none."""
    folders = [folder for folder in (folder_for(name), partial_folder(name)) if folder.exists() or folder.is_symlink()]
    if not folders:
        raise ModelError(f"the model {name} is not here: there is no folder {folder_for(name)}")
    return folders


def remove(name: str) -> int:
    """Remove the model `name` and the files of an incomplete pull. Return the number of bytes that this frees.

    Raises ModelError when there is nothing to remove, and for a link, because Midspan makes only folders.
    """
    freed = 0
    for folder in folders_of(name):
        if folder.is_symlink() or not folder.is_dir():
            raise ModelError(f"{folder} is not a folder that Midspan made; remove it by hand")
        files = list(folder.iterdir())
        packed = packed_files(folder, *files)
        freed += sum(path.lstat().st_size for path in [*files, *packed])
        try:
            for path in packed:
                path.unlink(missing_ok=True)
            # The record goes first, so that an interrupted removal does not leave a folder that looks like a model.
            (folder / RECORD).unlink(missing_ok=True)
            shutil.rmtree(folder)
        except OSError as error:
            raise ModelError(f"cannot remove {folder}: {error.strerror}") from None
    return freed


def _pull_again(record: ModelRecord) -> str:
    return f"midspan models remove {record.name}, then midspan models pull {record.name}"


EMBEDDED = "embedded"
DEFAULT = "default"
"""The name of the chosen model in settings and options."""
_FILE = "model.json"


@attrs.frozen
class ChosenModel:
    """The model to use: a name or the path of a folder.

    If the user's choice is not available, `problem` says why in one line.
    """

    model: str
    problem: str = ""


def chosen_model() -> ChosenModel:
    """Return the chosen model, or the embedded one if the chosen one is gone. Never raises."""
    return _chosen(_FILE, EMBEDDED, _REMEDY)


def choose(model: str) -> None:
    """Make `model` the default: "embedded", a pulled model's name or an absolute path. Raises ModelError."""
    write_config(config_folder() / _FILE, {"model": model})


NO_MODEL = "none"
"""The name of no model, where one can be chosen for edits."""
_EDITS_FILE = "edits-model.json"
_NO_EDITS = "there is none for edits now; choose again with: midspan models use --edits NAME"


def chosen_for_edits() -> ChosenModel:
    """Return the model that predicts edits: NO_MODEL unless the user chose one that is here. Never raises."""
    return _chosen(_EDITS_FILE, NO_MODEL, _NO_EDITS)


def choose_for_edits(model: str) -> None:
    """Make `model` the one for edits: NO_MODEL, a pulled model's name or an absolute path. Raises ModelError."""
    write_config(config_folder() / _EDITS_FILE, {"model": model})


def _chosen(file: str, without: str, remedy: str) -> ChosenModel:
    """Return what a file of the configuration chooses, `without` if that is nothing. Never raises."""
    path = config_folder() / file
    try:
        model = read_json(path)["model"]
    except FileNotFoundError:
        return ChosenModel(without)
    except (OSError, ValueError, TypeError, KeyError):
        return ChosenModel(without, f"{path} cannot be read; {remedy}")
    if model == without or (isinstance(model, str) and _is_available(model)):
        return ChosenModel(model)
    return ChosenModel(without, f"the chosen model {model} is not here any more; {remedy}")


def path_of(model: str) -> Path | None:
    """Return the path that a user gave for a model; None for a name.

    A name without a slash is never a path: the current folder may be a stranger's, and have a folder of that name.
    """
    separators = {"/", os.sep}
    if any(separator in model for separator in separators) or model in (".", ".."):
        return Path(model).expanduser()
    return None


def _is_available(model: str) -> bool:
    if is_pulled(model):
        return True
    path = Path(model)
    return path.is_absolute() and ((path / "config.json").is_file() or is_gguf(path))


_REMEDY = "the embedded model is used; choose again with: midspan models use NAME"
