"""Shaping: of a model's raw fill, the part that fits the text around the hole."""

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
from lsp_server.suggest.validity import SyntaxJudge


def shape(text: str, hole: Hole, snapshot: Snapshot, max_lines: int) -> str | None:
    """Return what to insert at the hole, with the document's line ends, or None when nothing is worth showing.

    The result does not repeat what follows, closes no bracket that is already closed, keeps the hole's indentation, has
    at most `max_lines` lines, and adds no syntax error to the document.
    """
    fill = _readable(text)
    if hole.extent == "line":
        fill = fill.split("\n", 1)[0]
    else:
        fill = until_dedent(fitted(fill, hole, snapshot.language), hole, snapshot.language)
    fill = without_repetition("\n".join(fill.split("\n")[:max_lines]))
    fill = without_what_follows(fill, hole, snapshot.language)
    if not fill.strip():
        return None
    clean = SyntaxJudge(snapshot, hole).cleanest(fill)
    # The shorter fill may end with what follows again.
    fill = without_what_follows(clean, hole, snapshot.language) if clean is not None else ""
    return fill.replace("\n", snapshot.source.newline) if fill.strip() else None


def without_what_follows(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` up to where it begins to repeat the text after the hole.

    Loops: one cut can expose another.
    """
    while True:
        shorter = without_rest_of_line(fill, hole.line_after)
        shorter = without_following_lines(shorter, hole, language)
        shorter = _trimmed(without_closed_brackets(shorter, hole, language), hole)
        if shorter == fill:
            return fill
        fill = shorter


def _readable(text: str) -> str:
    """Return `text` with "\\n" line ends, up to the first NUL or undecodable character."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for junk in ("\0", "\ufffd"):
        text = text.partition(junk)[0]
    return text


def _trimmed(fill: str, hole: Hole) -> str:
    """Return `fill` without white space at its end, unless that separates it from a word after the cursor."""
    after = hole.line_after
    separates_words = after[:1].isalnum() or after[:1] in ("_", '"', "'")
    return fill if separates_words else fill.rstrip()
