"""The type parameters of declarations: `T` of `class Box<T>`."""

import re

from lsp_server.refactor.code.grammar import is_name
from lsp_server.refactor.code.node import Node

TYPE_PARAMETERS = re.compile(r"^(type|template)_parameter(s|_list)?$")
_MOST_BEFORE = 8
"""The children of a declaration before its type parameters: attributes, modifiers, the type, the name."""


def generic_around(name: str, node: Node) -> Node | None:
    """Return the innermost declaration around a node that has a type parameter of a name; None if none has."""
    for above in node.ancestors():
        if above.kind == "generic_type" or TYPE_PARAMETERS.search(above.kind):
            continue  # Python's `list[T]` has arguments, and one parameter has the names of its bounds
        for child in above.children[:_MOST_BEFORE]:
            if TYPE_PARAMETERS.search(child.kind) and any(_name(part) == name for part in child.parts):
                return above
    return None


def _name(parameter: Node) -> str:
    return next((leaf.text for leaf in parameter.leaves() if is_name(leaf)), "")
