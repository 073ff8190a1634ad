"""Which tokens of a template are those of the pattern: they and the gaps between them stay as a place has them."""

from collections.abc import Iterator, Sequence

import attrs

from lsp_server.refactor.grammar import is_list_kind
from lsp_server.refactor.pattern import Branch, Hole, Item, Leaf, Pattern, Rest, Rule, items


@attrs.frozen(eq=False)
class Layout:
    """The items of both sides. `aligned` has the index in the pattern by that in the template.

    `depth` counts the brackets of the template that are open at an item. `elements` are the items of the template that
    an element of a list begins with.
    """

    pattern: tuple[Item, ...]
    template: tuple[Item, ...]
    aligned: dict[int, int]
    depth: tuple[int, ...]
    elements: frozenset[int]


def layout_of(rule: Rule) -> Layout:
    """Return the layout of a rule."""
    pattern, template = tuple(items(rule.pattern)), tuple(items(rule.template))
    aligned = _aligned(pattern, template)
    return Layout(
        _on_one_line(pattern, frozenset(aligned.values())),
        _on_one_line(template, frozenset(aligned)),
        aligned,
        _depth(template),
        frozenset(_elements(rule.template)),
    )


def _on_one_line(side: Sequence[Item], aligned: frozenset[int]) -> tuple[Item, ...]:
    """Return items whose lists are on one line, where the brackets are the place's own: it has lines of its own."""
    result: list[Item] = []
    own: list[bool] = []
    after_bracket = False
    for index, item in enumerate(side):
        text = item.text if isinstance(item, Leaf) and not item.named else ""
        closes = text in (")", "]", "}") or (isinstance(item, Hole) and ">" in item.kinds)
        if own and own[-1] and "\n" in item.gap and not item.gap.strip(", \t\r\n"):
            before_end = " " if isinstance(item, Hole) else ""
            gap = before_end if closes else "" if after_bracket else ", " if "," in item.gap else " "
            item = attrs.evolve(item, gap=gap)
        result.append(item)
        after_bracket = text in ("(", "[")
        if text in ("(", "[", "{", "<"):
            own.append(index in aligned and text != "{")
        elif closes and own:
            own.pop()
    return tuple(result)


def _depth(template: Sequence[Item]) -> tuple[int, ...]:
    depths: list[int] = []
    depth = 0
    for item in template:
        depths.append(depth)
        if isinstance(item, Leaf) and not item.named:
            depth += (item.text in ("(", "[", "{")) - (item.text in (")", "]", "}"))
    return tuple(depths)


def _elements(template: Sequence[Pattern]) -> Iterator[int]:
    """Yield the indices of the items that begin an element of a list."""
    index = 0
    waiting = [(pattern, False) for pattern in reversed(template)]
    while waiting:
        pattern, is_element = waiting.pop()
        if is_element:
            yield index
        if isinstance(pattern, Branch):
            # Go's several values have no brackets: those around them are of something else.
            in_list = is_list_kind(pattern.kind) and pattern.kind != "expression_list"
            inner = [(child, in_list and _is_element(child)) for child in pattern.children]
            if is_element and inner:
                inner[0] = (inner[0][0], False)
            waiting.extend(reversed(inner))
        else:
            index += 1


def _is_element(pattern: Pattern) -> bool:
    return not (isinstance(pattern, Leaf) and not pattern.named)


def _aligned(pattern: Sequence[Item], template: Sequence[Item]) -> dict[int, int]:
    """Return the longest common subsequence of two lists of items; variables count more than tokens."""
    rows, columns = len(pattern), len(template)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            gain = _gain(pattern[row], template[column])
            best[row][column] = max(
                best[row + 1][column], best[row][column + 1], gain + best[row + 1][column + 1] if gain else 0
            )
    aligned: dict[int, int] = {}
    row = column = 0
    while row < rows and column < columns:
        gain = _gain(pattern[row], template[column])
        if gain and best[row][column] == gain + best[row + 1][column + 1]:
            aligned[column] = row
            row, column = row + 1, column + 1
        elif best[row + 1][column] >= best[row][column + 1]:
            row += 1
        else:
            column += 1
    return aligned


def _gain(one: Item, other: Item) -> int:
    """Return how much it is worth to align two items; 0 if they are different."""
    if isinstance(one, Hole | Rest) and type(one) is type(other):
        return 3 if one.name == other.name else 0
    if isinstance(one, Leaf) and isinstance(other, Leaf) and one.text == other.text:
        return 2 if one.named else 1
    return 0
