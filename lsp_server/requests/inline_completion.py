"""textDocument/inlineCompletion, and what editors tell about its items.

No answer is an empty list: an error or null would leave a stale suggestion on the screen of some editors, and a toast
on that of others.
"""

from lsprotocol import types

from lsp_server.hole.cursor import cursor_of
from lsp_server.messages import ItemShown, PartParams
from lsp_server.requests.session import Session
from lsp_server.suggest.suggestions import MOST_SUGGESTIONS, SuggestionRequest, Suggestions


class InlineCompletions:
    """Turns suggestions into items, and the editor's notifications about items into counts."""

    def __init__(self, session: Session, suggestions: Suggestions) -> None:
        self._session = session
        self._suggestions = suggestions

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList:
        """Return the items: one at most when asked automatically, three at most when the user asked.

        Raises asyncio.CancelledError only, when the editor cancels the request.
        """
        automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
        request = SuggestionRequest(
            "inline completion",
            params.text_document.uri,
            lambda snapshot: cursor_of(snapshot, params, self._session.encoding),
            candidates=1 if automatic else MOST_SUGGESTIONS,
        )
        found = await self._suggestions.find(request)
        return types.InlineCompletionList(items=[one.cursor.item(one.text, one.mark.command()) for one in found])

    def shown(self, item: ItemShown) -> None:
        """Count an item that the editor says it shows; one that is not ours is ignored."""
        if item.mark is not None:
            self._session.offers.shown(item.mark)

    def partly_accepted(self, part: PartParams) -> None:
        """Count the part of an item that the editor says was taken; of one that is not ours nothing is counted."""
        if part.item.mark is not None:
            self._session.offers.partly_accepted(part.item.mark, _characters(part, part.item.mark.characters))


def _characters(part: PartParams, most: int) -> int:
    """Return how many characters of a suggestion a part has; `most` is all of them."""
    text, units = part.item.insert_text, max(part.accepted_length, 0)
    if text is None:
        return min(units, most)
    taken = text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "replace")
    # The text may begin with what is selected in the completion menu, which is not ours.
    return max(0, len(taken) - max(0, len(text) - most))
