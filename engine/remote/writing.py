"""What a server wrote into a hole, and how it becomes a candidate."""

import codecs
import math
import re
from collections.abc import Sequence

import attrs

from engine.protocol.messages import Candidate, Fill, Finish

UNTOLD = 0.9
"""The confidence in a text whose server gives no probabilities: one value for all of it.

The language server shows a line that is as likely right as its gate (lsp_server/suggest/gate.py). 1.0 would say that
the model is certain, and pass every gate; 0.0 that it is surely wrong, and the user would never see anything of the
server that was named. 0.9 says no more than is known, that a model wrote this as its best guess: it is shown at the
default gate, and no longer once the user raises the gate to ask for suggestions that their model vouches for.
"""


@attrs.frozen
class WrittenToken:
    """A token's bytes, which need not be whole characters, and its natural logarithm of probability, or None."""

    raw: bytes
    log_probability: float | None

    @property
    def confidence(self) -> float:
        """The probability, between 0 and 1."""
        if self.log_probability is None:
            return UNTOLD
        return math.exp(min(0.0, self.log_probability)) if self.log_probability == self.log_probability else 0.0


@attrs.frozen
class Writing:
    """A text as the server gave it, and its tokens where the server told them."""

    text: str
    tokens: Sequence[WrittenToken]
    finish: Finish


def candidate_of(writing: Writing, fill: Fill) -> Candidate:
    """Return the candidate of a fill: cut at the first newline where it is to be one line, and with its tokens.

    A server may not know `stop`, and one may stop late.
    """
    text, finish = writing.text.rstrip("\ufffd"), writing.finish  # half a character at the end is none
    line = re.split(r"[\r\n]", text, maxsplit=1)[0] if fill.extent == "line" else text
    if len(line) < len(text):
        text, finish = line, "complete"
    tokens, confidence = _spell(text, writing.tokens)
    return Candidate(text, tokens, [round(value, 4) for value in confidence], finish)


def _spell(text: str, tokens: Sequence[WrittenToken]) -> tuple[list[str], list[float]]:
    """Return the strings that make up `text`, with their confidence: one a token, or all of it as one.

    A character that is split over tokens goes to the last of them. Servers give tokens of what they cut off, and some
    give names in place of bytes; where the tokens do not spell the text they cannot be laid over it.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces: list[str] = []
    confidence: list[float] = []
    missing = text
    for token in tokens:
        piece = decoder.decode(token.raw)
        if not missing:
            break
        if not missing.startswith(piece[: len(missing)]):
            return _as_one(text, tokens)
        pieces.append(piece[: len(missing)])
        confidence.append(token.confidence)
        missing = missing[len(piece) :]
    return _as_one(text, tokens) if missing else (pieces, confidence)


def _as_one(text: str, tokens: Sequence[WrittenToken]) -> tuple[list[str], list[float]]:
    if not text:
        return [], []
    told = [token.confidence for token in tokens if token.log_probability is not None]
    if not told:
        return [text], [UNTOLD]
    if min(told) <= 0.0:
        return [text], [0.0]
    return [text], [math.exp(math.fsum(math.log(value) for value in told) / len(told))]
