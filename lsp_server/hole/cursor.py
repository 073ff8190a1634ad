"""Where a suggestion goes: at the cursor, behind the item selected in the completion menu, or behind a word."""

import attrs
from lsprotocol import types

from lsp_server.documents.store import Snapshot, offset_at, position_at


@attrs.frozen
class Cursor:
    """The hole's place. `snapshot` has the selected menu item inserted, if there is one, and `offset` is behind it.

    `inserted` is that item's text: each suggestion begins with it and replaces `range`, in which `replaced` stands.
    """

    snapshot: Snapshot
    offset: int
    range: types.Range
    inserted: str = ""
    replaced: str = ""

    def item(self, text: str, accepted: types.Command) -> types.InlineCompletionItem:
        """Return the item that offers `text`, what goes behind the cursor; `accepted` runs when the user takes it.

        The range always comes along: without it Neovim puts the text wherever the cursor has gone meanwhile.
        """
        insert = self.inserted + text
        # Editors drop an item whose text does not begin with what it replaces; a menu matches more loosely.
        loose = None if insert.startswith(self.replaced) else self.replaced + text
        return types.InlineCompletionItem(insert_text=insert, filter_text=loose, range=self.range, command=accepted)


def cursor_of(
    snapshot: Snapshot, params: types.InlineCompletionParams, encoding: types.PositionEncodingKind | str
) -> Cursor:
    """Return where the hole of an inline completion request is; positions outside the text are moved into it."""
    offset = offset_at(snapshot, params.position, encoding)
    selected = params.context.selected_completion_info
    if selected is None:
        here = position_at(snapshot, offset, encoding)
        return Cursor(snapshot, offset, types.Range(here, here))
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
    """Return where the hole of an ordinary completion is; its items replace the word before it by one that goes on."""
    offset = offset_at(snapshot, position, encoding)
    start = offset
    while start > 0 and (snapshot.text[start - 1].isalnum() or snapshot.text[start - 1] == "_"):
        start -= 1
    word = snapshot.text[start:offset]
    span = types.Range(position_at(snapshot, start, encoding), position_at(snapshot, offset, encoding))
    return Cursor(snapshot, offset, span, inserted=word, replaced=word)
