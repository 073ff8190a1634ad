"""As much of a line as the model is sure of, where it is not sure of all of it, ended where a person would pause."""

import re

from engine.protocol.confidence import FEWEST_CHARACTERS, sure_until
from engine.protocol.messages import Candidate
from lsp_server.hole.hole import Hole
from lsp_server.languages.brackets import balance
from lsp_server.languages.language import Language
from lsp_server.suggest.shape import ended

# A number, a name with the sign before it, a run of operators, or any other mark. A hyphen between letters may be part
# of a name (CSS, HTML, shell); where it is a minus, one place to pause is lost.
_UNIT = re.compile(
    r"\d\w*(?:\.\d\w*|(?<=[eE])[+-]\d+)*"
    r"|[$@#]?\w[\w$]*(?:-[^\W\d][\w$]*)*"
    r"|[^\w\s()\[\]{}\"'`,;]+?(?=[$@#]?\w|[\s()\[\]{}\"'`,;]|$)"
    r"|\S"
)
_PAIRED = frozenset("()[]{}\"'`")


def sure_start(candidate: Candidate, text: str, hole: Hole, language: Language, threshold: float) -> str:
    """Return the longest start of `text`'s first line that is as likely right as `threshold`, or "".

    `text` is `candidate` shaped. A start ends behind a name, a number or a mark, not in a string that it opened itself,
    not with the sign of a comment, and not with what follows the cursor. Where a word follows the cursor at once there
    is none: it would become part of that.
    """
    line = text.partition("\n")[0].rstrip()
    indent = len(line) - len(line.lstrip())
    begin = candidate.text.find(line[indent:])
    if begin < 0 or re.match(r"\w", hole.line_after):
        return ""
    sure = indent + sure_until(candidate, begin, threshold) - begin
    stops = [unit.end() for unit in _UNIT.finditer(line) if indent + FEWEST_CHARACTERS <= unit.end() <= sure]
    starts = (line[:stop] for stop in reversed(stops))
    return next((start for start in starts if _can_end(start, hole, language)), "")


def _can_end(start: str, hole: Hole, language: Language) -> bool:
    separates = start[-1] not in _PAIRED and not re.match(r"\w", start[-1])
    if separates and hole.line_after.lstrip().startswith(start[-1]):
        return False
    if start.endswith(language.line_comments) or ended(start, hole, language) != start:
        return False
    return not _opens_string(start, hole, language)


def _opens_string(start: str, hole: Hole, language: Language) -> bool:
    """Return whether `start` ends in a string that it opened: half a text is no help, and its quote is left open."""
    quote = balance(hole.line_before, language).quote
    if hole.place in ("string", "comment") and not quote:
        return False  # A quote may be an apostrophe there.
    inside = balance(start, language, quote)
    return bool(inside.quote) and (not quote or inside.quote_closed is not None)
