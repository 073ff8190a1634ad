"""Where a suggestion is inserted: at the cursor, after the selected item of the completion menu, or after a word."""

import attrs
from lsprotocol import types

from lsp_server.documents.store import Snapshot, offset_in, position_in


@attrs.frozen
class Cursor:
    """Where a hole is. `snapshot` has the selected menu item inserted, if there is one, and `offset` is its end.

    Each suggestion begins with `inserted`, that item's text. It replaces `range`, whose text is `replaced`.
    """

    snapshot: Snapshot
    offset: int
    range: types.Range
    inserted: str = ""
    replaced: str = ""

    def without_entry(self, snapshot: Snapshot) -> "Cursor | None":
        """Return the cursor in `snapshot`, which lacks the entry; None if that does not begin with what is typed.

        Its items replace the same text: editors want that while the entry is selected.
        """
        if not self.inserted.startswith(self.replaced):
            return None
        offset = self.offset - len(self.inserted) + len(self.replaced)
        return Cursor(snapshot, offset, self.range, inserted=self.replaced, replaced=self.replaced)

    def item(self, text: str, accepted: types.Command) -> types.InlineCompletionItem:
        """Return the item that inserts `text` after the cursor; the editor runs `accepted` when the user takes it.

        The item always has a range: without one Neovim inserts the text wherever the cursor is by then.
        """
        insert = self.inserted + text
        # Editors drop an item whose text does not begin with what it replaces; the menu's own matching is looser.
        filter_text = None if insert.startswith(self.replaced) else self.replaced + text
        return types.InlineCompletionItem(
            insert_text=insert, filter_text=filter_text, range=self.range, command=accepted
        )


def cursor_of(
    snapshot: Snapshot, params: types.InlineCompletionParams, encoding: types.PositionEncodingKind | str
) -> Cursor:
    """Return the cursor of an inline completion request; positions outside the text are clamped."""
    offset = offset_in(snapshot.source, params.position, encoding)
    selected = params.context.selected_completion_info
    if selected is None:
        position = position_in(snapshot.source, offset, encoding)
        return Cursor(snapshot, offset, types.Range(position, position))
    start = offset_in(snapshot.source, selected.range.start, encoding)
    end = max(start, offset_in(snapshot.source, selected.range.end, encoding))
    return Cursor(
        snapshot.replaced(start, end, selected.text),
        start + len(selected.text),
        selected.range,
        inserted=selected.text,
        replaced=snapshot.text[start:end],
    )


def cursor_at_word(snapshot: Snapshot, position: types.Position, encoding: types.PositionEncodingKind | str) -> Cursor:
    """Return the cursor of a completion request. Its items replace the word before the cursor by a longer text."""
    offset = offset_in(snapshot.source, position, encoding)
    start = offset
    while start > 0 and (snapshot.text[start - 1].isalnum() or snapshot.text[start - 1] == "_"):
        start -= 1
    word = snapshot.text[start:offset]
    word_range = types.Range(
        position_in(snapshot.source, start, encoding), position_in(snapshot.source, offset, encoding)
    )
    return Cursor(snapshot, offset, word_range, inserted=word, replaced=word)


@attrs.frozen
class _Menu:
    """The menu at a text: the entry that was selected first, and whether another one was since."""

    version: int
    entry: str
    has_moved: bool = False


class Menus:
    """Remembers the completion menu of each document, and whether the user chose the entry that is selected in it.

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
