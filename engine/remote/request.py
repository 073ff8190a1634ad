"""What all dialects share: JSON bodies, requests that run at once, and how a server's text becomes a candidate."""

import asyncio
import codecs
import json
import math
import re
from collections.abc import Collection, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from engine.json_file import parse_json
from engine.protocol.framing import strict_converter
from engine.protocol.messages import Candidate, Fill, Finish, left_edge

UNKNOWN_CONFIDENCE = 0.9
"""The confidence of a text whose server gives no probabilities.

The language server shows a text that is worth its price (lsp_server/suggest/pipeline.py). 1.0 would be worth any
price, as if the model were certain. With 0.0 the user would never see a suggestion of the server that they named. 0.9
is worth the default price from seven characters on. A user whose gate is a higher number sees only texts with
probabilities.
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
class SpelledToken:
    """A token in the form of the chat interface, which llama.cpp uses for all that it answers."""

    token: str
    logprob: float | None = None
    bytes: list[int] | None = None

    def to_server_token(self) -> ServerToken:
        raw = self.token.encode(errors="replace") if self.bytes is None else bytes(byte & 255 for byte in self.bytes)
        return ServerToken(raw, self.logprob)


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


_MOST_TOKENS = 2**31 - 1


def _count(number: int) -> int:
    """Return a server's count as one that a frame can hold: it may say anything."""
    return min(max(number, 0), _MOST_TOKENS)


@attrs.frozen
class ServerAnswer:
    """A server's texts for one hole, the greedy one first, and the size of the context in tokens.

    The server had `cached_tokens` of the `context_tokens` in its cache.
    """

    texts: Sequence[ServerText]
    context_tokens: int = attrs.field(default=0, converter=_count)
    cached_tokens: int = attrs.field(default=0, converter=_count)


class Dialect(Protocol):
    """Asks one server."""

    async def ask(self, fill: Fill, deadline: float) -> ServerAnswer:
        """Have a hole filled until `deadline`, in seconds of the event loop's clock.

        Raises RemoteError in one line, and TimeoutError at the deadline.
        """
        ...


PREFIX_CHARACTERS = 12_000
SUFFIX_CHARACTERS = 4_000
SNIPPET_CHARACTERS = 8_000
"""All snippets together."""
_STRIDE = 2_000


@attrs.frozen
class FimTags:
    """The tags that a model was trained on: before the prefix, before the suffix and before the middle."""

    prefix: str
    suffix: str
    middle: str

    def prompt(self, prefix: str, suffix: str) -> str:
        """Return the prompt that the model continues with the middle."""
        return f"{self.prefix}{prefix}{self.suffix}{suffix}{self.middle}"


_PIPED = FimTags("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_FAMILIES = {
    "qwen": _PIPED,
    "codegemma": _PIPED,
    "starcoder": FimTags("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    "granite": FimTags("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    "codellama": FimTags("<PRE> ", " <SUF>", " <MID>"),
    "deepseek-coder": FimTags("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001  # these are its tokens
}
KNOWN_FAMILIES = ", ".join(_FAMILIES)
ALL_TAGS = tuple(dict.fromkeys(_FAMILIES.values()))


def tags_of(model: str) -> FimTags | None:
    """Return the tags of a model whose name contains a known family's; None for all other names."""
    name = model.lower()
    return next((tags for family, tags in _FAMILIES.items() if family in name), None)


def clip_prefix(prefix: str) -> str:
    """Return the end of a prefix, at most PREFIX_CHARACTERS of it.

    The left edge moves in strides. So consecutive requests begin with the same text, and the server can reuse its
    cache.
    """
    return prefix[left_edge(len(prefix), PREFIX_CHARACTERS, _STRIDE) :]


def clip_suffix(suffix: str) -> str:
    """Return the beginning of a suffix, at most SUFFIX_CHARACTERS of it."""
    return suffix[:SUFFIX_CHARACTERS]


_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")
_converter = strict_converter()


def write_json(request: attrs.AttrsInstance, omitted: Collection[str] = ()) -> str:
    """Return a request as JSON, without the fields that are None or named in `omitted`."""
    fields = attrs.asdict(request).items()
    return json.dumps({name: value for name, value in fields if value is not None and name not in omitted})


def read_json(body: bytes, answer_class: type[_Answer]) -> _Answer | None:
    """Return the answer in `body`; None when it is not JSON or has another shape. Unknown fields are ignored."""
    try:
        return _converter.structure(parse_json(body), answer_class)
    except Exception:  # cattrs raises what a bad body provokes: ValueError, TypeError, KeyError
        return None


async def run_together(coroutines: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Run the requests of one fill at once and return their results in order.

    Raises the first exception after cancelling the other requests.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except* Exception as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
