"""The request midspan/whyThisSuggestion: where the last suggestion in a document came from."""

import attrs
from lsprotocol import types

WHY = "midspan/whyThisSuggestion"


@attrs.frozen
class WhyParams:
    """Asks about the last suggestion that was offered in a document, whatever the user did with it."""

    text_document: types.TextDocumentIdentifier


@attrs.frozen
class WhyRequest:
    """The JSON-RPC request around WhyParams."""

    id: int | str
    params: WhyParams
    method: str = WHY
    jsonrpc: str = "2.0"


@attrs.frozen
class WhyPlace:
    """A part of the suggestion that stands elsewhere too. `text` is a line to show, `line` counts from 0."""

    text: str
    uri: str
    line: int


@attrs.frozen
class WhyAnswer:
    """`summary` is one line about the whole suggestion. `places` are in the order of its text."""

    summary: str
    places: list[WhyPlace] = attrs.field(factory=list)
