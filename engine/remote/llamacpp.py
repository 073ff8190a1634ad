"""The dialect of llama.cpp's own server: POST URL/infill, which knows the marks of the model that it serves.

Fields as tools/server/README.md of llama.cpp tells them; tried with version 0.7.0.
"""

import asyncio

import attrs

from engine.errors import RemoteError
from engine.protocol.messages import Fill
from engine.remote.clip import SNIPPET_CHARACTERS, clip_prefix, clip_suffix
from engine.remote.connection import Connection
from engine.remote.dialect import Written
from engine.remote.endpoint import Endpoint
from engine.remote.json_bodies import read_json, write_json
from engine.remote.together import together
from engine.remote.writing import Writing, WrittenToken

_ANSWER_SHARE = 0.9
"""The part of the time left that the server may write in; the rest is for reading the prompt and for the way."""


@attrs.frozen
class Extra:
    """Related code, shown before the prefix."""

    filename: str
    text: str


@attrs.frozen
class InfillRequest:
    """The body of a request; a field that is None is not sent."""

    input_prefix: str
    input_suffix: str
    input_extra: list[Extra]
    n_predict: int
    t_max_predict_ms: int
    stop: list[str]
    temperature: float = 0.0
    top_p: float | None = None
    seed: int | None = None
    n_probs: int = 1
    cache_prompt: bool = True


@attrs.frozen
class _Probability:
    token: str
    logprob: float | None = None
    bytes: list[int] | None = None


@attrs.frozen
class _Timings:
    cache_n: int = 0
    prompt_n: int = 0


@attrs.frozen
class _Infilled:
    content: str
    stop_type: str = ""
    completion_probabilities: list[_Probability] | None = None
    timings: _Timings | None = None

    def writing(self) -> Writing:
        tokens = [
            WrittenToken(
                each.token.encode(errors="replace") if each.bytes is None else bytes(byte & 255 for byte in each.bytes),
                each.logprob,
            )
            for each in self.completion_probabilities or ()
        ]
        return Writing(self.content, tokens, "canvas full" if self.stop_type == "limit" else "complete")


class LlamaCpp:
    """POST URL/infill; several candidates are several requests, which the server runs in its slots."""

    def __init__(self, endpoint: Endpoint, connection: Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection

    async def write(self, fill: Fill, deadline: float) -> Written:
        answers = await together(self._ask(fill, deadline, number) for number in range(fill.candidates))
        timings = answers[0].timings or _Timings()
        writings = [answer.writing() for answer in answers]
        return Written(writings, timings.cache_n + timings.prompt_n, timings.cache_n)

    async def _ask(self, fill: Fill, deadline: float, number: int) -> _Infilled:
        request = _request(fill, deadline - asyncio.get_running_loop().time(), number)
        reply = await self._connection.post(self._endpoint.url + "/infill", write_json(request), deadline)
        answer = None if reply.refused else read_json(reply.body, _Infilled)
        if answer is None:
            what = f"refuses the request ({reply.status})" if reply.refused else "answers, but not as llama.cpp does"
            raise RemoteError(f"{self._endpoint.server} {what}; check that it is llama.cpp's server, and the URL")
        return answer


def _request(fill: Fill, left_s: float, number: int) -> InfillRequest:
    request = InfillRequest(
        input_prefix=clip_prefix(fill.prefix),
        input_suffix=clip_suffix(fill.suffix),
        input_extra=_extra(fill),
        n_predict=fill.max_tokens,
        t_max_predict_ms=max(1, int(left_s * 1000 * _ANSWER_SHARE)),
        stop=["\n"] if fill.extent == "line" else [],
    )
    if number == 0:
        return request
    return attrs.evolve(request, temperature=fill.temperature, top_p=fill.top_p, seed=fill.seed + number)


def _extra(fill: Fill) -> list[Extra]:
    extra: list[Extra] = []
    left = SNIPPET_CHARACTERS
    for snippet in fill.snippets:
        if len(snippet.text) <= left:
            extra.append(Extra(snippet.path, snippet.text))
            left -= len(snippet.text)
    return extra
