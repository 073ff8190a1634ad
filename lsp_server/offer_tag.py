"""What each item carries: which offer it belongs to. Editors send it back with what they report about the item."""

from collections.abc import Mapping
from typing import get_args

import attrs
from lsprotocol import types

from engine.protocol.messages import SourceName

ACCEPTED = "midspan.accepted"


@attrs.frozen
class OfferTag:
    """The argument of the command midspan.accepted, which each item carries. It names the offer, and has no text.

    `start` is how many characters of the offer the user typed before the item; `characters` is the item's length.
    `source` is where most of its text came from. `confidence`, for an editor that shows it, is how likely the item is
    right, between 0 and 1; None for a text that is typed along.
    """

    offer: int
    language: str
    start: int
    characters: int
    source: SourceName = "model"
    confidence: float | None = None

    def command(self) -> types.Command:
        """Return the command that an editor runs when the user takes the item."""
        return types.Command("Count an accepted suggestion", ACCEPTED, arguments=[attrs.asdict(self)])


def read_tag(argument: object) -> OfferTag | None:
    """Return the tag in a command's argument, or None when the command is not ours."""
    if not isinstance(argument, Mapping) or not isinstance(argument.get("language"), str):
        return None
    numbers = [argument.get(name) for name in ("offer", "start", "characters")]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return None
    source: SourceName = next((name for name in get_args(SourceName) if name == argument.get("source")), "model")
    return OfferTag(argument["offer"], argument["language"], argument["start"], argument["characters"], source)
