"""textDocument/inlineCompletion, and the editors' notifications about its items.

The answer is always a list, empty if need be: null or an error would leave a stale suggestion on the screen of some
editors, and show an error message in others.
"""

from lsprotocol import types

from lsp_server.hole.cursor import cursor_of
from lsp_server.requests.session import Session
from lsp_server.requests.suggestion import MAX_SUGGESTIONS, SuggestionRequest
from lsp_server.requests.suggestions import Suggestions
from lsp_server.wire import ItemShown, PartParams, ShownParams


class InlineCompletions:
    """Turns suggestions into items, and the editor's notifications about items into counts."""

    def __init__(self, session: Session, suggestions: Suggestions) -> None:
        self._session = session
        self._suggestions = suggestions

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList:
        """Return the items: at most one for an automatic request, at most three when the user asked.

        Raises asyncio.CancelledError only, when the editor cancels the request.
        """
        automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
        request = SuggestionRequest(
            "inline completion",
            params.text_document.uri,
            lambda snapshot: cursor_of(snapshot, params, self._session.encoding),
            candidates=1 if automatic else MAX_SUGGESTIONS,
            waits=True,
        )
        suggestions = await self._suggestions.find(request)
        items = [each.cursor.item(each.text, each.tag.command()) for each in suggestions]
        return types.InlineCompletionList(items=items)

    def shown(self, params: ShownParams) -> None:
        """Count an item that the editor shows. Items of other servers are ignored."""
        if params.item.tag is not None:
            self._session.offers.shown(params.item.tag)

    def partly_accepted(self, params: PartParams) -> None:
        """Count the part of an item that the user took. Items of other servers are ignored."""
        if params.item.tag is not None:
            characters = _accepted_characters(params.item, params.accepted_length, params.item.tag.characters)
            self._session.offers.partly_accepted(params.item.tag, characters)


def _accepted_characters(item: ItemShown, accepted_length: int, characters: int) -> int:
    """Return how many of a suggestion's `characters` the first `accepted_length` UTF-16 units of its item contain."""
    text, units = item.insert_text, max(accepted_length, 0)
    if text is None:
        return min(units, characters)
    accepted = text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "replace")
    # The text may begin with the selected item of the completion menu, which is not ours.
    return max(0, len(accepted) - max(0, len(text) - characters))
