"""The folder of a released checkpoint: its JSON files, and the notes that a user may add."""

from __future__ import annotations

from pathlib import Path

import attrs

from engine.errors import ModelError
from engine.json_file import read_json
from engine.models.stock.family import JsonObject

NOTES = "midspan.json"


@attrs.frozen
class Notes:
    """midspan.json, which a user may add to a checkpoint's folder. It overrides the checkpoint's own files."""

    family: str = ""
    name: str = ""
    licence: str = ""
    drafter: str = ""
    memory: str = ""
    context_tokens: int | None = None
    mask_id: int | None = None
    end_id: int | None = None
    begin_id: int | None = None
    expand_id: int | None = None


@attrs.frozen
class Checkpoint:
    """A folder and the contents of its JSON files; {} for a missing file."""

    folder: Path
    config: JsonObject
    generation: JsonObject
    tokenizer: JsonObject
    notes: Notes

    @classmethod
    def of(cls, folder: Path, config: object) -> Checkpoint:
        """Read the other JSON files of the folder. Raises ModelError for a damaged one."""
        if not isinstance(config, dict):
            raise ModelError(f"{folder / 'config.json'} holds no JSON object; install the model again")
        generation, tokenizer = (read_object(folder / f"{name}_config.json") for name in ("generation", "tokenizer"))
        return cls(folder, config, generation, tokenizer, _notes(folder / NOTES))


def read_object(path: Path) -> JsonObject:
    """Return the JSON object in a file, or {} if there is no file. Raises ModelError for any other content."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is not valid JSON: {_first_line(error)}") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds no JSON object")
    return content


def _notes(path: Path) -> Notes:
    content = read_object(path)
    types = {field.name: str if field.default == "" else int for field in attrs.fields(Notes)}
    for key, value in content.items():
        if key not in types:
            raise ModelError(f"{path} has an unknown key {key!r}; it may have {', '.join(types)}")
        if type(value) is not types[key]:
            raise ModelError(f"{path} says {key} {value!r}; a value of type {types[key].__name__} is needed")
    return Notes(**content)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
