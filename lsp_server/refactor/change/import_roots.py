"""The first part of what imports name, where an edit of one says what all begin with.

`use process::Child` became `use crate::process::Child`: before the edition of 2018 each crate of Rust declared the
others that it uses (`extern crate log;`), so all else that its imports begin with is its own. `import javax.mail.Part`
became `import jakarta.mail.Part`: so did all packages of Java EE, and none of Java itself. `import old` of
Python became `import new` in a file that names `old`: so do all imports of it, and all code that names it.
"""

import itertools
import re
from collections.abc import Collection, Iterator

from lsp_server.refactor.code.bindings import UNKNOWN, Binding, Scopes, binds, import_statements, imports_of
from lsp_server.refactor.code.declarations import names_of
from lsp_server.refactor.code.grammar import is_import, is_name, is_string_content
from lsp_server.refactor.code.imports import Import
from lsp_server.refactor.code.member import is_member
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import Leaf
from lsp_server.refactor.rules.rule import Rule
from lsp_server.refactor.rules.task import Rename

SORT = "root"
"""The `sort` of these rules' Rename, whose `rivals` are the other crates that a folder knows."""
MODULE = "module"
"""The `sort` of the Rename of a module of Python."""
_OWN, _FIRST = "crate", ["crate", "::"]
_BROUGHT = frozenset({"alloc", "core", "proc_macro", "std", "test"})
_EXTERN = re.compile(r"^[ \t]*((?:#\[[^\]\n]*\][ \t]*)*)(?:pub )?extern crate (\w+)(?: as (\w+))?", re.M)
_PLAIN = "extern"
"""Is with the crates of a folder that declares one for its names alone, as is needed before 2018 only."""
_ROOTED = frozenset({_OWN, "self", "super", "::"})
_MOVED = ("javax", "jakarta")
_LONGEST = 40
"""Bytes that tell a package of Java EE."""
_EE = re.compile(
    r"javax\.(activation|annotation\.(PostConstruct|PreDestroy|Priority|ManagedBean|Resources?|security|sql)|batch"
    r"|decorator|ejb|el|enterprise|faces|inject|interceptor|jms|json|mail|persistence|resource|servlet"
    r"|security\.(auth\.message|enterprise|jacc)|transaction(?!\.xa\b)|validation|websocket|ws\.rs|xml\.(bind|soap|ws))\b"
)


def root_rule(old: Node, new: Node, language: str, path: str) -> Rule | None:
    """Return the rule of an import of which only the root changed so that others follow; None for other edits."""
    leaves, others = ([leaf.text for leaf in node.leaves()] for node in (old, new))
    first = _root(old, language)
    at = next((at for at, leaf in enumerate(old.leaves()) if leaf is first), 0)
    if first is None or not at:
        return None
    if language == "rust" and first.text not in _ROOTED | _BROUGHT:
        sides, wanted = ("use", "crate::"), [*leaves[:at], *_FIRST, *leaves[at:]]
    else:
        sides, wanted = _MOVED, [*leaves[:at], _MOVED[1], *leaves[at + 1 :]]
    if others != wanted or (language != "rust" and not _is_of_ee(first, old)):
        return None
    pattern, template = (Leaf(first.kind, text, named=True) for text in sides)
    return Rule(language, (pattern,), (template,), Rename(SORT, "", 0), path=path)


def root_rule_of_code(old: Node, new: Node, language: str, path: str) -> Rule | None:
    """Return the rule of a qualified name of Java EE in code of which only the root changed; None for other edits."""
    if language != "java":
        return None
    leaves, others = ([*node.leaves()] for node in (old, new))
    pairs = [pair for pair in zip(leaves, others, strict=False) if pair[0].text != pair[1].text]
    if len(leaves) != len(others) or [(a.text, b.text) for a, b in pairs] != [_MOVED]:
        return None
    first = pairs[0][0]
    pattern, template = (Leaf(first.kind, text, named=True) for text in _MOVED)
    rule = Rule(language, (pattern,), (template,), Rename(SORT, "", 0), path=path)
    return rule if _is_of_ee(first, old) else None


