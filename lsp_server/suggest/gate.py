"""The gate hides what the model does not believe in. It shows a whole suggestion, the start of its line, or nothing."""

import math
import re

import attrs

from engine.protocol.confidence import FEWEST_CHARACTERS, confidence_between, first_line_confidence, start_confidence
from engine.protocol.messages import Candidate, Origin, SourceName
from lsp_server.hole.hole import Hole
from lsp_server.languages.brackets import balance
from lsp_server.languages.language import Language
from lsp_server.settings import Settings
from lsp_server.suggest.shape import without_what_follows

# A number, a name with the sign before it, a run of operators, or any other mark. A hyphen between letters may be part
# of a name (CSS, HTML, shell). So a start cannot end at such a hyphen, even if it is a minus.
_UNIT = re.compile(
    r"\d\w*(?:\.\d\w*|(?<=[eE])[+-]\d+)*"
    r"|[$@#]?\w[\w$]*(?:-[^\W\d][\w$]*)*"
    r"|[^\w\s()\[\]{}\"'`,;]+?(?=[$@#]?\w|[\s()\[\]{}\"'`,;]|$)"
    r"|\S"
)
_PAIRED = frozenset("()[]{}\"'`")
_SHORT = 5
"""Characters. A shorter start saves so little that it must be surer."""


@attrs.frozen
class Presented:
    """A text to show. `confidence` is how likely its first line is right as far as it goes, between 0 and 1.

    `is_start` says that the text is only the start of a line. `source` gave most of the whole fill, and `origins`
    are where parts of the text come from, if the fill asked for them.
    """

    text: str
    is_start: bool
    confidence: float
    source: SourceName = "model"
    origins: list[Origin] = attrs.field(factory=list)


def gated(candidate: Candidate, text: str, hole: Hole, language: Language, settings: Settings) -> Presented | None:
    """Return what to show of `text`, the shaped `candidate`, or None.

    Its first line is shown when the confidence in it reaches the setting `gate`, and what that adds to the start of
    the line is surer still (`surer`), together with the lines below that reach the gate as well; else the start. A
    fill that ended within its first line has no whole line: it was unsure, or too long for its canvas or its time.
    The setting `whole_lines` hides starts. A gate of 0 hides nothing.
    """
    confidence = first_line_confidence(candidate, text)
    start = Start("", 1.0)
    if not settings.whole_lines:
        start = confident_start(candidate, text, hole, language, settings.gate)
    has_whole_line = candidate.finish == "complete" or "\n" in candidate.text.strip()
    is_whole = confidence >= settings.gate and (has_whole_line or not settings.gate)
    if is_whole and (not start.text or confidence >= surer(settings.gate) * start.confidence):
        return Presented(_sure_lines(candidate, text, settings.gate), is_start=False, confidence=confidence)
    return Presented(start.text, is_start=True, confidence=start.confidence) if start.text else None


def _sure_lines(candidate: Candidate, text: str, gate: float) -> str:
    """Return the first line of `text` and those below it, up to the first one whose own confidence is below the gate.

    Who takes the first line, or types it, has the others on the screen after that.
    """
    lines = text.split("\n")
    position, kept = max(candidate.text.find(lines[0].strip()), 0), 1
    for number, line in enumerate(lines[1:] if gate else [], 1):
        if not (code := line.strip()):
            continue
        position = candidate.text.find(code, position)
        if position < 0 or confidence_between(candidate, position, position + len(code)) < gate:
            break
        position += len(code)
        kept = number + 1
    return "\n".join(lines[:kept]).rstrip("\r") if gate else text


def surer(gate: float) -> float:
    """Return how sure a very short start must be, and whatever lengthens a start.

    A short start saves little. What lengthens a start saves at most the key that would take it later, and puts all of
    the start at risk.
    """
    return math.sqrt(gate)


@attrs.frozen
class Start:
    """A start of a line, "" if there is none, and how likely it is right."""

    text: str
    confidence: float


def confident_start(candidate: Candidate, text: str, hole: Hole, language: Language, threshold: float) -> Start:
    """Return the start of `text`'s first line to show: its confidence reaches `threshold`, each step that is surer.

    `text` is `candidate` after shaping. A start ends after a name, a number or a mark. It does not end in a string that
    it opened itself, with the sign of a comment, or with the text that follows the cursor. Where a word follows the
    cursor immediately there is no start, as it would become part of that word.
    """
    nothing = Start("", 1.0)
    line = text.partition("\n")[0].rstrip()
    indent = len(line) - len(line.lstrip())
    begin = candidate.text.find(line[indent:])
    if begin < 0 or re.match(r"\w", hole.line_after):
        return nothing
    start = nothing
    for end in (unit.end() for unit in _UNIT.finditer(line) if unit.end() >= indent + FEWEST_CHARACTERS):
        confidence = start_confidence(candidate, begin, begin + end - indent)
        if confidence < threshold:
            break
        needed = surer(threshold) if start.text or end - indent < _SHORT else threshold
        if confidence >= needed * start.confidence and _can_end(line[:end], hole, language):
            start = Start(line[:end], confidence)
    return start


def _can_end(start: str, hole: Hole, language: Language) -> bool:
    ends_with_mark = start[-1] not in _PAIRED and not re.match(r"\w", start[-1])
    if ends_with_mark and hole.line_after.lstrip().startswith(start[-1]):
        return False
    if start.endswith(language.line_comments) or without_what_follows(start, hole, language) != start:
        return False
    return not _ends_in_own_string(start, hole, language)


def _ends_in_own_string(start: str, hole: Hole, language: Language) -> bool:
    """Return whether `start` ends in a string that it opened: half a string helps nobody, and its quote stays open."""
    quote = balance(hole.line_before, language).quote
    if hole.cursor_context in ("string", "comment") and not quote:
        return False  # There, a quote may be an apostrophe.
    inside = balance(start, language, quote)
    return bool(inside.quote) and (not quote or inside.quote_closed is not None)
