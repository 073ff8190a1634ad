"""Tabby's /v1/completions, /v1/health and /v1/events."""

import os
import platform
import uuid
from typing import Any

import attrs

from engine.http.completion import DEFAULT_TOKENS, Answer, Asked, read_request
from engine.http.connection import Problem
from engine.http.exchange import EVENTS, Dialect, Served, event
from engine.http.markers import Parts
from engine.protocol.messages import ModelInfo, Snippet


@attrs.frozen
class _Declaration:
    filepath: str
    body: str


@attrs.frozen
class _Segments:
    prefix: str
    suffix: str | None = None
    filepath: str | None = None
    declarations: list[_Declaration] | None = None
    relevant_snippets_from_changed_files: list[_Declaration] | None = None
    relevant_snippets_from_recently_opened_files: list[_Declaration] | None = None

    @property
    def snippets(self) -> tuple[Snippet, ...]:
        related = (
            self.declarations,
            self.relevant_snippets_from_changed_files,
            self.relevant_snippets_from_recently_opened_files,
        )
        return tuple(Snippet(each.filepath, each.body) for part in related for each in part or () if each.body)


@attrs.frozen
class _Request:
    segments: _Segments
    language: str | None = None
    temperature: float | None = None
    seed: int | None = None


class _Completion:
    """It is never streamed."""

    stream_type = EVENTS

    def __init__(self, fields: dict[str, Any], served: Served) -> None:
        request = read_request(fields, _Request)
        segments = request.segments
        parts = Parts(segments.prefix, segments.suffix or "", segments.filepath or "", segments.snippets)
        fill = served.fill(parts, temperature=request.temperature, seed=request.seed)
        self.asked = Asked(attrs.evolve(fill, language=request.language or "", max_tokens=DEFAULT_TOKENS))

    def whole(self, answer: Answer) -> object:
        choices = [{"index": number, "text": text.text} for number, text in enumerate(answer.texts)]
        return {"id": f"cmpl-{uuid.uuid4()}", "choices": choices}

    def piece(self, text: str) -> bytes:
        return event({"text": text})

    def end(self, answer: Answer, text: str) -> bytes:
        return event(self.whole(answer))


def refusal(problem: Problem) -> object:
    """Return a problem for Tabby's clients, which read the status only and show the message."""
    return {"error": str(problem)}


COMPLETIONS = Dialect(_Completion, refusal)


def health(model: ModelInfo, version: str) -> object:
    """Return the answer of /v1/health."""
    return {
        "model": model.name,
        "chat_model": None,
        "device": "cuda" if model.device.startswith("cuda") else "cpu",
        "arch": platform.machine(),
        "cpu_info": platform.processor() or platform.machine(),
        "cpu_count": os.cpu_count() or 1,
        "cuda_devices": [],
        "version": {"build_date": "", "build_timestamp": "", "git_sha": "", "git_describe": f"midspan {version}"},
    }
