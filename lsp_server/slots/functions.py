"""The functions of a text that can have annotations, with their parameters."""

from collections.abc import Iterator

import attrs
import tree_sitter

from lsp_server.documents.store import Snapshot
from lsp_server.slots.slot import is_inside, matches, text_of

_FUNCTIONS = frozenset(
    {
        "function_definition",
        "class_definition",
        "lambda",
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
        "class_body",
    }
)


@attrs.frozen(eq=False)
class Parameter:
    """A parameter. `type` is its annotation and `value` its default; `stars` come before its name."""

    name: str
    node: tree_sitter.Node
    type: tree_sitter.Node | None
    value: tree_sitter.Node | None
    stars: str


@attrs.frozen(eq=False)
class Function:
    """A function that can have annotations. `returns` is that of what it returns.

    `takes_return` and `takes_types` are False where an annotation does not belong.
    """

    name: str
    node: tree_sitter.Node
    head: tree_sitter.Node
    body: tree_sitter.Node
    returns: tree_sitter.Node | None
    parameters: tuple[Parameter, ...]
    is_method: bool
    takes_return: bool
    takes_types: bool

    def own_nodes(self) -> Iterator[tree_sitter.Node]:
        """Yield the nodes of the body, without those of functions and classes in it."""
        waiting = [self.body]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in node.named_children if child.type not in _FUNCTIONS]


def functions(snapshot: Snapshot) -> list[Function]:
    """Return the functions of a text that can have annotations, in their order."""
    found, data = matches(snapshot, "annotations"), snapshot.source.data
    exempt = [node for captures in found for node in captures.get("exempt", ())]
    no_types = exempt + [node for captures in found for node in captures.get("exempt.types", ())]
    no_returns = exempt + [node for captures in found for node in captures.get("exempt.returns", ())]
    parameters: dict[int, list[Parameter]] = {}
    for captures in found:
        for node in (*captures.get("untyped", ()), *captures.get("typed", ())):
            head = _head(node)
            if head is not None:
                parameter = _parameter(node, data, captures.get("type", [None])[0], captures.get("value", [None])[0])
                parameters.setdefault(head.id, []).append(parameter)
    result: dict[int, Function] = {}
    for captures in found:
        for node in captures.get("function", ()):
            head, body = captures["parameters"][0], captures["body"][0]
            in_order = sorted(parameters.get(head.id, ()), key=lambda each: each.node.start_byte)
            is_method = _is_method(node)
            if is_method and snapshot.language.id == "python" and not _is_static(node, data) and in_order:
                first = head.named_children[0].start_byte if head.named_children else -1
                in_order = in_order[1:] if in_order[0].node.start_byte == first else in_order
            result[node.start_byte] = Function(
                text_of(captures["name"][0], data),
                node,
                head,
                body,
                captures.get("returns", [None])[0],
                tuple(in_order),
                is_method,
                not is_inside(head, no_returns),
                not is_inside(head, no_types),
            )
    return [result[byte] for byte in sorted(result)]


def _parameter(
    node: tree_sitter.Node, data: bytes, annotation: tree_sitter.Node | None, value: tree_sitter.Node | None
) -> Parameter:
    parent = node.parent
    stars = ""
    if parent is not None and parent.type in ("list_splat_pattern", "dictionary_splat_pattern", "rest_pattern"):
        stars = text_of(parent.children[0], data)
    return Parameter(text_of(node, data), node, annotation, value, stars)


def _head(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """Return the parameters that a name is one of."""
    at = node.parent
    while at is not None and at.type not in ("parameters", "formal_parameters"):
        at = at.parent
    return at


def _is_method(node: tree_sitter.Node) -> bool:
    at = node.parent
    if at is not None and at.type == "decorated_definition":
        at = at.parent
    return node.type == "method_definition" or (
        at is not None and at.parent is not None and at.parent.type == "class_definition"
    )


def _is_static(node: tree_sitter.Node, data: bytes) -> bool:
    at = node.parent
    return (
        at is not None
        and at.type == "decorated_definition"
        and any(child.type == "decorator" and text_of(child, data).startswith("@staticmethod") for child in at.children)
    )
