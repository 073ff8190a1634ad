"""How much text a model gets to read around a hole, by the length of its context."""

import attrs

from engine.protocol.messages import ModelInfo

_CHARACTERS_A_TOKEN = 3
"""Large vocabularies have 3 to 4 characters of code in a token. The engine cuts what is too long."""
_MAX_RELATED_CHARACTERS = 48_000
"""Of other files. The engine reads them only once, but that first reading should not take seconds."""
_MAX_CHARACTERS = 900_000
"""Of a prefix. The engine accepts at most a million characters."""


@attrs.frozen
class ContextBudget:
    """How many characters the model sees before the hole, below the hole's line, and of other files."""

    prefix: int
    suffix: int
    related: int = 0

    @property
    def stride(self) -> int:
        """The steps in which the left edge of the prefix moves, in characters."""
        return self.prefix // 3


NEAR = ContextBudget(6000, 3000)
"""For models with a short context, which read less than that."""


def context_budget_of(model: ModelInfo, tokens: int = 0) -> ContextBudget:
    """Return the budget for a model; `tokens` is the user's own limit, 0 for no limit.

    A model with a short context gets NEAR, and no other files.
    """
    readable = model.reading_tokens or model.context_tokens
    characters = _CHARACTERS_A_TOKEN * (min(tokens, readable) if tokens else readable)
    if characters <= NEAR.prefix + NEAR.suffix:
        return NEAR
    related = min(characters // 4, _MAX_RELATED_CHARACTERS)
    own_file = characters - related
    return ContextBudget(min(own_file * 3 // 4, _MAX_CHARACTERS), min(own_file // 4, _MAX_CHARACTERS), related)
