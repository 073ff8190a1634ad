"""textDocument/completion: the suggestion as an item of the completion menu, for editors without inline completion.

The setting completionItems turns it on. The item is the last one and never preselected: the menu belongs to the
language's own server.
"""

from lsprotocol import types

from lsp_server.hole.cursor import cursor_at_word
from lsp_server.requests.session import Session
from lsp_server.requests.suggestion import Suggestion, SuggestionRequest
from lsp_server.requests.suggestions import Suggestions

_MAX_LABEL = 60
# Sorts after letters, digits and what other servers use to sort their items last.
_SORTS_LAST = "~~midspan"
# No space: a menu that opens at every word is in the way.
OPTIONS = types.CompletionOptions(trigger_characters=[".", "(", "[", "{", "=", ",", ":"])


class CompletionItems:
    """Turns a suggestion into an item of the completion menu."""

    def __init__(self, session: Session, suggestions: Suggestions) -> None:
        self._session = session
        self._suggestions = suggestions

    async def complete(self, params: types.CompletionParams) -> types.CompletionList:
        """Return at most one item. The list is incomplete, so the editor asks again while the user types on."""
        if not self._session.configuration.settings.completion_items:
            return types.CompletionList(is_incomplete=False, items=[])
        request = SuggestionRequest(
            "completion",
            params.text_document.uri,
            lambda snapshot: cursor_at_word(snapshot, params.position, self._session.encoding),
        )
        suggestions = await self._suggestions.find(request)
        return types.CompletionList(is_incomplete=True, items=[_item(each) for each in suggestions])


def _item(suggestion: Suggestion) -> types.CompletionItem:
    text = suggestion.cursor.inserted + suggestion.text
    first, _, more = text.strip().partition("\n")
    label = first.rstrip() if len(first) <= _MAX_LABEL else first[: _MAX_LABEL - 1].rstrip() + "…"
    if more and not label.endswith("…"):
        label += " …"
    return types.CompletionItem(
        label=label,
        kind=types.CompletionItemKind.Snippet if more else types.CompletionItemKind.Text,
        detail="Midspan",
        documentation=text if label != text else None,
        sort_text=_SORTS_LAST,
        # Editors match this with the text that the item replaces; the whole text matches however the user typed it.
        filter_text=text,
        insert_text_format=types.InsertTextFormat.PlainText,
        # The lines of a suggestion are already indented.
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(suggestion.cursor.range, text),
        command=suggestion.tag.command(),
    )
