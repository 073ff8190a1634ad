"""What all dialects share: a completion as it is asked for, and the text that was written for it."""

import math
from collections.abc import Sequence
from typing import Any, Literal, NewType, TypeVar

import attrs
import cattrs

from engine.bounds import LONGEST_NAME, MOST_NAMES
from engine.http.connection import Problem
from engine.http.rewriting import Rewriting
from engine.protocol.framing import MAX_SNIPPET_CHARACTERS, MAX_SNIPPETS, strict_converter
from engine.protocol.messages import Candidate, Extent, Fill, Filled, HoleRequest, ModelInfo, Read, Snippet, Timings

DEFAULT_BUDGET_MS = 10_000.0
"""For a request that names no time. A client that has waited enough closes the connection, which cancels."""
MOST_TOKENS = 2048
MOST_CHOICES = 8
DEFAULT_TOKENS = 64
UNBOUNDED_TOKENS = 128
"""For the negative numbers by which llama.cpp's and Ollama's clients ask for a text "until the model ends"."""
NAME = "midspan"
"""The name under which any model is served, whatever its own is."""
_NEARLY_GREEDY = 0.3

Strings = NewType("Strings", list[str])
"""One string or a list of strings, as `stop` and `prompt` can be; null is an empty list."""
_Request = TypeVar("_Request")


@attrs.frozen
class Asked:
    """A completion as a dialect asks for it. `indent` ends the text before a further line that is indented less.

    With `rewriting` the client wants a region back, in which the fill is one possible edit. With `reads` it wants no
    text: the context is to be read.
    """

    fill: Fill
    stops: tuple[str, ...] = ()
    stream: bool = False
    indent: int = 0
    rewriting: Rewriting | None = None
    reads: bool = False

    @property
    def request(self) -> HoleRequest:
        """What the engine is asked."""
        return Read.of(self.fill) if self.reads else attrs.evolve(self.fill, progress=self.stream)


@attrs.frozen
class Written:
    """A text without what its stop cut off. `stopped_by` is the string that did; "" for any other end."""

    text: str
    tokens: list[str]
    confidence: list[float]
    finish: Literal["stop", "length"]
    stopped_by: str = ""

    @property
    def log_probabilities(self) -> list[float]:
        return [round(math.log(max(value, 1e-9)), 4) for value in self.confidence]


@attrs.frozen
class Answer:
    """What was written for a completion: one or more texts, and the engine's own answer."""

    texts: list[Written]
    filled: Filled


NOTHING_FILLED = Filled(0, [], 0, "default", 0, 0, Timings(0.0, 0.0, 0.0, 0.0))
"""For an answer in which no model had a part."""


def _strings(value: Any, _: object) -> list[str]:
    strings = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(strings, list) or not all(isinstance(each, str) for each in strings):
        raise TypeError("expected a string or a list of strings")
    return strings


def _optional_bool(value: Any, _: object) -> bool | None:
    if value is not None and type(value) is not bool:
        raise TypeError(f"expected bool, got {type(value).__name__}")
    return value


def _converter() -> cattrs.Converter:
    converter = strict_converter().copy(detailed_validation=True)  # its errors name the field
    converter.register_structure_hook(Strings, _strings)
    converter.register_structure_hook(bool | None, _optional_bool)
    return converter


_CONVERTER = _converter()


def read_request(fields: dict[str, Any], request_class: type[_Request]) -> _Request:
    """Return the fields as a dialect's request; unknown ones are ignored. Raises Problem with the field's name."""
    try:
        return _CONVERTER.structure(fields, request_class)
    except cattrs.BaseValidationError as error:
        raise Problem(400, _first_line(error)) from None


def _first_line(error: cattrs.BaseValidationError) -> str:
    """Return what is wrong with the first bad field. Values are not repeated: they may be code."""
    problem, _, path = cattrs.transform_error(error, format_exception=_describe)[0].rpartition(" @ ")
    return f"{path.removeprefix('$.') or 'the body'}: {problem}"


def _describe(error: BaseException, _: type[object] | None) -> str:
    if isinstance(error, KeyError):
        return "it is missing"
    return str(error) if isinstance(error, TypeError) else "it has a wrong value"


def bounded(name: str, value: float | None, default: float, low: float, high: float) -> float:
    """Return a number of a request, or the default for null. Raises Problem for one out of its range, NaN included."""
    if value is None:
        return default
    if not low <= value <= high:
        raise Problem(400, f"{name} is {_short(value)}; it can be {low:g} to {high:g}")
    return value


def _short(value: float) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"a number of {len(text)} digits"


def temperature_of(value: float | None) -> float:
    """Return the temperature of a fill. Raises Problem.

    Plugins send 0.1 or 0.2 to get nearly the same text each time. What is drawn at such a temperature is the first text
    again, so it counts as 0: then further texts begin differently.
    """
    temperature = bounded("temperature", value, 0.0, 0.0, 2.0)
    return temperature if temperature > _NEARLY_GREEDY else 0.0


def top_p_of(value: float | None) -> float:
    """Return the share of a fill's drawn tokens. 0, which some clients send, means the least. Raises Problem."""
    return max(0.01, bounded("top_p", value, 0.95, 0.0, 1.0))


def seed_of(value: int | None) -> int:
    """Return the seed of a fill; a negative one counts as its unsigned number. Raises Problem."""
    return int(bounded("seed", value, 0, -(2**63), 2**64 - 1)) & (2**63 - 1)


