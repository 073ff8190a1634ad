"""The completion menu: whether the user chose the entry that is selected in it, or the editor selected it by itself."""

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.hole.cursor import Cursor


@attrs.frozen
class _Menu:
    """The menu at a text: the entry that was selected first, and whether another one was since."""

    version: int
    entry: str
    has_moved: bool = False


class Menus:
    """Remembers the menu of each document.

    An editor selects an entry of its own as soon as the menu opens, and again after each key. No request tells who
    selected the entry, but without a key only the user goes on to another one.
    """

    def __init__(self) -> None:
        self._menus: dict[str, _Menu] = {}

    def is_chosen(self, snapshot: Snapshot, cursor: Cursor) -> bool:
        """Return whether the user chose the entry of `cursor`, which is selected at `snapshot`."""
        menu = self._menus.get(snapshot.uri)
        if menu is None or menu.version != snapshot.version:
            menu = _Menu(snapshot.version, cursor.inserted)
        elif menu.entry != cursor.inserted:
            menu = attrs.evolve(menu, has_moved=True)
        self._menus[snapshot.uri] = menu
        return menu.has_moved

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._menus.pop(uri, None)
