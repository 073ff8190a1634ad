"""The messages that a client and the engine send each other. framing.py turns them into bytes."""

import math
from typing import Literal

import attrs

from engine.protocol.memory_messages import MemoryRequest, MemoryStatus, MemoryUpdated
from engine.protocol.rewrite import Rewrite

PROTOCOL_VERSION = 9

Extent = Literal["line", "lines"]
Finish = Literal["complete", "deadline", "cancelled", "canvas full", "unsure"]
RuleName = Literal["default", "threshold", "entropy", "verify", "left-to-right"]
DENOISING_RULES: tuple[RuleName, ...] = ("threshold", "entropy")
"""Those that commit several tokens in one step, each chosen without the others."""
MemoryName = Literal["workspace", "file", "off"]
SourceName = Literal["model", "file", "workspace"]
CellState = Literal["written", "verified", "refused", "draft", "mask"]
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\t"), ord("\n"), ord("\r")}
_BIDIRECTIONAL = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_TAGS = set(range(0xE0000, 0xE0080))
_UNSEEN = {0x200B, 0x2028, 0x2029, *range(0x2060, 0x2065), 0xFEFF}
_CUT = dict.fromkeys(_CONTROLS - {0} | _BIDIRECTIONAL | _TAGS | _UNSEEN)
"""What a model, a server and a repository could put into ghost text and into a terminal, and what changes how a reader
sees other text: escape sequences, backspaces, bidirectional controls, tags, spaces of no width, line ends that no
editor shows. NUL stays: a suggestion ends there (lsp_server/suggest/shape.py). The joiners U+200C and U+200D stay too:
Persian and emoji are written with them."""


def plain(text: str) -> str:
    """Return `text` without control characters, except tab, newline, return and NUL, and without those of _CUT."""
    return text if text.isascii() and text.isprintable() else text.translate(_CUT)


def plain_all(texts: list[str]) -> list[str]:
    """Return each text as `plain` does."""
    return [plain(text) for text in texts]


def finite(value: float) -> float:
    """Return a number that JSON can say: 0 for one that is none. Finite weights can overflow to it."""
    return value if math.isfinite(value) else 0.0


def finite_all(values: list[float]) -> list[float]:
    """Return each number as `finite` does."""
    return [finite(value) for value in values]


def _finite_or_none(value: float | None) -> float | None:
    return None if value is None else finite(value)


@attrs.frozen
class Cell:
    """What a pass made of one position of the canvas. A refused cell shares its position with what is there instead.

    `at` is the position, from 0. `state` is "written" for a token that the pass chose itself, "verified" for one that a
    draft had too, "refused" for one that a draft had and the pass threw away, "draft" for one that the next pass
    verifies, and "mask" for a position without any. Then `text` is what the pass would have put there, "" if it made no
    guess. `probability` is that of the token or the guess; None where it is not known. `shares` are the parts of a
    committed token's probability that the model, this file and the workspace gave; empty without a memory.
    """

    at: int
    state: CellState
    text: str = attrs.field(default="", converter=plain)
    probability: float | None = attrs.field(default=None, converter=_finite_or_none)
    shares: list[float] = attrs.field(factory=list, converter=finite_all)


@attrs.frozen
class Hello:
    """A client's first message. `token` is needed on TCP only.

    The client reads it from a file that only the user can read.
    """

    protocol: int
    client: str
    token: str = ""


@attrs.frozen
class ModelInfo:
    """Facts about a model.

    `server` is the host and port of a remote model and "" for a local one. `context_tokens` is the size of the model's
    window. `reading_tokens` is how much of the window to fill while the user types; 0 means all of it. A model that
    cannot cache its context asks for less, because it reads all of it again after each key. `doubt` says how many times
    dearer a wrong text of it counts when somebody decides what to show: above 1 if it is surer than it is right.
    `edits` is the format in which it takes a Rewrite, "" if it takes none.
    """

    name: str
    family: str
    licence: str
    parameters: int
    context_tokens: int
    canvas_tokens: int
    noise: Literal["absorbing", "uniform", "none"]
    device: str
    dtype: str
    server: str = ""
    reading_tokens: int = 0
    doubt: float = 1.0
    edits: str = ""


