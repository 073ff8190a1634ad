"""llama.cpp's /infill, as its server answers it and as llama.vim and llama.vscode read it.

The fields follow tools/server/README.md of llama.cpp. Fields that only steer its own samplers and slots are ignored.
"""

from typing import Any

import attrs

from engine.bounds import LONGEST_NAME, MOST_NAMES
from engine.http.completion import (
    DEFAULT_BUDGET_MS,
    MOST_CHOICES,
    MOST_TOKENS,
    UNBOUNDED_TOKENS,
    Answer,
    Asked,
    Strings,
    Written,
    bounded,
    one_prompt,
    read_request,
    stops_of,
)
from engine.http.connection import Problem
from engine.http.exchange import EVENTS, Dialect, Served, event
from engine.http.markers import Parts
from engine.protocol.messages import ModelInfo, Snippet

_READ_MS = 10_000.0
"""For a request that only warms: its client does not wait, so the time that it names is for nothing."""


@attrs.frozen
class _Extra:
    text: str
    filename: str | None = None


@attrs.frozen
class _Request:
    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: list[_Extra] = attrs.field(factory=list)
    prompt: Strings = attrs.field(factory=lambda: Strings([]))
    n_predict: int | None = None
    n_indent: int | None = None
    n_cmpl: int | None = None
    id_slot: int | None = None
    stop: Strings = attrs.field(factory=lambda: Strings([]))
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    t_max_prompt_ms: float | None = None
    t_max_predict_ms: float | None = None
    n_probs: int | None = None
    response_fields: Strings | None = None


class _Infill:
    stream_type = EVENTS

    def __init__(self, fields: dict[str, Any], served: Served) -> None:
        if not fields.keys() & {"input_prefix", "input_suffix", "prompt"}:
            raise Problem(400, "`input_prefix` is missing; send the text before the cursor")
        self._request = request = read_request(fields, _Request)
        self._model = served.model
        tokens = bounded("n_predict", request.n_predict, -1, -1, MOST_TOKENS)
        self._only_reads = tokens == 0
        prefix = request.input_prefix + one_prompt(request.prompt)
        # The newest text comes last in input_extra, next to the code; for the engine the most important is first.
        extra = [Snippet(each.filename or "", each.text) for each in reversed(request.input_extra) if each.text]
        stops = stops_of(request.stop)
        parts = Parts(prefix, request.input_suffix, "", tuple(extra))
        fill = attrs.evolve(
            served.fill(parts, stops, temperature=request.temperature, top_p=request.top_p, seed=request.seed),
            max_tokens=int(tokens) if tokens > 0 else UNBOUNDED_TOKENS,
            budget_ms=_READ_MS if self._only_reads else self._budget_ms(),
            candidates=int(bounded("n_cmpl", request.n_cmpl, 1, 1, MOST_CHOICES)),
        )
        indent = int(bounded("n_indent", request.n_indent, 0, 0, 10_000))
        self.asked = Asked(fill, stops, bool(request.stream), indent, reads=self._only_reads)

    def _budget_ms(self) -> float:
        """The engine's budget covers reading and writing. llama.cpp's 0 and less mean no bound."""
        low = -1e12
        read = bounded("t_max_prompt_ms", self._request.t_max_prompt_ms, 0, low, 600_000)
        write = bounded("t_max_predict_ms", self._request.t_max_predict_ms, 0, low, 600_000)
        return min(600_000.0, max(0.0, read) + write) if write > 0 else DEFAULT_BUDGET_MS

    def whole(self, answer: Answer) -> object:
        texts = answer.texts or [Written("", [], [], "stop")]
        completions = [self._fields(self._completion(answer, number, text)) for number, text in enumerate(texts)]
        return completions[0] if self.asked.fill.candidates == 1 else completions

    def piece(self, text: str) -> bytes:
        return event({"index": 0, "content": text, "stop": False, "id_slot": self._request.id_slot or 0})

    def end(self, answer: Answer, text: str) -> bytes:
        written = answer.texts[0] if answer.texts else Written("", [], [], "stop")
        return event(self._fields({**self._completion(answer, 0, written), "content": text}))

    def _completion(self, answer: Answer, number: int, text: Written) -> dict[str, Any]:
        filled, count = answer.filled, len(text.tokens)
        read, ms = filled.context_tokens - filled.cached_tokens, filled.ms
        completion: dict[str, Any] = {
            "index": number,
            "content": text.text,
            "tokens": [],
            "id_slot": self._request.id_slot or 0,
            "stop": True,
            "model": self._model.name,
            "tokens_predicted": count,
            "tokens_evaluated": filled.context_tokens,
            "has_new_line": "\n" in text.text,
            "truncated": False,
            "stop_type": "limit" if text.finish == "length" else "word" if text.stopped_by else "eos",
            "stopping_word": text.stopped_by,
            "tokens_cached": filled.context_tokens + count,
            "timings": {
                "cache_n": filled.cached_tokens,
                **_timings("prompt", read, ms.encode),
                **_timings("predicted", count, ms.denoise),
            },
        }
        if self._request.n_probs:
            pairs = zip(text.tokens, text.log_probabilities, strict=True)
            completion["completion_probabilities"] = [
                {"token": token, "bytes": list(token.encode()), "logprob": value} for token, value in pairs
            ]
        return completion

    def _fields(self, completion: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, or if the request names fields these alone, with their path as the key."""
        if not self._request.response_fields:
            return completion
        asked = ((path, _field(completion, path)) for path in self._request.response_fields[:MOST_NAMES])
        return {path: value for path, value in asked if value is not None}


def _field(values: dict[str, Any], path: str) -> Any:
    value: Any = values
    for name in path[:LONGEST_NAME].split("/"):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _timings(part: str, count: int, ms: float) -> dict[str, float]:
    """Return the speed of a part of a fill, which took `ms` for `count` tokens."""
    return {
        f"{part}_n": count,
        f"{part}_ms": ms,
        f"{part}_per_token_ms": round(ms / count, 4) if count else 0.0,
        f"{part}_per_second": round(1000 * count / ms, 3) if ms > 0 else 0.0,
    }


def refusal(problem: Problem) -> object:
    """Return a problem as llama.cpp's server says it."""
    return {"error": {"code": problem.status, "message": str(problem), "type": problem.type}}


INFILL = Dialect(_Infill, refusal)


def props(model: ModelInfo, version: str) -> object:
    """Return the answer of /props, as far as clients read it."""
    settings = {"id": 0, "id_task": -1, "n_ctx": model.context_tokens, "speculative": True, "is_processing": False}
    return {
        "default_generation_settings": settings,
        "total_slots": 1,
        "model_alias": model.name,
        "model_path": model.name,
        "modalities": {"vision": False, "audio": False},
        "chat_template": "",
        "bos_token": "",
        "eos_token": "",
        "build_info": f"midspan {version}",
        "is_sleeping": False,
    }
