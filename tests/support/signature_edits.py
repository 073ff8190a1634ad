"""Edits of a signature by hand, and a text when its calls have followed."""

from engine.protocol.rewrite import changed_part
from lsp_server.documents.edits import RecentEdits
from lsp_server.refactor.signatures import SignatureChange, signature_change


def changed(path: str, text: str, *steps: tuple[str, str]) -> tuple[SignatureChange | None, str]:
    """Return what edits by hand leave to do, and the text after them."""
    edits = RecentEdits()
    for old, new in steps:
        after = text.replace(old, new, 1)
        start, end, new_end = changed_part(text, after)
        edits, text = edits.changed(text, start, end, after, new_end), after
    return signature_change(edits.all, "", path), text


def followed(path: str, text: str, *steps: tuple[str, str]) -> str:
    """Return the text after edits by hand when all calls have followed, with NEW for what a model would write."""
    change, text = changed(path, text, *steps)
    return with_all(change, text)


def with_all(change: SignatureChange | None, text: str) -> str:
    """Return a text when all calls that were found have followed."""
    for call in reversed(change.places if change is not None else ()):
        written = call.place.written(["NEW"] * len(call.parameters))
        text = text[: call.place.start] + written + text[call.place.end :]
    return text
