"""The dialects that use OpenAI's completions: `openai`, `mercury` (/fim/completions), and for `vllm` vllm.py.

When a server refuses an optional field by name (status 400 or 422), later requests leave the field out.
"""

import re

import attrs

from engine.errors import RemoteError
from engine.fill.sampler import TEMPERATURE
from engine.protocol.messages import Fill
from engine.remote.connection import Connection, Reply
from engine.remote.endpoint import Endpoint
from engine.remote.request import (
    KNOWN_FAMILIES,
    ServerAnswer,
    ServerText,
    ServerToken,
    SpelledToken,
    clip_prefix,
    clip_suffix,
    read_json,
    run_together,
    tags_of,
    write_json,
)

_OPTIONAL = ("logprobs", "seed", "top_p", "temperature", "stop", "n")
# llama.cpp's completions ignore the suffix and do not say so.
_IGNORES_SUFFIX = "llama.cpp"


@attrs.frozen
class CompletionRequest:
    """The body of a request; a field that is None is not sent."""

    prompt: str
    suffix: str | None
    max_tokens: int
    model: str | None = None
    stop: list[str] | None = None
    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    n: int | None = None
    logprobs: int | None = 1


@attrs.frozen
class _LogProbabilities:
    """Two lists of the same length, as in OpenAI's completions, or else `content`."""

    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    content: list[SpelledToken] | None = None

    def to_server_tokens(self) -> list[ServerToken]:
        if self.content:
            return [token.to_server_token() for token in self.content]
        pairs = zip(self.tokens or (), self.token_logprobs or (), strict=False)
        return [ServerToken(token.encode(errors="replace"), value) for token, value in pairs]


@attrs.frozen
class _Message:
    content: str


@attrs.frozen
class _Choice:
    text: str | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    logprobs: _LogProbabilities | None = None

    def to_server_text(self) -> ServerText | None:
        text = self.text if self.text is not None else self.message.content if self.message is not None else None
        if text is None:
            return None
        tokens = self.logprobs.to_server_tokens() if self.logprobs is not None else []
        return ServerText(text, tokens, "canvas full" if self.finish_reason == "length" else "complete")


@attrs.frozen
class _PromptDetails:
    cached_tokens: int | None = None


@attrs.frozen
class _Usage:
    prompt_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


@attrs.frozen
class _Completion:
    choices: list[_Choice]
    usage: _Usage | None = None

    def to_answer(self) -> ServerAnswer | None:
        texts = [text for choice in self.choices if (text := choice.to_server_text()) is not None]
        if not texts:
            return None
        usage = self.usage or _Usage()
        details = usage.prompt_tokens_details or _PromptDetails()
        return ServerAnswer(texts, usage.prompt_tokens or 0, details.cached_tokens or 0)


class Completions:
    """POST URL/completions with prompt and suffix. A server that takes no suffix gets the model's tags."""

    path = "/completions"

    def __init__(self, endpoint: Endpoint, connection: Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection
        self._refused_fields: set[str] = set()
        self._takes_suffix = True

    async def ask(self, fill: Fill, deadline: float) -> ServerAnswer:
        requests = [self._complete(fill, deadline)]
        if fill.candidates > 1:
            requests.append(self._complete(fill, deadline, samples=fill.candidates - 1))
        greedy, *sampled = await run_together(requests)
        samples = [text for answer in sampled for text in answer.texts]
        return attrs.evolve(greedy, texts=[*greedy.texts[:1], *samples])

    async def _complete(self, fill: Fill, deadline: float, samples: int = 0) -> ServerAnswer:
        """Return the greedy text, or as many sampled texts as `samples` says if it is not 0."""
        while True:
            request = self._request(fill, samples)
            reply = await self._connection.post(
                self._endpoint.url + self.path,
                write_json(request, self._refused_fields),
                deadline,
                fill.max_tokens * (samples or 1),
            )
            if not reply.refused and request.suffix and reply.program.startswith(_IGNORES_SUFFIX):
                self._takes_suffix = False
            elif not reply.refused:
                return self._read(reply)
            else:
                self._learn(reply, request)

    def _request(self, fill: Fill, samples: int) -> CompletionRequest:
        prefix, suffix = clip_prefix(fill.prefix), clip_suffix(fill.suffix)
        if suffix and not self._takes_suffix:
            tags = tags_of(self._endpoint.model)
            if tags is None:
                raise RemoteError(
                    f"{self._endpoint.server} takes no suffix, and the name of its model contains no family whose "
                    f"tags are known ({KNOWN_FAMILIES}); llama.cpp fills holes of any model as llamacpp+URL"
                )
            prefix, suffix = tags.prompt(prefix, suffix), ""
        request = CompletionRequest(
            prompt=prefix,
            suffix=suffix or None,
            max_tokens=fill.max_tokens,
            model=self._endpoint.model or None,
            stop=["\n"] if fill.extent == "line" else None,
        )
        if not samples:
            return request
        return attrs.evolve(
            request, temperature=fill.temperature or TEMPERATURE, top_p=fill.top_p, seed=fill.seed, n=samples
        )

    def _learn(self, reply: Reply, request: CompletionRequest) -> None:
        """Note which field the server refused. Raises RemoteError when the refusal names none that we can leave out."""
        words = set(re.findall(r"\w+", reply.body.decode(errors="replace")))
        sent = {name for name in _OPTIONAL if getattr(request, name) is not None} - self._refused_fields
        if request.suffix and "suffix" in words:
            self._takes_suffix = False
        elif sent & words:
            self._refused_fields |= sent & words
        else:
            raise RemoteError(
                f"{self._endpoint.server} refuses the request ({reply.status}); check the dialect, the path of the URL "
                "and the model after the #"
            )

    def _read(self, reply: Reply) -> ServerAnswer:
        completion = read_json(reply.body, _Completion)
        answer = completion.to_answer() if completion is not None else None
        if answer is None:
            raise RemoteError(
                f"{self._endpoint.server} answers, but not with a completion; check the dialect and the path of the URL"
            )
        return answer


class Mercury(Completions):
    """POST URL/fim/completions: the path of Inception's Mercury."""

    path = "/fim/completions"
