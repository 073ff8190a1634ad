"""When to stay silent: of a suggestion is shown only what the model believes in."""

import attrs

from engine.protocol.confidence import line_confidence
from engine.protocol.messages import Candidate
from lsp_server.hole.hole import Hole
from lsp_server.languages.language import Language
from lsp_server.settings import Settings
from lsp_server.suggest.sure_start import sure_start


@attrs.frozen
class Shown:
    """What is shown of a suggestion; `cut` says that it is the start of its first line only."""

    text: str
    cut: bool


def let_through(candidate: Candidate, text: str, hole: Hole, language: Language, settings: Settings) -> Shown | None:
    """Return what of `text`, the shaped `candidate`, is shown: all, or the sure start of its first line, or nothing.

    A fill that the engine ended where it was no longer sure is a start, however much of it is left. The setting
    `whole_lines` leaves out starts.
    """
    if candidate.finish != "unsure" and believes(candidate, text, settings.gate):
        return Shown(text, cut=False)
    start = "" if settings.whole_lines else sure_start(candidate, text, hole, language, settings.gate)
    return Shown(start, cut=True) if start else None


def believes(candidate: Candidate, shown_text: str, threshold: float) -> bool:
    """Return whether the confidence in what is shown of `candidate` reaches `threshold`, between 0 and 1."""
    return confidence_of(candidate, shown_text) >= threshold


def confidence_of(candidate: Candidate, shown_text: str) -> float:
    """Return how likely the first shown line is right, by the tokens that it was made of.

    The first line is what the user reads first and takes or leaves; a doubtful fifth line should not hide a good first.
    Tokens that were cut off when shaping do not count, and where the line is all of the fill, its end does. 0.0 when
    there is nothing to judge by.
    """
    line = shown_text.lstrip().split("\n", 1)[0].rstrip()
    start = candidate.text.find(line) if line else -1
    if start < 0:
        start, line = 0, candidate.text
    return line_confidence(candidate, start, start + len(line))
