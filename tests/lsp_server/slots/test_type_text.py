"""What counts as a type, and where it ends in a fill that goes on."""

import pytest
from support.slot_texts import snapshot_of

from lsp_server.slots.judge import is_type, leading_type, names_of_types

PYTHON = """
import typing
from collections.abc import Callable
import numpy as np

class Box: ...
"""
TYPESCRIPT = 'import { Node, type Tree as Wood } from "./tree";\ninterface Box<T> { a: T }\n'


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("int", "int"),
        ("int, b: str", "int"),
        ("int) -> None:", "int"),
        ("int = 0", "int"),
        ("dict[str, int] | None", "dict[str, int] | None"),
        ("Callable[[int], Box]", "Callable[[int], Box]"),
        ("typing.Iterable['Box']", "typing.Iterable['Box']"),
        ("np.ndarray", "np.ndarray"),
        ("Unknown", None),
        ("other.Box", None),
        ("Any", None),
        ("make()", None),
        ("3", None),
        ("list[int", None),
        ("int and str", None),
    ],
)
def test_python(fill: str, expected: str | None) -> None:
    snapshot = snapshot_of(PYTHON)
    text = leading_type(fill, snapshot.language)
    assert (text if is_type(text, snapshot.language, names_of_types(snapshot)) else None) == expected


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("string", "string"),
        ("string, b: number", "string"),
        ("void {", "void"),
        ("Promise<Box<Node>> {", "Promise<Box<Node>>"),
        ("{ a: Wood }", "{ a: Wood }"),
        ("(a: string) => void", "(a: string) => void"),
        ("'a' | 'b'", "'a' | 'b'"),
        ("T[] = []", "T[]"),
        ("Tree", None),
        ("any", None),
        ("Unknown.Node", None),
    ],
)
def test_typescript(fill: str, expected: str | None) -> None:
    snapshot = snapshot_of(TYPESCRIPT, "/project/a.ts")
    text = leading_type(fill, snapshot.language)
    assert (text if is_type(text, snapshot.language, names_of_types(snapshot)) else None) == expected
