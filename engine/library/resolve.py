"""From the name that a user gives a model to its folder or file. Does not import torch.

The GGUF files that Ollama and LM Studio keep in their usual folders have names too.
"""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from engine.bounds import MOST_MANIFEST_BYTES, MOST_OTHER_MODELS
from engine.errors import ModelError
from engine.folders import home
from engine.json_file import read_json
from engine.library import store
from engine.library.catalog import CatalogModel, catalog
from engine.library.gguf_file import is_gguf
from engine.library.store import DEFAULT, EMBEDDED, chosen_model

_MODEL = "application/vnd.ollama.image.model"


@attrs.frozen
class OtherModel:
    """A model of another program: the name that the program has for it, the program, and the file."""

    name: str
    program: str
    path: Path


def other_models() -> list[OtherModel]:
    """Return what Ollama and LM Studio have on this machine, by program and name. Never raises."""
    found = {model.path: model for folder in _ollama_folders() for model in _ollama(folder)}
    found |= {model.path: model for folder in _lm_studio_folders() for model in _lm_studio(folder)}
    return sorted(found.values(), key=lambda model: (model.program, model.name))


def elsewhere(name: str) -> Path | None:
    """Return the file of the model that another program calls `name`; None without such a model.

    Ollama's names may lack ":latest".
    """
    names = (name, f"{name}:latest")
    return next((model.path for model in other_models() if model.name in names), None)


def _ollama_folders() -> list[Path]:
    own = os.environ.get("OLLAMA_MODELS")
    folders = [*_at_home(".ollama/models"), Path("/usr/share/ollama/.ollama/models")]
    return [Path(own).expanduser()] if own else folders


def _lm_studio_folders() -> list[Path]:
    return _at_home(".lmstudio/models", ".cache/lm-studio/models")


def _at_home(*paths: str) -> list[Path]:
    at = home()
    return [at / path for path in paths] if at is not None else []


def _ollama(folder: Path) -> Iterator[OtherModel]:
    """Yield the models whose manifests are at manifests/REGISTRY/OWNER/NAME/TAG."""
    for manifest in _files(folder / "manifests", "*/*/*/*"):
        owner, name, tag = manifest.parts[-3:]
        digest = _digest(manifest)
        if digest is None or not is_gguf(path := folder / "blobs" / digest.replace(":", "-")):
            continue
        shown = name if owner == "library" else f"{owner}/{name}"
        yield OtherModel(f"{shown}:{tag}", "Ollama", path.resolve())


def _digest(manifest: Path) -> str | None:
    """Return the digest of the file with a manifest's weights; None for any other file."""
    try:
        layers = read_json(manifest, MOST_MANIFEST_BYTES)["layers"]
        digest = next(layer["digest"] for layer in layers if layer["mediaType"] == _MODEL)
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        return None
    kind, _, number = str(digest).partition(":")
    return f"{kind}:{number}" if kind == "sha256" and number.isalnum() else None


def _lm_studio(folder: Path) -> Iterator[OtherModel]:
    for path in _files(folder, "*/*/*.gguf"):
        if is_gguf(path) and not path.name.startswith("mmproj"):
            yield OtherModel(path.stem, "LM Studio", path.resolve())


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        found = (path for path in folder.glob(pattern) if path.is_file())
        return sorted(path for path, _ in zip(found, range(MOST_OTHER_MODELS), strict=False))
    except OSError:
        return []


EMBEDDED_FOLDER = Path(__file__).resolve().parent.parent / "weights"


def folder_of(model: str) -> Path:
    """Return the folder of a model: "embedded", "default", a pulled model's name, a path (`store.path_of`), or what
    another program has, tried in this order. A GGUF is a file, not a folder, also one that was pulled.

    Checks the sizes of a pulled model's files. Raises ModelError with what to do.
    """
    if model == DEFAULT:
        model = chosen_model().model
    if model == EMBEDDED:
        return EMBEDDED_FOLDER
    folder = store.folder_for(model) if store.is_pulled(model) else store.path_of(model)
    if folder is None or not folder.exists():
        folder = elsewhere(model) or folder
    if folder is None:
        raise ModelError(_not_found_line(model))
    if is_gguf(folder):
        return folder
    if not folder.is_dir():
        raise ModelError(_not_found_line(model))
    record = store.read_record(folder / store.RECORD)
    if record is not None:
        store.check(folder, record)
        if (known := catalog().get(record.name)) is not None and known.file:
            return folder / known.file
    return folder


def known_model(folder: Path) -> CatalogModel | None:
    """Return the catalog's entry of the model in `folder`; None if it was not pulled or has no entry.

    Raises ModelError when the folder's record is damaged.
    """
    if folder == EMBEDDED_FOLDER:
        return catalog()[EMBEDDED]
    record = store.read_record(folder / store.RECORD)
    return None if record is None else catalog().get(record.name)


def _not_found_line(model: str) -> str:
    if model in catalog():
        is_partial = store.partial_folder(model).is_dir()
        problem = "was pulled only in part; continue with" if is_partial else "is not here; get it with"
        return f"the model {model} {problem}: midspan models pull {model}"
    similar = difflib.get_close_matches(model.lower(), catalog(), n=3, cutoff=0.5)
    question = f"; did you mean {' or '.join(similar)}?" if similar else ""
    what = "nor a folder or GGUF" if store.path_of(model) else f"nor a path, such as .{os.sep}{model}"
    return f"no model {model!r}: it is neither a name that `midspan models list` shows, {what}{question}"
