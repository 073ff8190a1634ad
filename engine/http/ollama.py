"""Ollama's /api/generate, /api/tags and what its clients ask before them."""

from datetime import UTC, datetime
from typing import Any

import attrs

from engine.http.completion import (
    MOST_TOKENS,
    UNBOUNDED_TOKENS,
    Answer,
    Asked,
    Strings,
    bounded,
    names_of,
    read_request,
    stops_of,
)
from engine.http.connection import Problem
from engine.http.exchange import Dialect, Served, to_json
from engine.http.markers import Parts, parts_of
from engine.protocol.messages import ModelInfo

_NS = 1_000_000
_LONG_AGO = "1970-01-01T00:00:00Z"


@attrs.frozen
class _Options:
    num_predict: int | None = None
    stop: Strings = attrs.field(factory=lambda: Strings([]))
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


@attrs.frozen
class _Request:
    model: str
    prompt: str | None = None
    suffix: str | None = None
    stream: bool | None = None
    options: _Options | None = None


class _Generation:
    stream_type = "application/x-ndjson"

    def __init__(self, fields: dict[str, Any], served: Served) -> None:
        request = read_request(fields, _Request)
        if not request.model:
            raise Problem(400, "model is empty; name the model")
        served.check_name(request.model)
        options, prompt = request.options or _Options(), request.prompt or ""
        parts = Parts(prompt, request.suffix) if request.suffix else parts_of(prompt)
        tokens = int(bounded("num_predict", options.num_predict, -1, -2, MOST_TOKENS))
        stops = stops_of(options.stop)
        only_reads = not prompt and not request.suffix  # as for loading the model
        fill = attrs.evolve(
            served.fill(parts, stops, temperature=options.temperature, top_p=options.top_p, seed=options.seed),
            max_tokens=tokens if tokens > 0 else UNBOUNDED_TOKENS,
        )
        self.asked = Asked(fill, stops, request.stream is not False and not only_reads, reads=only_reads)
        self._model = request.model

    def whole(self, answer: Answer) -> object:
        return self._last(answer, answer.texts[0].text if answer.texts else "")

    def piece(self, text: str) -> bytes:
        return to_json(self._part(text)) + b"\n"

    def end(self, answer: Answer, text: str) -> bytes:
        return to_json(self._last(answer, text)) + b"\n"

    def _part(self, text: str) -> dict[str, Any]:
        return {"model": self._model, "created_at": _now(), "response": text, "done": False}

    def _last(self, answer: Answer, text: str) -> dict[str, Any]:
        filled, written = answer.filled, answer.texts[0] if answer.texts else None
        return {
            **self._part(text),
            "done": True,
            "done_reason": written.finish if written else "load",
            "total_duration": int(filled.ms.total * _NS),
            "load_duration": int(filled.ms.queue * _NS),
            "prompt_eval_count": filled.context_tokens,
            "prompt_eval_duration": int(filled.ms.encode * _NS),
            "eval_count": len(written.tokens) if written else 0,
            "eval_duration": int(filled.ms.denoise * _NS),
        }


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def refusal(problem: Problem) -> object:
    """Return a problem as Ollama says it."""
    return {"error": str(problem)}


GENERATE = Dialect(_Generation, refusal)


def tags(model: ModelInfo) -> object:
    """Return the answer of /api/tags: the model under our name and under its own."""
    return {"models": [_tag(name, model) for name in names_of(model)]}


def running(model: ModelInfo) -> object:
    """Return the answer of /api/ps: the model is in memory for as long as the server runs."""
    forever = {"expires_at": "9999-12-31T23:59:59Z", "size_vram": 0}
    return {"models": [{**_tag(name, model), **forever} for name in names_of(model)]}


@attrs.frozen
class _Show:
    model: str = ""
    name: str = ""


def shown(fields: dict[str, Any], served: Served) -> object:
    """Return the answer of /api/show. Clients read there how long a context may be, and that holes are filled."""
    request, model = read_request(fields, _Show), served.model
    served.check_name(request.model or request.name)
    architecture = model.family
    return {
        "license": model.licence,
        "modelfile": "",
        "parameters": "",
        "template": "{{ .Prompt }}{{ .Suffix }}",
        "details": _tag(model.name, model)["details"],
        "model_info": {
            "general.architecture": architecture,
            "general.parameter_count": model.parameters,
            f"{architecture}.context_length": model.context_tokens,
        },
        "capabilities": ["completion", "insert"],
        "modified_at": _LONG_AGO,
    }


def _tag(name: str, model: ModelInfo) -> dict[str, Any]:
    return {
        "name": f"{name}:latest",
        "model": f"{name}:latest",
        "modified_at": _LONG_AGO,
        "size": 0,
        "digest": "",
        "details": {
            "parent_model": "",
            "format": "midspan",
            "family": model.family,
            "families": [model.family],
            "parameter_size": f"{model.parameters / 1e6:.0f}M",
            "quantization_level": model.dtype,
        },
    }