@attrs.frozen
class Welcome:
    """The engine's answer to Hello."""

    protocol: int
    version: str
    pid: int
    model: ModelInfo


@attrs.frozen
class Snippet:
    """Related code shown to the model before the prefix."""

    path: str
    text: str


@attrs.frozen
class HoleRequest:
    """What all requests about a hole have: the hole, and what the model reads of it.

    `extent` "line" ends a fill at the first newline; "lines" allows several lines. `budget_ms` starts when the engine
    reads the frame. `max_tokens` is what the layout leaves room for.

    `memory` says what may be looked up: the files of `workspace` and this file, this file only, or nothing. With
    `workspace` "" only this file is looked up. `path` is the name under which Learn gave the engine this file. `line`
    is the line of the hole in its file, from 1, and 0 if the file begins with `prefix`.

    Requests share the contexts that were read only within their `scope`: a server of several users gives each one its
    own.

    `rewrite` asks for a region between prefix and suffix as it is after the next edit: that is the candidate's text.
    """

    id: int
    prefix: str
    suffix: str
    path: str = ""
    language: str = ""
    snippets: list[Snippet] = attrs.field(factory=list)
    extent: Extent = "line"
    budget_ms: float = 1000.0
    max_tokens: int = 64
    workspace: str = ""
    memory: MemoryName = "workspace"
    line: int = 0
    scope: str = ""
    rewrite: Rewrite | None = None


@attrs.frozen
class Fill(HoleRequest):
    """A request to fill a hole.

    `steps` is the number of denoising steps. 0 lets the engine choose: the default rule uses the number that gives the
    best results, other rules use what the budget allows. Passes for token healing are not counted in `steps`. The
    engine may end the fill once the probability of its first line falls below `min_line_probability`, because the
    client would not show such a line. `progress` asks for a Progress message after each step, and `trace` for the cells
    of the canvas in each; such a fill drafts no text that was just written there.

    The first candidate is always the greedy one. With `temperature` 0 the others are the likeliest texts that begin as
    it does, go on with a less likely token and end greedily. With any other `temperature`, and by models that do not
    fill left to right, they are drawn with `top_p` and `seed`.

    `choose_from` says from how many such texts the candidates are chosen, if temperature is 0 and the model fills left
    to right. From more than one the best are taken, the best first: those that are likely and make the code after the
    hole likely (engine/fill/follows.py); the greedy one is a text like the others. 0 lets the engine choose: the
    default rule takes the number that gives the best results, other rules and a fill with `progress` 1.

    `ahead` says that nobody waits for the fill yet, but somebody may soon: it gives way to all others. `explain` asks
    for the origins of each candidate.
    """

    rule: RuleName = "default"
    steps: int = 0
    candidates: int = 1
    choose_from: int = 0
    min_line_probability: float = 0.0
    temperature: float = 0.0
    top_p: float = 0.95
    seed: int = 0
    progress: bool = False
    trace: bool = False
    explain: bool = False
    ahead: bool = False


@attrs.frozen
class Read(HoleRequest):
    """A request to read the context of a hole and keep it for a fill there. It gives way to all fills.

    The answer is a Filled without candidates. Where nearly all of the context is known already, nothing is read.
    """

    @classmethod
    def of(cls, request: HoleRequest) -> "Read":
        """Return the request to read what another one reads."""
        return cls(**{field.name: getattr(request, field.name) for field in attrs.fields(HoleRequest)})


@attrs.frozen
class Score(HoleRequest):
    """A request to say how likely `text` is, which the hole already has. It gives way to all fills.

    The tokens of the answer's candidate are those of the text, its confidence says how likely each is with the others
    of the text and both sides known, and the cells of the last Progress are the likeliest tokens of each position,
    several a position.
    """

    text: str = ""


def _plain_canvas(canvas: list[str | None]) -> list[str | None]:
    return [text if text is None else plain(text) for text in canvas]


@attrs.frozen
class Progress:
    """The canvas after a denoising step: one text for each position, None for a mask.

    `cells` say more about the positions if the fill asks for a trace. `ms` is the time since the fill was submitted.
    """

    id: int
    step: int
    canvas: list[str | None] = attrs.field(converter=_plain_canvas)
    cells: list[Cell] = attrs.field(factory=list)
    ms: float = 0.0


