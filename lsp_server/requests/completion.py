"""textDocument/completion: the suggestion as an ordinary item of the menu, for editors without inline completion.

Behind the setting completionItems. The item stands last and is never preselected: the menu belongs to the language's
own server.
"""

from lsprotocol import types

from lsp_server.hole.cursor import cursor_at_word
from lsp_server.requests.session import Session
from lsp_server.suggest.suggestions import Suggestion, SuggestionRequest, Suggestions

_LABEL_CHARACTERS = 60
# Sorts behind letters, digits and what other servers use to sort theirs last.
_LAST = "~~midspan"
# Not a space: a menu that pops up with every word is in the way.
OPTIONS = types.CompletionOptions(trigger_characters=[".", "(", "[", "{", "=", ",", ":"])


class CompletionItems:
    """Turns a suggestion into an item of the completion menu."""

    def __init__(self, session: Session, suggestions: Suggestions) -> None:
        self._session = session
        self._suggestions = suggestions

    async def complete(self, params: types.CompletionParams) -> types.CompletionList:
        """Return one item at most. The list is incomplete, so that the editor asks again as the user types on."""
        if not self._session.configuration.settings.completion_items:
            return types.CompletionList(is_incomplete=False, items=[])
        request = SuggestionRequest(
            "completion",
            params.text_document.uri,
            lambda snapshot: cursor_at_word(snapshot, params.position, self._session.encoding),
        )
        found = await self._suggestions.find(request)
        return types.CompletionList(is_incomplete=True, items=[_item(one) for one in found])


def _item(suggestion: Suggestion) -> types.CompletionItem:
    text = suggestion.cursor.inserted + suggestion.text
    first, _, more = text.strip().partition("\n")
    label = first.rstrip() if len(first) <= _LABEL_CHARACTERS else first[: _LABEL_CHARACTERS - 1].rstrip() + "…"
    if more and not label.endswith("…"):
        label += " …"
    return types.CompletionItem(
        label=label,
        kind=types.CompletionItemKind.Snippet if more else types.CompletionItemKind.Text,
        detail="Midspan",
        documentation=text if label != text else None,
        sort_text=_LAST,
        # Editors match it with the text that the item replaces: with the whole text it fits however it was typed.
        filter_text=text,
        insert_text_format=types.InsertTextFormat.PlainText,
        # The lines of a suggestion have their indentation.
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(suggestion.cursor.range, text),
        command=suggestion.mark.command(),
    )
