"""The syntax of what Rust's own macros take: the grammar has tokens there, and these macros take expressions."""

import re
from collections.abc import Iterator

import attrs
import tree_sitter

from lsp_server.languages.language import Language
from lsp_server.refactor.code.node import Node, node_of

_TAKES_EXPRESSIONS = re.compile(
    r"(debug_)?assert(_eq|_ne)?|e?print(ln)?|write(ln)?|format(_args)?|panic|unreachable|unimplemented|todo|dbg|vec|try"
    r"|trace|debug|info|warn|error|bail|ensure|anyhow"
)
_DEEPEST = 3
"""The macros inside of others that are read: each takes one more parse."""
_SECONDS = 1.0
_READ = frozenset({"arguments", "array_expression"})


def read_macros(root: Node, data: bytes, language: Language) -> None:
    """Give the macros below a node the trees of their expressions. Others keep their tokens.

    A macro of several sorts of code, `name = value` among its arguments, or braces is left as it is.
    """
    source, found = bytearray(data), list(_macros(root))
    for _ in range(_DEEPEST):
        for macro in found:  # `f!(x)` is read as `f (x)`, and `vec![x]` as `[x]`
            start = macro.start if macro.children[2].children[0].text == "[" else macro.children[1].start
            source[start : macro.children[1].end] = b" " * (macro.children[1].end - start)
        tree = language.parse(bytes(source), None, _SECONDS) if found else None
        if tree is None:
            return
        read = [new for macro in found if (new := _read(macro, tree.root_node, data, language)) is not None]
        found = [inner for one in read for inner in _macros(one)]


def _macros(top: Node) -> Iterator[Node]:
    """Yield the outermost calls of known macros below a node."""
    waiting = [*top.children]
    while waiting:
        node = waiting.pop()
        if node.kind == "macro_invocation" and len(node.children) == 3 and node.children[2].children:
            name, _, tokens = node.children
            *_, last = name.leaves()  # `debug` of `log::debug!`
            if _TAKES_EXPRESSIONS.fullmatch(last.text) and tokens.children[0].text in ("(", "["):
                yield node
        elif node.kind != "token_tree":
            waiting.extend(node.children)


def _read(macro: Node, root: tree_sitter.Node, data: bytes, language: Language) -> Node | None:
    """Give a macro the tree of its expressions, and return that; None if it has other code."""
    tokens = macro.children[2]
    raw = root.descendant_for_byte_range(tokens.start, tokens.end)
    if raw is None or raw.type not in _READ or raw.has_error or raw.byte_range != (tokens.start, tokens.end):
        return None
    read = node_of(raw, data, language)
    is_same = [leaf.text for leaf in read.leaves()] == [leaf.text for leaf in tokens.leaves()]
    if not is_same or any(child.kind == "assignment_expression" for child in read.children):
        return None
    made = attrs.evolve(tokens, children=read.children)
    made.digest = hash((made.kind, "", *(child.digest for child in made.children)))
    for child in made.children:
        child.parent = made
    macro.children = (*macro.children[:2], made)
    node: Node | None = macro
    while node is not None:
        node.digest = hash((node.kind, "", *(child.digest for child in node.children)))
        node = node.parent
    return made
