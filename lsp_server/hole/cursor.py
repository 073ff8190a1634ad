"""Where a suggestion is inserted: at the cursor, after the selected item of the completion menu, or after a word."""

import attrs
from lsprotocol import types

from lsp_server.documents.store import Snapshot, offset_at, position_at


@attrs.frozen
class Cursor:
    """The place of a hole. `snapshot` has the selected menu item inserted, if there is one, and `offset` is its end.

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
    offset = offset_at(snapshot, params.position, encoding)
    selected = params.context.selected_completion_info
    if selected is None:
        position = position_at(snapshot, offset, encoding)
        return Cursor(snapshot, offset, types.Range(position, position))
    start = offset_at(snapshot, selected.range.start, encoding)
    end = max(start, offset_at(snapshot, selected.range.end, encoding))
    return Cursor(
        snapshot.replaced(start, end, selected.text),
        start + len(selected.text),
        selected.range,
        inserted=selected.text,
        replaced=snapshot.text[start:end],
    )


def cursor_at_word(snapshot: Snapshot, position: types.Position, encoding: types.PositionEncodingKind | str) -> Cursor:
    """Return the cursor of a completion request. Its items replace the word before the cursor by a longer text."""
    offset = offset_at(snapshot, position, encoding)
    start = offset
    while start > 0 and (snapshot.text[start - 1].isalnum() or snapshot.text[start - 1] == "_"):
        start -= 1
    word = snapshot.text[start:offset]
    word_range = types.Range(position_at(snapshot, start, encoding), position_at(snapshot, offset, encoding))
    return Cursor(snapshot, offset, word_range, inserted=word, replaced=word)
