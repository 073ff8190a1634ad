"""Rules: a pattern of syntax trees, and a template that takes its place."""

from collections.abc import Iterator, Sequence

import attrs

from lsp_server.refactor.code.grammar import SELF

ENOUGH = 2
"""The least weight of a pattern. A lower one, such as `return $X`, fits nearly everywhere."""


@attrs.frozen
class Leaf:
    """A token that stays as it is. `gap` is the text before it in the example; it does not count for equality."""

    kind: str
    text: str
    named: bool
    gap: str = attrs.field(default="", eq=False)


@attrs.frozen
class Hole:
    """A variable for one node. Equal names are equal trees.

    `kinds` limits the kinds of nodes, empty means any expression; `words` limits a name to some of a library.
    `never_imported` refuses a name that an import of the file binds: the receiver was a value in the example, and there
    it is a module. `level` says how tightly the place of the hole binds, see `level` in grammar.py; -1 where anything
    fits.
    """

    name: str
    kinds: frozenset[str] = frozenset()
    never_imported: bool = False
    prefix: str = ""
    words: frozenset[str] = frozenset()
    gap: str = attrs.field(default="", eq=False)
    level: int = attrs.field(default=-1, eq=False)


@attrs.frozen
class Limit:
    """The keywords that a Rest of arguments may have, where the edit calls something else than the code before it."""

    names: frozenset[str]


@attrs.frozen
class Rest:
    """A variable for any number of elements of a list, or of statements. `limit` bounds arguments.

    `last` is the name of its last element in the example: before another Rest it ends there.
    """

    name: str
    gap: str = attrs.field(default="", eq=False)
    separator: str = attrs.field(default="", eq=False)
    limit: Limit | None = attrs.field(default=None, eq=False)
    last: str = attrs.field(default="", eq=False)


@attrs.frozen
class Tail(Rest):
    """A variable for all that is left of a node, whatever it is."""


@attrs.frozen
class Text:
    """A token of a template with holes in its text, such as the content of a string. Each part is a text or a Hole."""

    kind: str
    parts: "tuple[str | Hole, ...]"
    gap: str = attrs.field(default="", eq=False)


@attrs.frozen
class Branch:
    """A node with children. `field` is its role in its parent."""

    kind: str
    children: "tuple[Pattern, ...]"
    field: str = attrs.field(default="", eq=False)


Item = Leaf | Hole | Rest | Text
Pattern = Leaf | Hole | Rest | Text | Branch


def items(patterns: Sequence[Pattern]) -> Iterator[Item]:
    """Yield the leaves of patterns in their order."""
    for pattern in patterns:
        if isinstance(pattern, Branch):
            yield from items(pattern.children)
        else:
            yield pattern


def literals(patterns: Sequence[Pattern]) -> list[str]:
    """Return the texts that each place must have, the longest first."""
    texts = {item.text for item in items(patterns) if isinstance(item, Leaf) and item.text.strip("\"'`() ")}
    texts |= {item.prefix for item in items(patterns) if isinstance(item, Hole) and item.prefix}
    return sorted(texts, key=lambda text: (-len(text), text))


def texts_of(patterns: Sequence[Pattern]) -> list[str]:
    """Return the texts of the tokens, in their order."""
    return [item.text for item in items(patterns) if isinstance(item, Leaf)]


def names_in(patterns: Sequence[Pattern]) -> set[str]:
    """Return the texts of the named tokens: names, literals and the like."""
    return {item.text for item in items(patterns) if isinstance(item, Leaf) and item.named}


def as_pattern(template: Pattern) -> Pattern:
    """Return a template as a pattern, to find the places that have an edit already. Composed texts may be any."""
    if isinstance(template, Branch):
        return attrs.evolve(template, children=tuple(as_pattern(child) for child in template.children))
    if isinstance(template, Text):
        return Hole("text of " + "".join(str(part) for part in template.parts), frozenset({template.kind}))
    return template


def variables(patterns: Sequence[Pattern]) -> set[str]:
    """Return the names of the holes and rests of patterns."""
    names: set[str] = set()
    for item in items(patterns):
        if isinstance(item, Hole | Rest):
            names.add(item.name)
        elif isinstance(item, Text):
            names.update(part.name for part in item.parts if isinstance(part, Hole))
    return names


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


def tuple_ends(template: Sequence[Pattern]) -> Iterator[int]:
    """Yield the indices of the items that end a tuple of one element: the comma before them means something."""
    index = 0
    for pattern, size in ((one, len([*items((one,))])) for one in template):
        if isinstance(pattern, Branch):
            elements = [one for one in pattern.children if not isinstance(one, Leaf) or one.named]
            if pattern.kind == "tuple" and len(elements) == 1:
                yield index + size - 1
            yield from (index + at for at in tuple_ends(pattern.children))
        index += size
