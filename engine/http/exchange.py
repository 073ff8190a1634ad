"""What a dialect is to the app: it reads a request, writes the answer, and puts problems into its own form."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from engine.http.completion import (
    DEFAULT_BUDGET_MS,
    NAME,
    Answer,
    Asked,
    extent_of,
    names_of,
    seed_of,
    temperature_of,
    top_p_of,
    within_limits,
)
from engine.http.connection import Problem
from engine.http.markers import Parts
from engine.http.workspaces import Workspaces
from engine.protocol.messages import Fill, ModelInfo

EVENTS = "text/event-stream"


@attrs.frozen
class Served:
    """What is served: the engine's model, and the workspaces whose memory fills may use."""

    model: ModelInfo
    workspaces: Workspaces

    def check_name(self, name: str | None, *aliases: str) -> None:
        """Raise Problem for the name of another model. `aliases` are starts of names that mean ours too.

        Some clients infer the form of a prompt from the name, and for them `qwen2.5-coder:midspan` means ours.
        """
        known = ("default", *names_of(self.model))
        if name and name.endswith(f":{NAME}"):
            return
        if not name or name.removesuffix(":latest") in known or (aliases and name.startswith(aliases)):
            return
        raise Problem(404, f"the model {name[:80]!r} is not served here; name {NAME!r} or {self.model.name!r}")

    def fill(
        self,
        parts: Parts,
        stops: Sequence[str] = (),
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Fill:
        """Return the fill of a hole as all dialects ask for it; what only one names is its own to add.

        Raises Problem for a number out of its range.
        """
        place = self.workspaces.place_of(parts.path, parts.prefix, parts.suffix)
        return Fill(
            id=0,
            prefix=parts.prefix,
            suffix=parts.suffix,
            path=place.path,
            snippets=within_limits(parts.snippets),
            extent=extent_of(stops),
            budget_ms=DEFAULT_BUDGET_MS,
            temperature=temperature_of(temperature),
            top_p=top_p_of(top_p),
            seed=seed_of(seed),
            workspace=place.workspace,
        )


class Exchange(Protocol):
    """One request and its answer. `stream_type` is the media type of a streamed answer."""

    asked: Asked
    stream_type: str

    def whole(self, answer: Answer) -> object:
        """Return the answer as values of JSON or attrs objects."""
        ...

    def piece(self, text: str) -> bytes:
        """Return a part of a streamed answer."""
        ...

    def end(self, answer: Answer, text: str) -> bytes:
        """Return the last part of a streamed answer; `text` was not sent yet."""
        ...


Opener = Callable[[dict[str, Any], Served], Exchange]
Refusal = Callable[[Problem], object]


@attrs.frozen
class Dialect:
    """How a path is spoken."""

    open: Opener
    refusal: Refusal


def to_json(value: object) -> bytes:
    """Return compact JSON: llama.vim finds no text after a colon and a space."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_plain)
    return text.encode(errors="replace")


def event(value: object) -> bytes:
    """Return a server-sent event."""
    return b"data: " + to_json(value) + b"\n\n"


def _plain(value: object) -> object:
    if attrs.has(type(value)):
        return attrs.asdict(value)  # type: ignore[arg-type]  # attrs.has does not narrow it
    raise TypeError(type(value).__name__)
