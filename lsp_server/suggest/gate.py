"""The gate hides what the model does not believe in. It shows a whole suggestion, the start of its line, or nothing."""

import attrs

from engine.protocol.confidence import first_line_confidence
from engine.protocol.messages import Candidate
from lsp_server.hole.hole import Hole
from lsp_server.languages.language import Language
from lsp_server.settings import Settings
from lsp_server.suggest.line_start import confident_start


@attrs.frozen
class Presented:
    """A text to show. `confidence` is how likely the first line of the whole shaped fill is right, between 0 and 1.

    `is_start` says that the text is only the start of that line.
    """

    text: str
    is_start: bool
    confidence: float


def gated(candidate: Candidate, text: str, hole: Hole, language: Language, settings: Settings) -> Presented | None:
    """Return what to show of `text`, the shaped `candidate`, or None.

    All of it is shown when the confidence in its first line reaches the setting `gate`, else the longest start of that
    line that reaches it. A fill that the engine ended as unsure has no whole line. The setting `whole_lines` hides
    starts.
    """
    confidence = first_line_confidence(candidate, text)
    if candidate.finish != "unsure" and confidence >= settings.gate:
        return Presented(text, is_start=False, confidence=confidence)
    start = "" if settings.whole_lines else confident_start(candidate, text, hole, language, settings.gate)
    return Presented(start, is_start=True, confidence=confidence) if start else None
