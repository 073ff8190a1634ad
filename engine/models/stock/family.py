"""A family of released models: its config.json, its special tokens and its tensor names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

JsonObject = dict[str, Any]


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