def roots(rename: Rename, syntax: Syntax, path: str) -> Iterator[tuple[Node, str, str]]:
    """Yield the roots of the imports of the file `path` that follow, each with its doubt, and what stays of it."""
    language, folder, others = syntax.language.id, path.rpartition("/")[0], set[str]()
    for one in (*(rename.rivals or ()), *externs(path, syntax.data.decode("utf-8", "replace"), language)):
        home, _, name = one.rpartition(" ")
        if home == folder or (home and folder.startswith(f"{home}/")):
            others.add(name)
    doubt = "" if _PLAIN in others else "nothing says which crates it uses"
    known = _ROOTED | _BROUGHT | others
    for leaf in syntax.root.leaves() if language == "java" else ():
        is_first = leaf.text == _MOVED[0] and leaf.index == 0 and leaf.parent is not None
        if is_first and _EE.match(syntax.text(leaf.start, leaf.start + _LONGEST)) and not _is_package(leaf):
            yield leaf, "", ""
    for statement in import_statements(syntax.root):
        first = _root(statement, language)
        if first is None:
            continue
        if language == "rust" and first.text not in known and not _names_others(statement, others):
            yield first, doubt, first.text


def is_other_module(old: Import, new: Import, before: Syntax) -> bool:
    """Return whether an import of Python became that of another module, whose name the file uses."""
    is_plain = all(one.kind == "python" and one.source.isidentifier() and one == Import(one.source, kind="python")
                   for one in (old, new))  # fmt: skip
    used = (leaf for leaf in before.root.leaves() if leaf.text == old.source and is_name(leaf))
    return is_plain and any(not any(map(is_import, leaf.ancestors())) and not is_member(leaf) for leaf in used)


def module_uses(rule: Rule, syntax: Syntax, own: bool) -> Iterator[tuple[Node, str]]:
    """Yield the names of a module of Python that became another one, each with its doubt.

    `own` says that the file is the example, whose import has the new name already.
    """
    old, new = rule.words
    table = imports_of(syntax)
    scopes = Scopes(syntax, table)
    part = next((one.source for one in table.all if one.source.startswith(f"{old}.")), "")
    of_part = f"`{part}` may be no module of `{new}`" if part else ""
    has_part = any(one == Import(part, kind="python") for one in table.all)
    for leaf in names_of(syntax).leaves(old):
        above, here = leaf.parent, scopes.binding(old, leaf)
        is_taken = scopes.binding(new, leaf).kind not in ("unknown", "import")
        doubt = f"`{new}` is something else here" if is_taken else of_part if has_part else ""
        statement = next(filter(is_import, leaf.ancestors()), None)
        if statement is not None and above is not None:
            is_module = above.field == "module_name" or statement.kind == "import_statement"
            if is_module and above.kind == "dotted_name" and leaf.index == 0:
                is_plain = statement.kind == "import_statement" and len(above.children) == 1
                yield leaf, of_part if len(above.children) > 1 else doubt if is_plain else ""
            continue
        is_use = not (is_member(leaf) or is_string_content(leaf) or binds(leaf, syntax.root))
        if is_use and (here == Binding("import", old) or (own and here == UNKNOWN)):
            yield leaf, doubt


def externs(path: str, text: str, language: str) -> Iterator[str]:
    """Yield the other crates that the file `path` declares for those in its folder: the folder and a name."""
    folder = path.rpartition("/")[0]
    for match in _EXTERN.finditer(text) if language == "rust" else ():
        yield f"{folder} {match[3] or match[2]}"
        if not match[1] and match[2] not in _BROUGHT and not text[: match.start()].rstrip().endswith("]"):
            yield f"{folder} {_PLAIN}"


def _names_others(statement: Node, others: Collection[str]) -> bool:
    """Return whether a group of imports without a root has one of another crate."""
    argument = statement.child("argument")
    entries = argument.children if argument is not None and argument.kind == "use_list" else []
    return any(leaf.text in others for entry in entries for leaf in itertools.islice(entry.leaves(), 1))


def _is_package(leaf: Node) -> bool:
    return any(above.kind == "package_declaration" for above in leaf.ancestors())


def _is_of_ee(first: Node, statement: Node) -> bool:
    text = "".join(leaf.text for leaf in statement.leaves() if leaf.start >= first.start)
    return _EE.match(text) is not None


def _root(statement: Node, language: str) -> Node | None:
    """Return the first token of what an import names."""
    if language == "rust":
        argument = statement.child("argument") if statement.kind == "use_declaration" else None
        return next(argument.leaves(), None) if argument is not None else None
    found = next((leaf for leaf in statement.leaves() if leaf.text not in ("import", "static")), None)
    return found if language == "java" else None
