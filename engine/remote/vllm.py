"""The dialect of vLLM: completions without a suffix, and for DiffusionGemma a canvas in which the suffix is held fixed.

vLLM refuses `suffix` for every model. A model of a family whose marks are known gets a prompt with them. DiffusionGemma
gets its prefix as prompt and a canvas of noise for the middle with the suffix behind it, through the request's
`vllm_xargs`: diffusion_seed_canvas, diffusion_pinned, diffusion_canvas_length, diffusion_max_steps, which are read as
vLLM's own tests of them say (tests of validate_diffusion_sampling_params). A canvas has a fixed length, so several are
asked for at once and the one that the model is surest of is taken. A server that refuses these fields is asked for
plain completions from then on.
"""

import math
import random

import attrs

from engine.errors import RemoteError
from engine.protocol.messages import Fill
from engine.remote.clip import clip_prefix
from engine.remote.completions import CompletionRequest, Completions
from engine.remote.connection import Connection
from engine.remote.dialect import Written
from engine.remote.endpoint import Endpoint
from engine.remote.json_bodies import read_json, write_json
from engine.remote.prompt import marks_of
from engine.remote.together import together
from engine.remote.writing import Writing

_DIFFUSION = "diffusion"
_LINE_LENGTHS = (4, 8, 16)
_LENGTHS = (8, 16, 32)
_SUFFIX_TOKENS = 32
_SUFFIX_CHARACTERS = 400
_STEPS = 8
_VOCABULARY = 262_144
"""Of DiffusionGemma, whose noise is any of its tokens."""


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


class _Refused(Exception):
    """The server does not take a canvas of ours."""


class Vllm(Completions):
    """POST URL/completions of a vLLM; POST /tokenize of the same server where a suffix must become tokens."""

    def __init__(self, endpoint: Endpoint, connection: Connection) -> None:
        super().__init__(endpoint, connection)
        self._takes_suffix = marks_of(endpoint.model) is None  # else there is no need to be told that it does not
        self._takes_canvas = _DIFFUSION in endpoint.model.lower()
        self._suffix: tuple[str, list[int]] = ("", [])

    async def write(self, fill: Fill, deadline: float) -> Written:
        if self._takes_canvas:
            try:
                return await self._denoise(fill, deadline)
            except _Refused:
                self._takes_canvas = False
        return await super().write(fill, deadline)

    async def _denoise(self, fill: Fill, deadline: float) -> Written:
        """Return the texts of canvases of several lengths, the surest first."""
        suffix = await self._tokens_of(fill.suffix[:_SUFFIX_CHARACTERS], deadline)
        lengths = _LINE_LENGTHS if fill.extent == "line" else _LENGTHS
        fitting = [length for length in lengths if length <= fill.max_tokens] or [fill.max_tokens]
        noise = random.Random(fill.seed)
        requests = [self._canvas(fill, length, suffix[:_SUFFIX_TOKENS], noise) for length in fitting]
        written = await together(self._show(request, deadline) for request in requests)
        surest = sorted((each.writings[0] for each in written), key=_sureness, reverse=True)
        return attrs.evolve(written[0], writings=surest)

    async def _tokens_of(self, suffix: str, deadline: float) -> list[int]:
        known, tokens = self._suffix
        if suffix == known:
            return tokens
        url = self._endpoint.url.removesuffix("/v1") + "/tokenize"
        request = _TokenizeRequest(suffix, self._endpoint.model or None)
        reply = await self._connection.post(url, write_json(request), deadline)
        answer = None if reply.refused else read_json(reply.body, _Tokenized)
        if answer is None:
            raise _Refused
        self._suffix = (suffix, answer.tokens)
        return answer.tokens

    def _canvas(self, fill: Fill, length: int, suffix: list[int], noise: random.Random) -> _CanvasRequest:
        seed = [noise.randrange(_VOCABULARY) for _ in range(length)] + suffix
        return _CanvasRequest(
            prompt=clip_prefix(fill.prefix),
            suffix=None,
            max_tokens=length,  # which leaves the fixed suffix out of the answer
            model=self._endpoint.model or None,
            temperature=None,
            vllm_xargs=_CanvasArguments(seed, list(range(length, len(seed))), len(seed), fill.steps or _STEPS),
        )

    async def _show(self, request: _CanvasRequest, deadline: float) -> Written:
        url = self._endpoint.url + self.path
        reply = await self._connection.post(url, write_json(request, self._refused), deadline)
        if not reply.refused:
            return self._read(reply)
        if _DIFFUSION in (body := reply.body.decode(errors="replace")) or "vllm_xargs" in body:
            raise _Refused
        raise RemoteError(f"{self._endpoint.server} refuses the request ({reply.status}); see the server's own log")


def _sureness(writing: Writing) -> float:
    """Return the mean logarithm of probability of a text's tokens; a text without any comes last."""
    told = [token.log_probability for token in writing.tokens if token.log_probability is not None]
    return math.fsum(told) / len(told) if told else -math.inf