@attrs.frozen
class Origin:
    """A part of a candidate that is in a known file too, and came from there rather than from the model.

    `start` is where the part begins in the candidate's text. `path` is that of the fill for its own file, else a path
    that Learn gave. `line` counts from 1. What was there before the hole occurred `total` times, and went on with this
    part `count` times; where the part has several tokens, these are the numbers of the least certain one. `alone` is
    the probability that the model alone gave the part.
    """

    start: int
    text: str = attrs.field(converter=plain)
    path: str
    line: int
    count: int
    total: int
    alone: float = attrs.field(converter=finite)


@attrs.frozen
class Candidate:
    """One text for a hole.

    `tokens` joined together are `text`. Whatever a model wrote, neither has control characters. `confidence` has
    the probability of each token. `end_confidence` is the probability that the text ends after the last token; it
    is 1.0 if the model did not choose the end. `source` gave the largest share of the tokens' probabilities.
    `origins` is empty unless the fill asks to explain. `continues` says for each token, and for the end, how likely
    the word before it went on there instead: 0 where the model does not say, and empty from a server.
    """

    text: str = attrs.field(converter=plain)
    tokens: list[str] = attrs.field(converter=plain_all)
    confidence: list[float] = attrs.field(converter=finite_all)
    finish: Finish
    end_confidence: float = attrs.field(default=1.0, converter=finite)
    continues: list[float] = attrs.field(factory=list, converter=finite_all)
    source: SourceName = "model"
    origins: list[Origin] = attrs.field(factory=list)


@attrs.frozen
class Timings:
    """Milliseconds of a fill: waiting for the model, encoding the context, denoising, and in total."""

    queue: float
    encode: float
    denoise: float
    total: float


@attrs.frozen
class Filled:
    """The answer to Fill, Read and Score.

    `steps` counts passes of the network. `cached_tokens` of the `context_tokens` were cached.

    `chosen_from`: see Fill.choose_from; 1 if the candidates were not chosen.
    """

    id: int
    candidates: list[Candidate]
    steps: int
    rule: RuleName
    context_tokens: int
    cached_tokens: int
    ms: Timings
    chosen_from: int = 1


@attrs.frozen
class Cancel:
    """Stop a fill. The engine drops it at the next denoising step and answers it with Failed("cancelled")."""

    id: int


@attrs.frozen
class StatusRequest:
    """Ask for Status."""


@attrs.frozen
class SchedulerReport:
    """Counts and times of the fills. `step_ms` maps the number of rows of a pass to its measured milliseconds."""

    active: int
    waiting: int
    fills: int
    cancelled: int
    passes: int
    median_ms: float
    cache_hit_rate: float
    cache_bytes: int
    threads: int
    step_ms: dict[str, float]


@attrs.frozen
class Status(SchedulerReport):
    """The answer to StatusRequest: the state of the engine."""

    version: str
    pid: int
    model: ModelInfo
    uptime_s: float
    clients: int


@attrs.frozen
class Shutdown:
    """Ask the engine to end."""


@attrs.frozen
class Failed:
    """An error of the request `id`, or of the connection if `id` is None.

    `message` says what is wrong and what to do. The requests with an id are Fill, Read, Score, Learn,
    Forget and MemoryStatusRequest. A client numbers them together.
    """

    code: str
    message: str
    id: int | None = None


Message = (
    Hello
    | Welcome
    | HoleRequest
    | Progress
    | Filled
    | Cancel
    | MemoryRequest
    | MemoryUpdated
    | MemoryStatus
    | StatusRequest
    | Status
    | Shutdown
    | Failed
)


def left_edge(length: int, room: int, stride: int) -> int:
    """Return the index of the first character or token to keep, so that at most `room` of `length` remain.

    The edge is 0 while everything fits, and else a multiple of `stride`: as the text grows at its end, the edge stays
    for `stride` keystrokes. A larger stride moves the edge less often and keeps less text. A stride below 1 counts as
    1. With no room the edge may lie past the end.
    """
    stride = max(stride, 1)
    return max(0, -(-(length - room) // stride) * stride)
