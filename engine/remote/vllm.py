"""The dialect `vllm`: completions, and canvases of DiffusionGemma."""

import math
import random

import attrs

from engine.errors import RemoteError
from engine.protocol.messages import Fill
from engine.remote.completions import CompletionRequest, Completions
from engine.remote.connection import Connection
from engine.remote.endpoint import Endpoint
from engine.remote.request import (
    ServerAnswer,
    ServerText,
    clip_prefix,
    read_json,
    run_together,
    tags_of,
    write_json,
)

_DIFFUSION = "diffusion"
_LINE_LENGTHS = (4, 8, 16)
_LENGTHS = (8, 16, 32)
_SUFFIX_TOKENS = 32
_SUFFIX_CHARACTERS = 400
_STEPS = 8
_VOCABULARY = 262_144
"""The number of DiffusionGemma's tokens. Its noise is drawn from all of them."""


@attrs.frozen
class _TokenizeRequest:
    prompt: str
    model: str | None
    add_special_tokens: bool = False


@attrs.frozen
class _Tokenized:
    tokens: list[int]


@attrs.frozen
class _CanvasArguments:
    diffusion_seed_canvas: list[int]
    diffusion_pinned: list[int]
    diffusion_canvas_length: int
    diffusion_max_steps: int


@attrs.frozen
class _CanvasRequest(CompletionRequest):
    vllm_xargs: _CanvasArguments | None = None


class _CanvasRefused(Exception):
    """The server does not accept a canvas."""


class Vllm(Completions):
    """POST URL/completions, and POST /tokenize of the same server to get the tokens of a suffix.

    vLLM refuses `suffix` for every model. A model whose family is known gets a prompt with the family's tags.
    DiffusionGemma gets the prefix as its prompt, and a canvas: noise for the middle, then the tokens of the suffix,
    which stay fixed. The request sends the canvas in `vllm_xargs` as diffusion_seed_canvas, diffusion_pinned,
    diffusion_canvas_length and diffusion_max_steps; their meaning is taken from vLLM's tests of
    validate_diffusion_sampling_params. A canvas has a fixed length, so canvases of several lengths are requested at
    once and the most confident text is taken. After a server has refused these fields, it gets plain completions only.
    """

    def __init__(self, endpoint: Endpoint, connection: Connection) -> None:
        super().__init__(endpoint, connection)
        self._takes_suffix = tags_of(endpoint.model) is None  # with known tags, skip the request that would be refused
        self._takes_canvas = _DIFFUSION in endpoint.model.lower()
        self._tokenized_suffix: tuple[str, list[int]] = ("", [])

    async def ask(self, fill: Fill, deadline: float) -> ServerAnswer:
        if self._takes_canvas:
            try:
                return await self._denoise(fill, deadline)
            except _CanvasRefused:
                self._takes_canvas = False
        return await super().ask(fill, deadline)

    async def _denoise(self, fill: Fill, deadline: float) -> ServerAnswer:
        """Return the texts of canvases of several lengths, the most confident first."""
        suffix = await self._tokens_of(fill.suffix[:_SUFFIX_CHARACTERS], deadline)
        lengths = _LINE_LENGTHS if fill.extent == "line" else _LENGTHS
        fitting = [length for length in lengths if length <= fill.max_tokens] or [fill.max_tokens]
        noise = random.Random(fill.seed)
        requests = [self._canvas(fill, length, suffix, noise) for length in fitting]
        answers = await run_together(self._fill_canvas(request, deadline) for request in requests)
        texts = sorted((answer.texts[0] for answer in answers), key=_mean_log_probability, reverse=True)
        return attrs.evolve(answers[0], texts=texts)

    async def _tokens_of(self, suffix: str, deadline: float) -> list[int]:
        latest, tokens = self._tokenized_suffix
        if suffix == latest:
            return tokens
        url = self._endpoint.url.removesuffix("/v1") + "/tokenize"
        request = _TokenizeRequest(suffix, self._endpoint.model or None)
        reply = await self._connection.post(url, write_json(request), deadline)
        answer = None if reply.refused else read_json(reply.body, _Tokenized)
        if answer is None:
            raise _CanvasRefused
        tokens = answer.tokens[:_SUFFIX_TOKENS]
        self._tokenized_suffix = (suffix, tokens)
        return tokens

    def _canvas(self, fill: Fill, length: int, suffix: list[int], noise: random.Random) -> _CanvasRequest:
        seed = [noise.randrange(_VOCABULARY) for _ in range(length)] + suffix
        return _CanvasRequest(
            prompt=clip_prefix(fill.prefix),
            suffix=None,
            max_tokens=length,  # leaves the fixed suffix out of the answer
            model=self._endpoint.model or None,
            temperature=None,
            vllm_xargs=_CanvasArguments(seed, list(range(length, len(seed))), len(seed), fill.steps or _STEPS),
        )

    async def _fill_canvas(self, request: _CanvasRequest, deadline: float) -> ServerAnswer:
        url = self._endpoint.url + self.path
        body = write_json(request, self._refused_fields)
        reply = await self._connection.post(url, body, deadline, request.max_tokens)
        if not reply.refused:
            return self._read(reply)
        if _DIFFUSION in (body := reply.body.decode(errors="replace")) or "vllm_xargs" in body:
            raise _CanvasRefused
        raise RemoteError(f"{self._endpoint.server} refuses the request ({reply.status}); see the server's own log")


def _mean_log_probability(text: ServerText) -> float:
    """Return the mean log probability of a text's tokens; minus infinity when the server sent none."""
    known = [token.log_probability for token in text.tokens if token.log_probability is not None]
    return math.fsum(known) / len(known) if known else -math.inf
