"""How much a model is given to read, by the length of its window."""

from engine.protocol.messages import ModelInfo
from lsp_server.hole.window import NEAR, ContextBudget

CHARS_A_TOKEN = 3
"""Code has 3 to 4 characters a token in the vocabularies of large models; what is too much is cut by the engine."""
MOST_RELATED_CHARS = 48_000
"""Of other files. They are read once, not with every key; but a first reading should not take seconds."""
_MOST_CHARS = 900_000
"""Of a prefix; the engine takes no more than a million characters."""


def context_budget_of(model: ModelInfo, tokens: int = 0) -> ContextBudget:
    """Return what a model should be given; `tokens` is the user's own limit, 0 for what the model says.

    A model that has no long window gets what it always got, and no other files.
    """
    known = model.reading_tokens or model.context_tokens
    chars = CHARS_A_TOKEN * (min(tokens, known) if tokens else known)
    if chars <= NEAR.prefix + NEAR.suffix:
        return NEAR
    related = min(chars // 4, MOST_RELATED_CHARS)
    own = chars - related
    return ContextBudget(min(own * 3 // 4, _MOST_CHARS), min(own // 4, _MOST_CHARS), related)
