"""The folder of a released checkpoint: its JSON files, the notes that a user may add, and the family that it is of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import attrs

from engine.errors import ModelError
from engine.fill.interface import MemoryUse
from engine.json_file import read_json
from engine.library.resolve import known_model

JsonObject = dict[str, Any]
OnStage = Callable[[str], None]
"""Gets a few words about how far loading is."""


@attrs.frozen
class MaskedTokens:
    """The ids of a masked model's special tokens. `padding` ends a fill as `end` does.

    With `begin`, a hole's prefix starts with `begin` and its suffix ends with `end`. With `expand`, a mask that becomes
    `expand` turns into two masks, and `end` in a canvas means "no token here" (DreamOn).
    """

    mask: int
    end: int
    padding: tuple[int, ...] = ()
    begin: int | None = None
    expand: int | None = None


@attrs.frozen
class Stock:
    """An architecture of transformers ("Qwen2", "Llama", ...) and the fields of its config."""

    architecture: str
    fields: JsonObject


@attrs.frozen
class ModelFamily:
    """Released models that are read in the same way.

    model_types: the values of "model_type" that their config.json may have
    shifted: the row of a position predicts the next token, as in the left-to-right model they were made from
    special_tokens: the ids to use if the checkpoint's own files name none
    stock: turns config.json into the config of a transformers architecture
    rename: turns the name of a tensor into the name that transformers has for it
    context_tokens: the window of the training, if config.json claims a larger one
    """

    name: str
    model_types: tuple[str, ...]
    licence: str
    shifted: bool
    special_tokens: MaskedTokens
    stock: Callable[[JsonObject], Stock]
    rename: Callable[[str], str] = str
    context_tokens: int | None = None


NOTES = "midspan.json"
LEAST_WINDOW = 64


@attrs.frozen
class Notes:
    """midspan.json, which a user may add to a checkpoint's folder. It overrides the checkpoint's own files."""

    family: str = ""
    name: str = ""
    licence: str = ""
    drafter: str = ""
    memory: str = ""
    adapter: str = ""
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

    def named(self, licence: str) -> tuple[str, str]:
        """Return the model's name and licence: `licence` where neither midspan.json nor the catalog says another."""
        known = known_model(self.folder)
        name, licence = (self.folder.name, licence) if known is None else (known.name, known.licence)
        return self.notes.name or name, self.notes.licence or licence

    def window(self, most: int, usual: int | None = None) -> int:
        """Return how many tokens are read: what midspan.json says, else `usual`, and `most` at most.

        Raises ModelError where these are too few.
        """
        window = min(most, self.notes.context_tokens or usual or most)
        if window < LEAST_WINDOW:
            raise ModelError(
                f"the model in {self.folder} has a window of {window} tokens; at least {LEAST_WINDOW} are needed"
            )
        return window


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


def memory_use_of(checkpoint: Checkpoint) -> MemoryUse:
    """Return what midspan.json of the checkpoint says as "memory"; by default "windows". Raises ModelError.

    The mixture is not the default: its mixing network was trained with the embedded model's predictions.
    """
    for use in get_args(MemoryUse):
        if use == (checkpoint.notes.memory or "windows"):
            found: MemoryUse = use
            return found
    raise ModelError(
        f"{checkpoint.folder / NOTES} says memory {checkpoint.notes.memory!r}; it can be "
        f"{', '.join(get_args(MemoryUse))}"
    )
