"""What of a model's raw fill is shown: the part that fits what stands around the hole."""

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Hole
from lsp_server.languages.language import Language
from lsp_server.suggest.indentation import fitted, until_dedent
from lsp_server.suggest.overlap import (
    without_closed_brackets,
    without_following_lines,
    without_repetition,
    without_rest_of_line,
)
from lsp_server.suggest.validity import Judge


def shape(text: str, hole: Hole, snapshot: Snapshot, max_lines: int) -> str | None:
    """Return what to insert at the hole, with the document's line ends, or None when nothing is worth showing.

    The result does not repeat what follows, closes no bracket that is closed already, keeps to the hole's indentation,
    has `max_lines` lines at most, and adds no syntax error that the document did not have.
    """
    fill = _readable(text)
    if hole.extent == "line":
        fill = fill.split("\n", 1)[0]
    else:
        fill = until_dedent(fitted(fill, hole, snapshot.language), hole, snapshot.language)
    fill = without_repetition("\n".join(fill.split("\n")[:max_lines]))
    fill = ended(fill, hole, snapshot.language)
    if not fill.strip():
        return None
    clean = Judge(snapshot, hole).cleanest(fill)
    # A shorter part may end in what follows again.
    fill = ended(clean, hole, snapshot.language) if clean is not None else ""
    return fill.replace("\n", snapshot.source.newline) if fill.strip() else None


def _readable(text: str) -> str:
    """Return `text` with plain line ends, up to the first character that cannot be meant: NUL or a broken one."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for junk in ("\0", "\ufffd"):
        text = text.partition(junk)[0]
    return text


def ended(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` ended where it begins to repeat what follows. BatchLookup itself: each cut may lay another bare."""
    while True:
        shorter = without_rest_of_line(fill, hole.line_after)
        shorter = without_following_lines(shorter, hole, language)
        shorter = _trimmed(without_closed_brackets(shorter, hole, language), hole)
        if shorter == fill:
            return fill
        fill = shorter


def _trimmed(fill: str, hole: Hole) -> str:
    """Return `fill` without blanks at its end, but for those that part it from a word after the cursor."""
    after = hole.line_after
    parts_words = after[:1].isalnum() or after[:1] in ("_", '"', "'")
    return fill if parts_words else fill.rstrip()
