"""The open notebooks: which cells each has, in order, and what a cell's code may build on.

A cell is a document of its own. To the model it is the end of a script that begins with the cells above it: their code
goes in front of the cell's own as prefix text. As related snippets (models/stream.py) they would get a quarter of the
room at most, each or none of it, and the cell just above, which matters most, would be the first to be left out.
"""

from collections.abc import Iterable, Sequence

from lsprotocol import types

_MAGIC = ("%", "!", "?")
# These run the rest of their cell as Python; other cell magics are in some other language.
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


class Notebooks:
    """The code cells of each notebook, by the URIs of their documents."""

    def __init__(self) -> None:
        self._cells: dict[str, list[types.NotebookCell]] = {}
        self._notebook_of: dict[str, str] = {}

    def open(self, notebook: types.NotebookDocument) -> None:
        """Take a notebook in."""
        self.close(notebook.uri)
        self._cells[notebook.uri] = list(notebook.cells)
        self._index(notebook.uri, notebook.cells)

    def restructure(self, uri: str, change: types.NotebookCellArrayChange) -> None:
        """Replace `delete_count` cells from `start` on by those of the change."""
        cells = self._cells.setdefault(uri, [])
        end = change.start + change.delete_count
        self._drop(cells[change.start : end])
        cells[change.start : end] = change.cells or []
        self._index(uri, change.cells or [])

    def describe(self, uri: str, changed: Sequence[types.NotebookCell]) -> None:
        """Note that cells have become code, or text."""
        kinds = {cell.document: cell for cell in changed}
        self._cells[uri] = [kinds.get(cell.document, cell) for cell in self._cells.get(uri, [])]

    def close(self, uri: str) -> None:
        self._drop(self._cells.pop(uri, []))

    def has(self, uri: str) -> bool:
        """Return whether a document is a cell of a notebook."""
        return uri in self._notebook_of

    def above(self, uri: str) -> list[str]:
        """Return the code cells above a cell, the first one first; none for a document that is no cell."""
        above: list[str] = []
        for cell in self._cells.get(self._notebook_of.get(uri, ""), []):
            if cell.document == uri:
                break
            if cell.kind == types.NotebookCellKind.Code:
                above.append(cell.document)
        return above

    def _index(self, uri: str, cells: Iterable[types.NotebookCell]) -> None:
        for cell in cells:
            self._notebook_of[cell.document] = uri

    def _drop(self, cells: Iterable[types.NotebookCell]) -> None:
        for cell in cells:
            self._notebook_of.pop(cell.document, None)


def as_script(cells: Iterable[str], language: str) -> str:
    """Return cells as the script above the next one, without what only notebooks understand."""
    texts = (_without_magic(cell) if language == "python" else cell for cell in cells)
    return "".join(f"{text.strip()}\n\n" for text in texts if text.strip())


def _without_magic(cell: str) -> str:
    if cell.startswith("%%") and not cell.startswith(_PYTHON_MAGICS):
        return ""
    return "".join(line for line in cell.splitlines(keepends=True) if not line.startswith(_MAGIC))
