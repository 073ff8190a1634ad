"""Annotations, attributes and decorators, with their sign or their brackets."""

import re
from collections.abc import Iterable

from lsp_server.refactor.code.node import Node

_KIND = re.compile(r"^(marker_)?annotation$|^decorator$|^attribute(_group|_list|_item)?$")
_SIGNS = ("@", "[", "#[", "#")
_OF_ONE = frozenset(
    {"Override", "SuppressWarnings", "Deprecated", "SafeVarargs", "FunctionalInterface", "Test", "Obsolete", "Suppress"}
    | {"inline", "allow", "cfg", "cold", "derive", "must_use", "repr", "test", "override", "available", "objc"}
    | {"discardableResult", "JvmStatic", "JvmField", "property", "staticmethod", "classmethod", "abstractmethod"}
    | {"overload", "dataclass", "fixture"}
)
"""Those that tell the compiler or a tool something of one declaration, for a reason that others may not have."""


def is_annotation(node: Node) -> bool:
    """Return whether a node is an annotation."""
    return is_annotation_kind(node.kind) and bool(node.children) and node.children[0].text in _SIGNS


def is_annotation_kind(kind: str) -> bool:
    """Return whether annotations are nodes of this kind; so are members of Python."""
    return _KIND.search(kind) is not None


def is_of_one(words: Iterable[str]) -> bool:
    """Return whether the words of an annotation say that it is meant for one declaration."""
    return not _OF_ONE.isdisjoint(words)
