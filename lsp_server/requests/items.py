"""Suggestions as items of textDocument/inlineCompletion and textDocument/completion, and what editors report."""

import attrs
from lsprotocol import types

from lsp_server import wire
from lsp_server.hole.hole import cursor_at_word, cursor_of, indent_of
from lsp_server.requests.desk import SuggestionRequest
from lsp_server.requests.suggestions import MAX_SUGGESTIONS, Suggestions
from lsp_server.session import Session
from lsp_server.suggest.reuse import Suggestion

_MAX_LABEL = 60
# Sorts after letters, digits and what other servers use to sort their items last.
_SORTS_LAST = "~~midspan"


class InlineCompletions:
    """Turns suggestions into items, and the editor's notifications about items into counts.

    The answer is always a list, empty if need be: null or an error would leave a stale suggestion on the screen of some
    editors, and show an error message in others.
    """

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

    def shown(self, params: wire.ShownParams) -> None:
        """Count an item that the editor shows. Items of other servers are ignored."""
        if params.item.tag is not None:
            self._session.offers.shown(params.item.tag)

    def partly_accepted(self, params: wire.PartParams) -> None:
        """Count the part of an item that the user took. Items of other servers are ignored."""
        if params.item.tag is not None:
            characters = _accepted_characters(params.item, params.accepted_length, params.item.tag.characters)
            self._session.offers.partly_accepted(params.item.tag, characters)


def _accepted_characters(item: wire.ItemShown, accepted_length: int, characters: int) -> int:
    """Return how many of a suggestion's `characters` the first `accepted_length` UTF-16 units of its item contain."""
    text, units = item.insert_text, max(accepted_length, 0)
    if text is None:
        return min(units, characters)
    accepted = text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "replace")
    # The text may begin with the selected item of the completion menu, which is not ours.
    return max(0, len(accepted) - max(0, len(text) - characters))


class CompletionItems:
    """Turns a suggestion into an item of the completion menu, for editors without inline completion.

    The setting completionItems turns it on. The item is the last one and never preselected: the menu belongs to the
    language's own server.
    """

    def __init__(self, session: Session, suggestions: Suggestions) -> None:
        self._session = session
        self._suggestions = suggestions
        self.insert_mode = InsertMode()

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
        return types.CompletionList(is_incomplete=True, items=[self._item(each) for each in suggestions])

    def _item(self, suggestion: Suggestion) -> types.CompletionItem:
        cursor = suggestion.cursor
        text, line = cursor.inserted + suggestion.text, cursor.snapshot.source.line_text(cursor.range.start.line)
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
            insert_text_mode=self.insert_mode.mode,
            text_edit=types.TextEdit(cursor.range, self.insert_mode.fit(text, line)),
            command=suggestion.tag.command(),
        )


@attrs.frozen
class InsertMode:
    """What the editor does to the indentation of an inserted text's lines. `mode` is None where items cannot say it."""

    mode: types.InsertTextMode | None = None
    adjusts: bool = False

    @classmethod
    def of(cls, capabilities: types.ClientCapabilities) -> "InsertMode":
        """Return the way of an editor. The lines of a suggestion are already indented, so as they are is best."""
        completion = capabilities.text_document.completion if capabilities.text_document is not None else None
        item = completion.completion_item if completion is not None else None
        support = item.insert_text_mode_support if item is not None else None
        modes = support.value_set if support is not None else ()
        if types.InsertTextMode.AsIs in modes:
            return cls(types.InsertTextMode.AsIs)
        if types.InsertTextMode.AdjustIndentation in modes:
            return cls(types.InsertTextMode.AdjustIndentation, adjusts=True)
        default = completion.insert_text_mode if completion is not None else None
        return cls(None, adjusts=default == types.InsertTextMode.AdjustIndentation)

    def fit(self, text: str, line: str) -> str:
        """Return a text for this line of the document, without the indentation that the editor adds."""
        return text.replace(f"\n{indent_of(line)}", "\n") if self.adjusts else text