def names_of(model: ModelInfo) -> list[str]:
    """Return the names under which a model is served, ours first."""
    return list(dict.fromkeys((NAME, model.name)))


def one_prompt(prompt: list[str]) -> str:
    """Return the only prompt of a request. Raises Problem for several."""
    if len(prompt) > 1:
        raise Problem(400, f"prompt has {len(prompt)} texts; send one text in each request")
    return prompt[0] if prompt else ""


def stops_of(stops: Sequence[str]) -> tuple[str, ...]:
    """Return the strings that end a text. Raises Problem when they are too many or too long."""
    if len(stops) > MOST_NAMES or any(len(stop) > LONGEST_NAME for stop in stops):
        raise Problem(400, f"stop can have at most {MOST_NAMES} strings of at most {LONGEST_NAME} characters each")
    return tuple(stop for stop in stops if stop)


def extent_of(stops: Sequence[str]) -> Extent:
    """Return how far a fill goes: who stops at a newline wants one line."""
    return "line" if "\n" in stops else "lines"


def within_limits(snippets: Sequence[Snippet]) -> list[Snippet]:
    """Return as many snippets as the engine takes, names included; the most important is first."""
    kept: list[Snippet] = []
    left = MAX_SNIPPET_CHARACTERS
    for snippet in snippets:
        left -= len(snippet.text) + len(snippet.path)
        if left < 0 or len(kept) == MAX_SNIPPETS:
            break
        kept.append(snippet)
    return kept


def answer_of(asked: Asked, filled: Filled) -> Answer:
    """Return the texts of an engine's answer, cut where the request wants."""
    return Answer([_written(asked, candidate) for candidate in filled.candidates], filled)


def _written(asked: Asked, candidate: Candidate) -> Written:
    end, stopped_by = cut(candidate.text, asked)
    tokens, confidence = list(candidate.tokens), list(candidate.confidence)
    if end < len(candidate.text):
        tokens = _shortened(tokens, end)
        confidence = confidence[: len(tokens)]
    ran_out = candidate.finish in ("canvas full", "deadline") and not stopped_by
    return Written(candidate.text[:end], tokens, confidence, "length" if ran_out else "stop", stopped_by)


def _shortened(tokens: list[str], end: int) -> list[str]:
    kept: list[str] = []
    for token in tokens:
        if end <= 0:
            break
        kept.append(token[:end])
        end -= len(token)
    return kept


def cut(text: str, asked: Asked) -> tuple[int, str]:
    """Return where a text ends, and the stop string that ends it there; "" for another end."""
    found = [(at, stop) for stop in asked.stops if (at := text.find(stop)) >= 0]
    end, stop = min(found, default=(len(text), ""))
    dedent = _dedent(text, asked.indent)
    end, stop = (dedent, "") if dedent < end else (end, stop)
    return end - text.startswith("\r\n", end - 1) * (end > 0), stop


def _dedent(text: str, indent: int) -> int:
    """Return where a line begins, with its newline, that is indented less than `indent`; the length without one."""
    if indent <= 0:
        return len(text)
    at = text.find("\n")
    while at >= 0:
        line = text[at + 1 :].partition("\n")[0]
        if line.strip() and len(line) - len(line.lstrip(" \t")) < indent:
            return at
        at = text.find("\n", at + 1)
    return len(text)


def has_crlf(request: HoleRequest) -> bool:
    """Return whether the lines around a hole end with "\\r\\n", as the files of some Windows editors do."""
    return "\r\n" in request.prefix or "\r\n" in request.suffix


def without_crlf(request: HoleRequest) -> HoleRequest:
    """Return the request with "\\n" at the ends of lines, on which models are trained."""
    prefix, suffix = (text.replace("\r\n", "\n") for text in (request.prefix, request.suffix))
    return attrs.evolve(request, prefix=prefix, suffix=suffix)


def with_crlf(filled: Filled) -> Filled:
    """Return the answer with the line ends of the client."""
    candidates = [
        attrs.evolve(each, text=crlf(each.text), tokens=[crlf(token) for token in each.tokens])
        for each in filled.candidates
    ]
    return attrs.evolve(filled, candidates=candidates)


def crlf(text: str) -> str:
    """Return a text of the model with the line ends of the client."""
    return text.replace("\n", "\r\n")


class Pieces:
    """Turns the growing text of a fill into pieces to send. No piece has what a stop may still cut off."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._sent = 0

    def grown(self, canvas: Sequence[str | None]) -> str:
        """Return the next piece of a canvas, up to its first mask; "" if nothing is certain yet."""
        first = next((index for index, token in enumerate(canvas) if token is None), len(canvas))
        text = "".join(token or "" for token in canvas[:first])
        end, stop = cut(text, self._asked)
        if not stop:
            end = min(end, len(text) - self._held(text))
        return self._next(text[:end])

    def rest(self, text: str) -> str:
        """Return the last piece of the whole text."""
        return self._next(text)

    def _next(self, text: str) -> str:
        piece = text[self._sent :]
        self._sent = max(self._sent, len(text))
        return piece

    def _held(self, text: str) -> int:
        """Return how many characters at the end may belong to a stop string, or to a line that is not yet indented."""
        held = max(
            (size for stop in self._asked.stops for size in range(1, len(stop)) if text.endswith(stop[:size])),
            default=0,
        )
        if self._asked.indent > 0:
            line = text.rpartition("\n")[2]
            held = max(held, len(line) + 1 if "\n" in text and not line.strip() else 0)
        return held + (1 if text.endswith("\ufffd") else 0)  # half a character, whose rest comes with the next token
