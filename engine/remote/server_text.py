"""A text that a server wrote into a hole, and how it becomes a candidate."""

import codecs
import math
import re
from collections.abc import Sequence

import attrs

from engine.protocol.messages import Candidate, Fill, Finish

UNKNOWN_CONFIDENCE = 0.9
"""The confidence of a text whose server gives no probabilities.

The language server shows a text that is worth its price (lsp_server/suggest/gate.py). 1.0 would be worth any price, as
if the model were certain. With 0.0 the user would never see a suggestion of the server that they named. 0.9 is worth
the default price from seven characters on. A user whose gate is a higher number sees only texts with probabilities.
"""


_TOKEN_CHARACTERS, _LEAST_CHARACTERS = 16, 256
"""A server may write so many characters for each token that was asked for. Code has about four, white space many."""
_LEAST_LOGARITHM = -1000.0


def _logarithm(value: float | None) -> float | None:
    """Return a server's number as the logarithm of a probability; that of nearly 0 if it is none."""
    if value is None:
        return None
    return _LEAST_LOGARITHM if math.isnan(value) else min(max(value, _LEAST_LOGARITHM), 0.0)


@attrs.frozen
class ServerToken:
    """The bytes of a token, which can be a part of a character, and the natural logarithm of its probability."""

    raw: bytes
    log_probability: float | None = attrs.field(converter=_logarithm)

    @property
    def confidence(self) -> float:
        """The probability, between 0 and 1."""
        if self.log_probability is None:
            return UNKNOWN_CONFIDENCE
        return math.exp(self.log_probability)


@attrs.frozen
class ServerText:
    """A text as the server sent it. `tokens` is empty when the server did not send them."""

    text: str
    tokens: Sequence[ServerToken]
    finish: Finish


def candidate_of(server_text: ServerText, fill: Fill) -> Candidate:
    """Return the text as a candidate with tokens and confidence. A fill of one line is cut at the first newline.

    The cut is needed because some servers ignore `stop` and others stop too late, or never.
    """
    text, finish = server_text.text, server_text.finish
    most = max(_LEAST_CHARACTERS, fill.max_tokens * _TOKEN_CHARACTERS)
    if len(text) > most:
        text, finish = text[:most], "canvas full"
    text = text.rstrip("\ufffd")  # the end can be half a character
    line = re.split(r"[\r\n]", text, maxsplit=1)[0] if fill.extent == "line" else text
    if len(line) < len(text):
        text, finish = line, "complete"
    tokens, confidence = _spell(text, server_text.tokens[:most])
    return Candidate(text, tokens, [round(value, 4) for value in confidence], finish)


def _spell(text: str, tokens: Sequence[ServerToken]) -> tuple[list[str], list[float]]:
    """Return the strings that make up `text` and their confidence: one for each token, or one for the whole text.

    A character that is split over several tokens belongs to the last of them. Servers also send tokens of text that
    they cut off, and some send names instead of bytes. If the tokens do not spell the text, they cannot be matched with
    it.
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


def _as_one(text: str, tokens: Sequence[ServerToken]) -> tuple[list[str], list[float]]:
    """Return the text as one token with the geometric mean of the tokens' probabilities."""
    if not text:
        return [], []
    known = [token.confidence for token in tokens if token.log_probability is not None]
    if not known:
        return [text], [UNKNOWN_CONFIDENCE]
    if min(known) <= 0.0:
        return [text], [0.0]
    return [text], [math.exp(math.fsum(math.log(value) for value in known) / len(known))]
