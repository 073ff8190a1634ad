"""What the preprocessor of C reads: the names of macros, and those in their texts."""

import re
from collections.abc import Iterator

from lsp_server.refactor.code.node import Node

_NAMES = re.compile(rb"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|//[^\n]*|([A-Za-z_]\w*)")
_MACRO = frozenset({"preproc_def", "preproc_function_def", "preproc_ifdef", "preproc_elifdef"})


def is_macro(leaf: Node) -> bool:
    """Return whether a name is that of a macro of C, which the preprocessor defines or asks for there."""
    kind = leaf.parent.kind if leaf.parent is not None else ""
    return kind == "preproc_defined" or (kind in _MACRO and leaf.field == "name")


def names_in(value: Node, data: bytes) -> Iterator[Node]:
    """Yield the names in the text `value` of a macro, which has no syntax there, but for its parameters.

    `data` is the file's, in UTF-8.
    """
    parameters = value.parent.child("parameters") if value.parent is not None else None
    known = {leaf.text for leaf in parameters.leaves()} if parameters is not None else set()
    for found in _NAMES.finditer(data, value.start, value.end):
        if found[1] and (text := found[1].decode()) not in known:
            yield Node("identifier", "", True, found.start(), found.end(), text, (), 0, value.parent)
