"""The dialect `llamacpp`: POST URL/infill of llama.cpp's own server, which knows the tags of its model.

The fields follow tools/server/README.md of llama.cpp; tested with version 0.7.0.
"""

import asyncio

import attrs

from engine.errors import RemoteError
from engine.fill.sampler import TEMPERATURE
from engine.protocol.messages import Fill
from engine.remote.connection import Connection
from engine.remote.endpoint import Endpoint
from engine.remote.request import (
    SNIPPET_CHARACTERS,
    ServerAnswer,
    ServerText,
    SpelledToken,
    clip_prefix,
    clip_suffix,
    read_json,
    run_together,
    write_json,
)

_ANSWER_SHARE = 0.9
"""The share of the remaining time in which the server may write; the rest is for the network and the prompt."""


@attrs.frozen
class ExtraContext:
    """Related code, shown before the prefix."""

    filename: str
    text: str


@attrs.frozen
class InfillRequest:
    """The body of a request; a field that is None is not sent."""

    input_prefix: str
    input_suffix: str
    input_extra: list[ExtraContext]
    n_predict: int
    t_max_predict_ms: int
    stop: list[str]
    temperature: float = 0.0
    top_p: float | None = None
    seed: int | None = None
    n_probs: int = 1
    cache_prompt: bool = True


@attrs.frozen
class _Timings:
    cache_n: int = 0
    prompt_n: int = 0


@attrs.frozen
class _InfillAnswer:
    content: str
    stop_type: str = ""
    completion_probabilities: list[SpelledToken] | None = None
    timings: _Timings | None = None

    def to_server_text(self) -> ServerText:
        tokens = [token.to_server_token() for token in self.completion_probabilities or ()]
        return ServerText(self.content, tokens, "canvas full" if self.stop_type == "limit" else "complete")


class LlamaCpp:
    """POST URL/infill. Each candidate is a request of its own; the server runs them in parallel slots."""

    def __init__(self, endpoint: Endpoint, connection: Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection

    async def ask(self, fill: Fill, deadline: float) -> ServerAnswer:
        answers = await run_together(self._infill(fill, deadline, number) for number in range(fill.candidates))
        timings = answers[0].timings or _Timings()
        texts = [answer.to_server_text() for answer in answers]
        return ServerAnswer(texts, timings.cache_n + timings.prompt_n, timings.cache_n)

    async def _infill(self, fill: Fill, deadline: float, number: int) -> _InfillAnswer:
        request = _request(fill, deadline - asyncio.get_running_loop().time(), number)
        url = self._endpoint.url + "/infill"
        reply = await self._connection.post(url, write_json(request), deadline, fill.max_tokens)
        answer = None if reply.refused else read_json(reply.body, _InfillAnswer)
        if answer is None:
            problem = f"refuses the request ({reply.status})" if reply.refused else "answers, but not as llama.cpp does"
            raise RemoteError(f"{self._endpoint.server} {problem}; check that it is llama.cpp's server, and the URL")
        return answer


def _request(fill: Fill, seconds_left: float, number: int) -> InfillRequest:
    request = InfillRequest(
        input_prefix=clip_prefix(fill.prefix),
        input_suffix=clip_suffix(fill.suffix),
        input_extra=_extra_context(fill),
        n_predict=fill.max_tokens,
        t_max_predict_ms=max(1, int(seconds_left * 1000 * _ANSWER_SHARE)),
        stop=["\n"] if fill.extent == "line" else [],
    )
    if number == 0:
        return request
    return attrs.evolve(request, temperature=fill.temperature or TEMPERATURE, top_p=fill.top_p, seed=fill.seed + number)


def _extra_context(fill: Fill) -> list[ExtraContext]:
    extra: list[ExtraContext] = []
    characters_left = SNIPPET_CHARACTERS
    for snippet in fill.snippets:
        if len(snippet.text) <= characters_left:
            extra.append(ExtraContext(snippet.path, snippet.text))
            characters_left -= len(snippet.text)
    return extra
