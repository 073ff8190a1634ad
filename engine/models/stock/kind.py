"""What tells one masked family from another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

JsonObject = dict[str, Any]


@attrs.frozen
class MaskedTokens:
    """The ids of the tokens that are no text. `padding` ends a fill as `end` does.

    `begin` stands before the prefix, and `end` then behind the suffix. `expand` stands for two masks; a family that has
    it takes `end` in a canvas for "no token here".
    """

    mask: int
    end: int
    padding: tuple[int, ...] = ()
    begin: int | None = None
    expand: int | None = None


@attrs.frozen
class Stock:
    """A stock architecture of transformers ("Qwen2", "Llama", ...) and the fields of its config."""

    architecture: str
    fields: JsonObject


@attrs.frozen
class Kind:
    """A masked family.

    `model_types` are those that its config.json may say. `shifted`: the row of a position predicts the token after it,
    as in the left-to-right parent. `marks` are taken where the checkpoint's own files name no ids. `stock` turns
    config.json into a stock config; `rename` turns the name of a tensor into the stock one. `context_tokens` is the
    window it was trained with, where config.json says more.
    """

    name: str
    model_types: tuple[str, ...]
    licence: str
    shifted: bool
    marks: MaskedTokens
    stock: Callable[[JsonObject], Stock]
    rename: Callable[[str], str] = str
    context_tokens: int | None = None
