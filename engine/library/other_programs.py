"""The GGUF files that Ollama and LM Studio keep in their usual folders. Does not import torch."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from engine.library.gguf_file import is_gguf

_MODEL = "application/vnd.ollama.image.model"
_MOST_MANIFEST_BYTES = 1 << 20
_MOST_FILES = 1000


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
    folders = [Path.home() / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")]
    return [Path(own).expanduser()] if own else folders


def _lm_studio_folders() -> list[Path]:
    return [Path.home() / ".lmstudio" / "models", Path.home() / ".cache" / "lm-studio" / "models"]


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
        if manifest.stat().st_size > _MOST_MANIFEST_BYTES:
            return None
        layers = json.loads(manifest.read_text("utf-8"))["layers"]
        digest = next(layer["digest"] for layer in layers if layer["mediaType"] == _MODEL)
    except (OSError, ValueError, LookupError, TypeError, StopIteration, RecursionError):
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
        return sorted(path for path, _ in zip(found, range(_MOST_FILES), strict=False))
    except OSError:
        return []
