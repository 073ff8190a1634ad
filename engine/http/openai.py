"""OpenAI's /v1/completions and /v1/models, and Mistral's /v1/fim/completions, which answers as its chat does."""

import time
import uuid
from itertools import accumulate
from typing import Any

import attrs

from engine.http.completion import (
    DEFAULT_TOKENS,
    MOST_CHOICES,
    MOST_TOKENS,
    NAME,
    Answer,
    Asked,
    Strings,
    Written,
    bounded,
    names_of,
    one_prompt,
    read_request,
    stops_of,
)
from engine.http.connection import Problem
from engine.http.exchange import EVENTS, Dialect, Exchange, Served, event
from engine.http.markers import Parts, parts_of
from engine.http.rewriting import Rewriting
from engine.http.tabby import COMPLETIONS as TABBY
from engine.http.zeta import ZetaPrompt, read_zeta
from engine.protocol.messages import ModelInfo

_DONE = b"data: [DONE]\n\n"
_CODESTRAL = "codestral"
"""Clients of Mistral name this model without asking their user."""


@attrs.frozen
class _StreamOptions:
    include_usage: bool | None = None


@attrs.frozen
class _Request:
    prompt: Strings
    model: str | None = None
    suffix: str | None = None
    max_tokens: int | None = None
    n: int | None = None
    stop: Strings = attrs.field(factory=lambda: Strings([]))
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    logprobs: int | None = None
    echo: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    random_seed: int | None = None


def _asked(request: _Request, served: Served, parts: Parts, rewriting: Rewriting | None = None) -> Asked:
    stops = stops_of(request.stop)
    seed = request.seed if request.seed is not None else request.random_seed
    fill = attrs.evolve(
        served.fill(parts, stops, temperature=request.temperature, top_p=request.top_p, seed=seed),
        max_tokens=int(bounded("max_tokens", request.max_tokens, DEFAULT_TOKENS, 1, MOST_TOKENS)),
        candidates=int(bounded("n", request.n, 1, 1, MOST_CHOICES)),
    )
    if request.stream and fill.candidates > 1:
        raise Problem(400, "n is more than 1 and stream is true; ask for several texts without a stream")
    return Asked(fill, stops, bool(request.stream), rewriting=rewriting)


def _asked_of_zeta(request: _Request, served: Served, zeta: ZetaPrompt) -> Asked:
    """The fill is for the cursor. The stops of such a request are about the region, and no text of a fill."""
    given = zeta.rewriting
    prefix, suffix = given.above + given.region[: given.cursor], given.region[given.cursor :] + given.below
    parts = Parts(prefix, suffix, given.path, zeta.snippets)
    tokens = min(request.max_tokens or DEFAULT_TOKENS, DEFAULT_TOKENS)
    asked = _asked(attrs.evolve(request, n=1, logprobs=None, max_tokens=tokens), served, parts, given)
    return attrs.evolve(asked, fill=attrs.evolve(asked.fill, extent="lines"))


class _Completion:
    stream_type = EVENTS

    def __init__(self, fields: dict[str, Any], served: Served) -> None:
        self._request = read_request(fields, _Request)
        self._model = self._request.model or NAME
        self._id, self._created = f"cmpl-{uuid.uuid4().hex}", int(time.time())
        self.asked = self._read(self._request, served)

    def _read(self, request: _Request, served: Served) -> Asked:
        served.check_name(request.model)
        if request.echo:
            raise Problem(400, "echo is not served; leave it out")
        bounded("logprobs", request.logprobs, 0, 0, 5)
        prompt = one_prompt(request.prompt)
        if (zeta := None if request.suffix else read_zeta(prompt)) is not None:
            return _asked_of_zeta(request, served, zeta)
        return _asked(request, served, Parts(prompt, request.suffix) if request.suffix else parts_of(prompt))

    def whole(self, answer: Answer) -> object:
        choices = [self._choice(number, text, text.text) for number, text in enumerate(answer.texts)]
        return {**self._head(choices), "usage": usage(answer)}

    def piece(self, text: str) -> bytes:
        return event(self._head([{"index": 0, "text": text, "logprobs": None, "finish_reason": None}]))

    def end(self, answer: Answer, text: str) -> bytes:
        last = event(self._head([self._choice(0, answer.texts[0], text)]))
        options = self._request.stream_options
        if options is not None and options.include_usage:
            last += event({**self._head([]), "usage": usage(answer)})
        return last + _DONE

    def _head(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }

    def _choice(self, number: int, written: Written, text: str) -> dict[str, Any]:
        asked = self._request.logprobs is not None
        return {
            "index": number,
            "text": text,
            "logprobs": _log_probabilities(written) if asked else None,
            "finish_reason": written.finish,
        }


class _MistralCompletion(_Completion):
    """The text is the content of a message."""

    def _read(self, request: _Request, served: Served) -> Asked:
        served.check_name(request.model, _CODESTRAL)
        # It is a hole also without a suffix, so tags in the prompt are text.
        return _asked(request, served, Parts(one_prompt(request.prompt), request.suffix or ""))

    def whole(self, answer: Answer) -> object:
        choices = [
            {
                "index": number,
                "message": {"role": "assistant", "content": text.text, "tool_calls": None},
                "finish_reason": text.finish,
            }
            for number, text in enumerate(answer.texts)
        ]
        return {**self._head(choices), "object": "chat.completion", "usage": usage(answer)}

    def piece(self, text: str) -> bytes:
        return event(self._chunk(text, None))

    def end(self, answer: Answer, text: str) -> bytes:
        return event({**self._chunk(text, answer.texts[0].finish), "usage": usage(answer)}) + _DONE

    def _chunk(self, text: str, finish: str | None) -> dict[str, Any]:
        delta = {"role": "assistant", "content": text}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._head([choice]), "object": "chat.completion.chunk"}


def _log_probabilities(written: Written) -> dict[str, Any]:
    values = written.log_probabilities
    return {
        "tokens": written.tokens,
        "token_logprobs": values,
        "top_logprobs": [{token: value} for token, value in zip(written.tokens, values, strict=True)],
        "text_offset": [*accumulate(map(len, written.tokens[:-1]), initial=0)] if written.tokens else [],
    }


def usage(answer: Answer) -> dict[str, Any]:
    """Return the counts of tokens."""
    read, written = answer.filled.context_tokens, sum(len(text.tokens) for text in answer.texts)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": answer.filled.cached_tokens},
    }


def _open(fields: dict[str, Any], served: Served) -> Exchange:
    """Tabby's clients use the same path: their requests have segments."""
    return TABBY.open(fields, served) if "segments" in fields else _Completion(fields, served)


def refusal(problem: Problem) -> object:
    """Return a problem as OpenAI's API says it."""
    return {"error": {"message": str(problem), "type": problem.type, "param": None, "code": None}}


def _mistral_refusal(problem: Problem) -> object:
    return {
        "object": "error",
        "message": str(problem),
        "type": problem.type,
        "param": None,
        "code": str(problem.status),
    }


COMPLETIONS = Dialect(_open, refusal)
MISTRAL = Dialect(_MistralCompletion, _mistral_refusal)


def models(model: ModelInfo) -> object:
    """Return the answer of /v1/models: the model under our name and under its own."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "midspan"} for name in names_of(model)],
    }
