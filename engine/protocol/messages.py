"""The messages that a client and the engine send each other. framing.py turns them into bytes."""

from typing import Literal

import attrs

PROTOCOL_VERSION = 1

Extent = Literal["line", "lines"]
Finish = Literal["complete", "deadline", "cancelled", "canvas full", "unsure"]
RuleName = Literal["default", "threshold", "entropy", "verify", "left-to-right"]


@attrs.frozen
class Hello:
    """The first frame of a client. `token` is needed on TCP only; it stands in a file that only the user can read."""

    protocol: int
    client: str
    token: str = ""


@attrs.frozen
class ModelInfo:
    """A model. `server` is the host, and port, of one that a server of the user's choice runs; "" for one here.

    `context_tokens` is its window. `reading_tokens` is how much of that is worth filling while somebody types, where it
    is less (a model that reads everything anew with each key); 0 means all of it.
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
class Fill:
    """A hole to fill.

    `extent` "line" ends the fill at the first newline, "lines" lets it span several. `budget_ms` counts from the moment
    the engine reads the frame. `steps` 0 means: as many as the budget allows, and for the default rule as many as it
    does best with; passes that write what is typed of a word at the cursor come before them. `candidates` above one are
    drawn with `temperature` and `top_p` from `seed`; the first candidate is always the greedy one. A fill may end
    after the token that lowers the probability of its first line below `min_line_probability`: a caller that would not
    show more need not wait for more.
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
    min_line_probability: float = 0.0
    rule: RuleName = "default"
    steps: int = 0
    candidates: int = 1
    temperature: float = 0.8
    top_p: float = 0.95
    seed: int = 0
    progress: bool = False


@attrs.frozen
class Progress:
    """A canvas after a denoising step: one entry a position, None where it is still masked."""

    id: int
    step: int
    canvas: list[str | None]


@attrs.frozen
class Candidate:
    """One answer. `confidence` holds a probability for each of the `tokens`, whose concatenation is `text`;
    `end_confidence` is that of the end behind them, 1.0 where something else ended the fill."""

    text: str
    tokens: list[str]
    confidence: list[float]
    finish: Finish
    end_confidence: float = 1.0


@attrs.frozen
class Timings:
    """Milliseconds spent waiting for the model, encoding the context, denoising, and in all."""

    queue: float
    encode: float
    denoise: float
    total: float


@attrs.frozen
class Filled:
    """The answer to Fill. `steps` counts passes of the network; `cached_tokens` of `context_tokens` were cached."""

    id: int
    candidates: list[Candidate]
    steps: int
    rule: RuleName
    context_tokens: int
    cached_tokens: int
    ms: Timings


@attrs.frozen
class Cancel:
    """Drop a fill: it leaves at the next denoising step and is answered with Failed("cancelled")."""

    id: int


@attrs.frozen
class StatusRequest:
    pass


@attrs.frozen
class SchedulerReport:
    """How the fills are doing. Times are milliseconds; `step_ms` maps "rows of a pass" to its measured time."""

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
    """How the engine is doing."""

    version: str
    pid: int
    model: ModelInfo
    uptime_s: float
    clients: int


@attrs.frozen
class Shutdown:
    """Ask the engine to finish and leave."""


@attrs.frozen
class Failed:
    """Something went wrong, with the fill `id` or (None) with the connection. `message` says what and what to do."""

    code: str
    message: str
    id: int | None = None


Message = Hello | Welcome | Fill | Progress | Filled | Cancel | StatusRequest | Status | Shutdown | Failed
