"""Related code of other files after an edit: how the names of the edit are declared, and what uses what it declares.

Both follow imports to the file that they name (modules.py), so a file with the same name by chance is none. All
functions parse whole texts. Call them in a Worker, never on the event loop.
"""

from collections.abc import Iterator, Sequence

import attrs

from engine.reading import read_text
from lsp_server.documents.credentials import context_text
from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.declarations import Names, names_of, owner_around
from lsp_server.refactor.code.grammar import is_import
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import parse
from lsp_server.refactor.places.modules import Declared, declared_as, uses_elsewhere
from lsp_server.refactor.search import Target, is_generated

_MOST_OF_FILE = 100_000
"""Characters of another file: longer ones are written by programs."""
_MOST_LINES = 6
"""Lines of a declaration: its head says how it is used."""
_AROUND = 1
"""Lines above and below a use."""
_MOST_USES = 2
"""Places of a file. More of them say the same again."""
_MOST_CHARACTERS = 500


@attrs.frozen
class EditedFile:
    """The file that was edited, the names that the edit is about, and all words of its lines."""

    text: str
    language_id: str
    path: str
    folder: str
    names: tuple[str, ...]
    used: tuple[str, ...] = ()


@attrs.frozen
class RelatedCode:
    """Some lines of another file. `declares` says whether they declare a name of the edit; else they use one."""

    path: str
    text: str
    declares: bool


def related_code(edited: EditedFile, targets: Sequence[Target]) -> list[RelatedCode]:
    """Return what other files have to do with an edit, in their order. Only files with one of the names are parsed."""
    own = _names(edited.text, edited.language_id, edited.path)
    if own is None:
        return []
    declared = [*_declared(edited, own)]
    others = [name for name in dict.fromkeys((*edited.names, *edited.used)) if _is_of_others(name, own)]
    wanted = {*others, *(one.name for one in declared)}
    found: list[RelatedCode] = []
    for target in targets:
        if target.path == edited.path:
            continue
        text = target.text if target.text is not None else read_text(target.folder, target.path)
        if text is None or len(text) > _MOST_OF_FILE or not any(name in text for name in wanted):
            continue
        there = None if is_generated(text) else _names(text, "", target.path)
        if there is None:
            continue
        found += _declarations(others, own, there, edited, target)
        found += _uses(declared, there, target.path)
    return found


def _names(text: str, language_id: str, path: str) -> Names | None:
    syntax = parse(text.encode("utf-8", "surrogatepass"), language_for(language_id, path))
    return names_of(syntax) if syntax is not None else None


def _is_of_others(name: str, own: Names) -> bool:
    """Return whether a file uses a name that it does not declare itself."""
    return bool(own.leaves(name)) and all(one.sort == "import" for one in own.declared(name).values())


def _declared(edited: EditedFile, own: Names) -> Iterator[Declared]:
    """Yield what the edited file itself declares under the names, as other files see it."""
    for name in edited.names:
        for one in {id(each): each for each in own.declared(name).values()}.values():
            if one.sort == "global" or (one.sort == "member" and one.is_function):
                owner = owner_around(one.leaf) if one.sort == "member" else ""
                yield declared_as(one.leaf, owner, own.syntax, edited.path).located(edited.folder)


def _declarations(
    names: Sequence[str], own: Names, there: Names, edited: EditedFile, target: Target
) -> Iterator[RelatedCode]:
    """Yield the declarations in a file of names that the edited file has from there."""
    for name in names:
        globals_ = [one for one in there.declared(name).values() if one.sort == "global"]
        for one in globals_[:1]:
            what = declared_as(one.leaf, "", there.syntax, target.path).located(target.folder)
            if uses_elsewhere(what, own, edited.path):
                yield RelatedCode(target.path, _lines(there, one.holder, 0), declares=True)


def _uses(declared: Sequence[Declared], there: Names, path: str) -> Iterator[RelatedCode]:
    """Yield the places of a file that use what the edited file declares."""
    for what in declared:
        uses = [leaf for leaf in uses_elsewhere(what, there, path) if not any(map(is_import, leaf.ancestors()))]
        for leaf in uses[:_MOST_USES]:
            yield RelatedCode(path, _lines(there, leaf, _AROUND), declares=False)


def _lines(names: Names, node: Node, around: int) -> str:
    """Return a node's first lines, and those around it, as a model may read them."""
    data = names.syntax.data
    first, last = (data.count(b"\n", 0, at) for at in (node.start, max(node.start, node.end - 1)))
    lines = data.split(b"\n")[max(0, first - around) : min(last, first + _MOST_LINES - 1) + around + 1]
    text = b"\n".join(lines).decode("utf-8", "replace")
    return context_text(text)[:_MOST_CHARACTERS].strip("\n") + "\n"
