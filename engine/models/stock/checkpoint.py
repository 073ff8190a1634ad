"""A released checkpoint's folder: its JSON files, and what a user notes beside them."""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from engine.errors import ModelError
from engine.models.stock.kind import JsonObject

NOTES = "midspan.json"


@attrs.frozen
class Notes:
    """midspan.json, which a user may put beside a checkpoint: it overrules what the checkpoint's own files say."""

    family: str = ""
    name: str = ""
    licence: str = ""
    drafter: str = ""
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
