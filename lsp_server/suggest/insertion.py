"""What may be shown directly before a word, where code is inserted: an argument, the start of a call.

How sure the embedded model is of its tokens says little there. Whether the line then goes on as it does says more: most
fills are wrong, but hardly any that ends where the word begins and leaves no bracket open. With a larger model that
writes left to right it is the reverse: what it is sure of is right. So the odds of an insertion come from both, and
each kind of model has its own. benchmarks/quality/insertions.py fits them.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal, get_args

import attrs

from engine.protocol.confidence import FEWEST_CHARACTERS, confidence_between
from engine.protocol.messages import Candidate
from lsp_server.hole.hole import Hole
from lsp_server.languages.language import Language, balance

GUESSES = 3
"""Candidates to ask for. The second or third is right at one place of ten, and the line tells which."""
LEAST_LINE = 0.02
"""How likely the first line must be for its fill to go on: an unlikely one may fit the line."""
Agreement = Literal["goes on", "same word", "ended", "none"]
"""How a fill agrees with the code after the cursor: it goes on with it, at least with its first word, or ends there."""


@attrs.frozen
class Odds:
    """How likely an insertion of a model is right, as logarithms of odds.

    `agreement` is for a text whose tokens are certain, `closes` is added if the text opens a bracket that the line
    closes, and `sureness` is the weight of the probability's logarithm. An insertion is priced like a text of `counted`
    characters: a user in the middle of a line wants to insert something, and reads it at a glance.
    """

    agreement: Mapping[Agreement, float]
    closes: float
    sureness: float
    counted: int


ODDS = Odds({"goes on": 3.4, "same word": 1.7, "ended": -0.5, "none": -1.1}, closes=2.0, sureness=0.9, counted=20)
DOUBTED = Odds(dict.fromkeys(get_args(Agreement), 2.5), closes=0.0, sureness=2.0, counted=8)
"""Of a model that is surer than it is right, chosen with Qwen2.5-Coder 0.5B at 150 places of the young packages that
may choose: 56 % shown, 93 % right. At 150 places of the others 61 % are shown and 91 % right."""
_LEAST = 1e-6
_MOST_CHARACTERS = 400
"""The insertion, and the line before and after it."""
_OPEN_END = re.compile(r"[^\w)\]}\"'`]$")
"""A word can follow this directly. After a name, or a whole expression, it cannot."""
_SEPARATED = re.compile(r"(?:[,;]\s+|\()$")
_WORD = re.compile(r"\w+")


@attrs.frozen
class Insertion:
    """A text that may be inserted before a word, and how likely it is right."""

    text: str
    agreement: Agreement
    closes: bool
    probability: float
    """Its tokens', by the model."""
    odds: Odds = ODDS

    @property
    def confidence(self) -> float:
        known = self.odds
        sureness = known.sureness * math.log(max(self.probability, _LEAST))
        return 1 / (1 + math.exp(-(known.agreement[self.agreement] + known.closes * self.closes + sureness)))

    @property
    def is_start(self) -> bool:
        """Whether the model would write more before the word."""
        return self.agreement == "none"


def likeliest(candidate: Candidate, hole: Hole, language: Language, odds: Odds = ODDS) -> Insertion | None:
    """Return the likeliest insertion that `candidate` begins with, or None if it begins with none."""
    return max(insertions(candidate, hole, language, odds), key=lambda each: each.confidence, default=None)


def insertions(candidate: Candidate, hole: Hole, language: Language, odds: Odds = ODDS) -> Iterator[Insertion]:
    """Yield what `candidate` begins with and a word can follow.

    It closes no bracket that the line needs, and opens none that the line leaves open.
    """
    line, newline, _ = candidate.text[:_MOST_CHARACTERS].partition("\n")
    before, after = hole.line_before[-_MOST_CHARACTERS:], hole.line_after[:_MOST_CHARACTERS].rstrip()
    without, is_dense = balance(before + after, language), re.search(r",\w", before + after) is not None
    has_ended = candidate.finish == "complete" and not newline
    for end in range(FEWEST_CHARACTERS, len(line) + 1):
        text, more = line[:end], line[end:].rstrip()
        if text.endswith(",") and not is_dense:
            text += " "
        if not _OPEN_END.search(text) or text.rstrip().endswith(language.line_comments):
            continue
        if len(text) > end and line[end : end + 1] == " ":
            continue  # It is the same with its own space.
        if line[end:].isspace():
            continue  # Its last space separates it from the word.
        agreement = _agreement(more, after, has_ended)
        if agreement == "none" and not _SEPARATED.search(text):
            continue
        with_it = balance(before + text + after, language)
        if len(with_it.unmatched) <= len(without.unmatched) and len(with_it.opened) <= len(without.opened):
            closes = len(with_it.unmatched) < len(without.unmatched)
            yield Insertion(text, agreement, closes, confidence_between(candidate, 0, end), odds)


def _agreement(more: str, after: str, has_ended: bool) -> Agreement:
    """Return how a fill that goes on with `more` agrees with `after`, the code after the cursor."""
    if not more:
        return "ended" if has_ended else "none"
    if after.startswith(more) or more.startswith(after):
        return "goes on"
    word, next_word = _WORD.match(more), _WORD.match(after)
    return "same word" if word and next_word and word[0] == next_word[0] else "none"
