"""Imports of Rust that begin at the own crate: `use process::Child` became `use crate::process::Child`.

Before the edition of 2018 each crate declared the others that it uses (`extern crate log;`), so all else that an import
begins with is its own.
"""

import re
from collections.abc import Iterator

from lsp_server.refactor.bindings import import_statements
from lsp_server.refactor.pattern import Leaf
from lsp_server.refactor.rule import Rename, Rule
from lsp_server.refactor.syntax import Node, Syntax

SORT = "crate"
"""The `sort` of these rules' Rename, whose `rivals` are the other crates that a folder knows."""
_OWN, _FIRST = "crate", ("crate", "::")
_BROUGHT = frozenset({"alloc", "core", "proc_macro", "std", "test"})
_EXTERN = re.compile(r"^[ \t]*(?:#\[\w+\][ \t]*)?(?:pub )?extern crate (\w+)(?: as (\w+))?", re.M)
_ROOTED = frozenset({_OWN, "self", "super", "::"})


def crate_rule(old: Node, new: Node, path: str) -> Rule | None:
    """Return the rule of an import that got `crate::` before its path; None if it did not, or did more."""
    leaves, others = ([leaf.text for leaf in node.leaves()] for node in (old, new))
    first = _first(old)
    if first is None or first.text in _ROOTED | _BROUGHT:
        return None
    at = next(at for at, leaf in enumerate(old.leaves()) if leaf is first)
    if others != [*leaves[:at], *_FIRST, *leaves[at:]]:
        return None
    sides = (Leaf("use", "use", named=False),), (Leaf(_OWN, "crate::", named=False),)
    return Rule("rust", *sides, path=path, rename=Rename(SORT, "", 0))


def begins_of_paths(rename: Rename, syntax: Syntax, path: str) -> Iterator[tuple[Node, str]]:
    """Yield where the imports of the file `path` begin that get `crate::`, each with its doubt."""
    folder, others = path.rpartition("/")[0], set[str]()
    for one in (*(rename.rivals or ()), *externs(path, syntax.data.decode("utf-8", "replace"))):
        home, _, name = one.rpartition(" ")
        if home == folder or (home and folder.startswith(f"{home}/")):
            others.add(name)
    for statement in import_statements(syntax.root):
        first = _first(statement)
        if first is not None and first.text not in _ROOTED | _BROUGHT | others:
            yield first, "" if others else "nothing says which crates it uses"


def externs(path: str, text: str) -> Iterator[str]:
    """Yield the other crates that the file `path` declares for those in its folder: the folder and a name."""
    folder = path.rpartition("/")[0]
    for match in _EXTERN.finditer(text):
        yield f"{folder} {match[2] or match[1]}"


def _first(statement: Node) -> Node | None:
    """Return the first token of the path of an import."""
    argument = statement.child("argument") if statement.kind == "use_declaration" else None
    return next(argument.leaves(), None) if argument is not None else None
