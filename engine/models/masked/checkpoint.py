"""A released checkpoint's folder: its JSON files, what a user notes beside them, and its tensors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import attrs
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import ModelError
from engine.models.masked.kind import JsonObject

NOTES = "midspan.json"
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


@attrs.frozen
class Notes:
    """midspan.json, which a user may put beside a checkpoint: it overrules what the checkpoint's own files say."""

    family: str = ""
    name: str = ""
    licence: str = ""
    context_tokens: int | None = None
    mask_id: int | None = None
    end_id: int | None = None
    begin_id: int | None = None
    expand_id: int | None = None


@attrs.frozen
class Checkpoint:
    """The folder with what its files say; {} for a file that is not there."""

    folder: Path
    config: JsonObject
    generation: JsonObject
    tokenizer: JsonObject
    notes: Notes

    @classmethod
    def of(cls, folder: Path, config: object) -> Checkpoint:
        """Read the files beside config.json. Raises ModelError for one that is damaged."""
        if not isinstance(config, dict):
            raise ModelError(f"{folder / 'config.json'} holds no JSON object; install the model again")
        generation, tokenizer = (read_object(folder / f"{name}_config.json") for name in ("generation", "tokenizer"))
        return cls(folder, config, generation, tokenizer, _notes(folder / NOTES))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield every tensor with its released name. Raises ModelError where the weights are missing or damaged."""
        for path in self._shards():
            try:
                with safe_open(path, framework="pt") as file:
                    for name in file.keys():  # noqa: SIM118 - it is no dict
                        yield name, file.get_tensor(name)
            except FileNotFoundError:
                raise ModelError(f"the model in {self.folder} lacks {path.name}; install it again") from None
            except (SafetensorError, OSError) as error:
                raise ModelError(f"the weights in {path} are damaged ({_line(error)}); install them again") from None

    def _shards(self) -> list[Path]:
        if not (self.folder / _INDEX).exists():
            if not (self.folder / _WEIGHTS).exists() and any(self.folder.glob("*.bin")):
                raise ModelError(f"the weights in {self.folder} are pickled (.bin); only safetensors are read")
            return [self.folder / _WEIGHTS]
        shards = read_object(self.folder / _INDEX).get("weight_map")
        names = set(shards.values()) if isinstance(shards, dict) else set()
        if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise ModelError(f"{self.folder / _INDEX} names no files in this folder; install the model again")
        return [self.folder / name for name in sorted(names)]


def read_object(path: Path) -> JsonObject:
    """Return the JSON object in a file, {} where there is none. Raises ModelError for anything else."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is not valid JSON: {_line(error)}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds no JSON object")
    return found


def _notes(path: Path) -> Notes:
    found = read_object(path)
    known = {field.name: str if field.default == "" else int for field in attrs.fields(Notes)}
    for key, value in found.items():
        if key not in known:
            raise ModelError(f"{path} has an unknown key {key!r}; it may have {', '.join(known)}")
        wanted = known[key]
        if type(value) is not wanted:
            raise ModelError(f"{path} says {key} {value!r}; a value of type {wanted.__name__} is needed")
    return Notes(**found)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
