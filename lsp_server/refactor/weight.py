"""How much a pattern says. One that says too little fits nearly everywhere."""

from collections.abc import Sequence

from lsp_server.refactor.pattern import Branch, Hole, Leaf, Pattern, items
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


def _is_plain_type(pattern: Branch) -> bool:
    names = [item for item in items((pattern,)) if isinstance(item, Leaf) and item.named]
    return pattern.kind in ("type", "type_annotation") and len(names) <= 1


def has_anchor(patterns: Sequence[Pattern]) -> bool:
    """Return whether a pattern has a name, so that names which are defined in it may vary."""
    for pattern in patterns:
        if isinstance(pattern, Branch):
            # A type such as `str` is everywhere; a parameter whose default is None is not.
            is_default = "default" in pattern.kind and any(
                isinstance(one, Leaf) and one.named for one in pattern.children
            )
            if is_default or (not _is_plain_type(pattern) and has_anchor(pattern.children)):
                return True
        elif isinstance(pattern, Hole):
            if pattern.prefix:
                return True
        elif _is_telling(pattern):
            return True
    return False


def _is_telling(pattern: Pattern) -> bool:
    """Return whether a pattern is a token that says something: no None, True or self."""
    is_named = isinstance(pattern, Leaf) and pattern.named and pattern.text not in SELF
    return is_named and isinstance(pattern, Leaf) and pattern.kind not in ("none", "true", "false")
