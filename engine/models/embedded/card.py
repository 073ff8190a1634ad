"""config.json of an embedded model."""

import json

import attrs

from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.shape import Shape

FAMILY = "midspan"
"""What config.json calls this kind of model."""


@attrs.frozen
class Card:
    """The fields of config.json."""

    family: str
    name: str
    licence: str
    shape: Shape
    marks: SpecialTokens
    below_tokens: int


def config_of(card: Card) -> str:
    """Return the text of config.json for a card."""
    return json.dumps(attrs.asdict(card), indent=2) + "\n"
