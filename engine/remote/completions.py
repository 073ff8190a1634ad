"""The dialects that speak OpenAI's completions: `openai`, Mercury's /fim/completions, and the base of `vllm`.

Where a server refuses an optional field by name (status 400 or 422) the field is left out from then on.
"""

import re

import attrs

from engine.errors import RemoteError
from engine.protocol.messages import Fill
from engine.remote.clip import clip_prefix, clip_suffix
from engine.remote.connection import Connection, Reply
from engine.remote.dialect import Written
from engine.remote.endpoint import Endpoint
from engine.remote.json_bodies import read_json, write_json
from engine.remote.prompt import KNOWN, marks_of
from engine.remote.together import together
from engine.remote.writing import Writing, WrittenToken

_OPTIONAL = ("logprobs", "seed", "top_p", "temperature", "stop", "n")
# llama.cpp answers a completion with a suffix as if it had none, without a word.
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
class _Content:
    """A token as the chat interface tells it, and llama.cpp for completions as well."""

    token: str
    logprob: float | None = None
    bytes: list[int] | None = None

    def written(self) -> WrittenToken:
        raw = self.token.encode(errors="replace") if self.bytes is None else bytes(byte & 255 for byte in self.bytes)
        return WrittenToken(raw, self.logprob)


@attrs.frozen
class _LogProbabilities:
    """Either two lists of one length, as OpenAI's completions have it, or `content`."""

    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    content: list[_Content] | None = None

    def written(self) -> list[WrittenToken]:
        if self.content:
            return [token.written() for token in self.content]
        pairs = zip(self.tokens or (), self.token_logprobs or (), strict=False)
        return [WrittenToken(token.encode(errors="replace"), value) for token, value in pairs]


@attrs.frozen
class _Message:
    content: str


@attrs.frozen
class _Choice:
    text: str | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    logprobs: _LogProbabilities | None = None

    def writing(self) -> Writing | None:
        text = self.text if self.text is not None else self.message.content if self.message is not None else None
        if text is None:
            return None
        tokens = self.logprobs.written() if self.logprobs is not None else []
        return Writing(text, tokens, "canvas full" if self.finish_reason == "length" else "complete")


@attrs.frozen
class _Details:
    cached_tokens: int | None = None


@attrs.frozen
class _Usage:
    prompt_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


@attrs.frozen
class _Completion:
    choices: list[_Choice]
    usage: _Usage | None = None

    def written(self) -> Written | None:
        writings = [writing for choice in self.choices if (writing := choice.writing()) is not None]
        if not writings:
            return None
        usage = self.usage or _Usage()
        details = usage.prompt_tokens_details or _Details()
        return Written(writings, usage.prompt_tokens or 0, details.cached_tokens or 0)


class Completions:
    """POST URL/completions with prompt and suffix; a server that takes no suffix gets the model's marks."""

    path = "/completions"

    def __init__(self, endpoint: Endpoint, connection: Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection
        self._refused: set[str] = set()
        self._takes_suffix = True

    async def write(self, fill: Fill, deadline: float) -> Written:
        asked = [self._ask(fill, deadline)]
        if fill.candidates > 1:
            asked.append(self._ask(fill, deadline, sampled=fill.candidates - 1))
        greedy, *sampled = await together(asked)
        more = [writing for written in sampled for writing in written.writings]
        return attrs.evolve(greedy, writings=[*greedy.writings[:1], *more])

    async def _ask(self, fill: Fill, deadline: float, sampled: int = 0) -> Written:
        """Return the greedy text, or `sampled` drawn ones."""
        while True:
            request = self._request(fill, sampled)
            reply = await self._connection.post(
                self._endpoint.url + self.path, write_json(request, self._refused), deadline
            )
            if not reply.refused and request.suffix and reply.program.startswith(_IGNORES_SUFFIX):
                self._takes_suffix = False
            elif not reply.refused:
                return self._read(reply)
            else:
                self._learn(reply, request)

    def _request(self, fill: Fill, sampled: int) -> CompletionRequest:
        prefix, suffix = clip_prefix(fill.prefix), clip_suffix(fill.suffix)
        if suffix and not self._takes_suffix:
            marks = marks_of(self._endpoint.model)
            if marks is None:
                raise RemoteError(
                    f"{self._endpoint.server} takes no suffix, and the name of its model tells none of the families "
                    f"whose marks are known ({KNOWN}); llama.cpp fills holes of any model as llamacpp+URL"
                )
            prefix, suffix = marks.prompt(prefix, suffix), ""
        request = CompletionRequest(
            prompt=prefix,
            suffix=suffix or None,
            max_tokens=fill.max_tokens,
            model=self._endpoint.model or None,
            stop=["\n"] if fill.extent == "line" else None,
        )
        if not sampled:
            return request
        return attrs.evolve(request, temperature=fill.temperature, top_p=fill.top_p, seed=fill.seed, n=sampled)

    def _learn(self, reply: Reply, request: CompletionRequest) -> None:
        """Take from a refusal what to leave out from now on. Raises RemoteError when there is nothing to learn."""
        words = set(re.findall(r"\w+", reply.body.decode(errors="replace")))
        sent = {name for name in _OPTIONAL if getattr(request, name) is not None} - self._refused
        if request.suffix and "suffix" in words:
            self._takes_suffix = False
        elif sent & words:
            self._refused |= sent & words
        else:
            raise RemoteError(
                f"{self._endpoint.server} refuses the request ({reply.status}); check the dialect, the path of the URL "
                "and the model named behind #"
            )

    def _read(self, reply: Reply) -> Written:
        completion = read_json(reply.body, _Completion)
        written = completion.written() if completion is not None else None
        if written is None:
            raise RemoteError(
                f"{self._endpoint.server} answers, but not with a completion; check the dialect and the path of the URL"
            )
        return written


class Mercury(Completions):
    """POST URL/fim/completions, as Inception's Mercury has it."""

    path = "/fim/completions"
