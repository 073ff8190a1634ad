"""The open notebooks: the cells of each, in order, and the code above a cell.

A cell is a document of its own. The model sees it as the end of a script that begins with the cells above: their code
is part of the prefix. As snippets they would get at most a quarter of the context, each cell whole or not at all, and
the cell just above, which matters most, would be dropped first.
"""

from collections.abc import Iterable, Sequence

from lsprotocol import types

_MAGIC = ("%", "!", "?")
# These run the rest of their cell as Python. The cells of other magics are in another language.
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


class Notebooks:
    """The code cells of each notebook, by the URIs of their documents."""

    def __init__(self) -> None:
        self._cells: dict[str, list[types.NotebookCell]] = {}
        self._notebook_of: dict[str, str] = {}

    def open(self, notebook: types.NotebookDocument) -> None:
        """Keep a notebook."""
        self.close(notebook.uri)
        self._cells[notebook.uri] = list(notebook.cells)
        self._index(notebook.uri, notebook.cells)

    def restructure(self, uri: str, change: types.NotebookCellArrayChange) -> None:
        """Replace `delete_count` cells from `start` by those of the change."""
        cells = self._cells.setdefault(uri, [])
        end = change.start + change.delete_count
        self._drop(cells[change.start : end])
        cells[change.start : end] = change.cells or []
        self._index(uri, change.cells or [])

    def update_cells(self, uri: str, changed: Sequence[types.NotebookCell]) -> None:
        """Note that cells have changed between code and text."""
        by_document = {cell.document: cell for cell in changed}
        self._cells[uri] = [by_document.get(cell.document, cell) for cell in self._cells.get(uri, [])]

    def close(self, uri: str) -> None:
        """Drop a notebook."""
        self._drop(self._cells.pop(uri, []))

    def has(self, uri: str) -> bool:
        """Return whether a document is a cell of a notebook."""
        return uri in self._notebook_of

    def above(self, uri: str) -> list[str]:
        """Return the code cells above a cell, from the top; none for a document that is not a cell."""
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
    """Return the texts of cells as one script, without the lines that only notebooks understand."""
    texts = (_without_magic(cell) if language == "python" else cell for cell in cells)
    return "".join(f"{text.strip()}\n\n" for text in texts if text.strip())


def _without_magic(cell: str) -> str:
    if cell.startswith("%%") and not cell.startswith(_PYTHON_MAGICS):
        return ""
    return "".join(line for line in cell.splitlines(keepends=True) if not line.startswith(_MAGIC))
