"""How much a pattern says. One that says too little fits nearly everywhere."""

from collections.abc import Sequence

from lsp_server.refactor.pattern import Hole, Leaf, Pattern, items
from lsp_server.refactor.variables import SELF

ENOUGH = 2
"""The least weight of a pattern. A lower one, such as `return $X`, fits nearly everywhere."""


def weight(patterns: Sequence[Pattern]) -> int:
    """Return how much a pattern says: 2 for a name or literal, 1 for a keyword, operator or repeated variable."""
    total, seen = 0, set[str]()
    for item in items(patterns):
        if isinstance(item, Leaf) and item.text not in SELF:
            total += 2 if item.named else int(item.text.isalpha() or item.text[:1] in "=!<>+-*/%&|?@^~")
        elif isinstance(item, Hole):
            total += int(item.name in seen) + 2 * bool(item.prefix)
            seen.add(item.name)
    return total


def is_constant(patterns: Sequence[Pattern]) -> bool:
    """Return whether a pattern has no variables, and more than one token."""
    found = list(items(patterns))
    return len(found) > 1 and all(isinstance(item, Leaf) for item in found)


def has_anchor(patterns: Sequence[Pattern]) -> bool:
    """Return whether a pattern has a name, so that names which are defined in it may vary."""
    return any(
        (isinstance(item, Leaf) and item.named and item.text not in SELF and item.kind not in ("none", "true", "false"))
        or (isinstance(item, Hole) and item.prefix)
        for item in items(patterns)
    )
