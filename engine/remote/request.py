"""What the requests of all dialects share: their JSON bodies, and how several of them run at once."""

import asyncio
import json
from collections.abc import Collection, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from engine.protocol.framing import strict_converter
from engine.protocol.messages import Fill, left_edge
from engine.remote.server_text import ServerText

_MOST_TOKENS = 2**31 - 1


def _count(number: int) -> int:
    """Return a server's count as one that a frame can hold: it may say anything."""
    return min(max(number, 0), _MOST_TOKENS)


@attrs.frozen
class ServerAnswer:
    """A server's texts for one hole, the greedy one first, and the size of the context in tokens.

    The server had `cached_tokens` of the `context_tokens` in its cache.
    """

    texts: Sequence[ServerText]
    context_tokens: int = attrs.field(default=0, converter=_count)
    cached_tokens: int = attrs.field(default=0, converter=_count)


class Dialect(Protocol):
    """Asks one server."""

    async def ask(self, fill: Fill, deadline: float) -> ServerAnswer:
        """Have a hole filled until `deadline`, in seconds of the event loop's clock.

        Raises RemoteError in one line, and TimeoutError at the deadline.
        """
        ...


PREFIX_CHARACTERS = 12_000
SUFFIX_CHARACTERS = 4_000
SNIPPET_CHARACTERS = 8_000
"""Of all snippets together."""
_STRIDE = 2_000


@attrs.frozen
class FimTags:
    """The tags that a model was trained on: before the prefix, before the suffix and before the middle."""

    prefix: str
    suffix: str
    middle: str

    def prompt(self, prefix: str, suffix: str) -> str:
        """Return the prompt that the model continues with the middle."""
        return f"{self.prefix}{prefix}{self.suffix}{suffix}{self.middle}"


_PIPED = FimTags("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_FAMILIES = {
    "qwen": _PIPED,
    "codegemma": _PIPED,
    "starcoder": FimTags("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    "granite": FimTags("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    "codellama": FimTags("<PRE> ", " <SUF>", " <MID>"),
    "deepseek-coder": FimTags("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001  # these are its tokens
}
KNOWN_FAMILIES = ", ".join(_FAMILIES)
ALL_TAGS = tuple(dict.fromkeys(_FAMILIES.values()))


def tags_of(model: str) -> FimTags | None:
    """Return the tags of a model whose name contains a known family's; None for all other names."""
    name = model.lower()
    return next((tags for family, tags in _FAMILIES.items() if family in name), None)


def clip_prefix(prefix: str) -> str:
    """Return the end of a prefix, at most PREFIX_CHARACTERS of it.

    The left edge moves in strides. So consecutive requests begin with the same text, and the server can reuse its
    cache.
    """
    return prefix[left_edge(len(prefix), PREFIX_CHARACTERS, _STRIDE) :]


def clip_suffix(suffix: str) -> str:
    """Return the beginning of a suffix, at most SUFFIX_CHARACTERS of it."""
    return suffix[:SUFFIX_CHARACTERS]


_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")
_converter = strict_converter()


def write_json(request: attrs.AttrsInstance, omitted: Collection[str] = ()) -> str:
    """Return a request as JSON, without the fields that are None or named in `omitted`."""
    fields = attrs.asdict(request).items()
    return json.dumps({name: value for name, value in fields if value is not None and name not in omitted})


def read_json(body: bytes, answer_class: type[_Answer]) -> _Answer | None:
    """Return the answer in `body`; None when it is not JSON or has another shape. Unknown fields are ignored."""
    try:
        return _converter.structure(json.loads(body), answer_class)
    except Exception:  # json and cattrs raise what a bad body provokes: ValueError, RecursionError, KeyError
        return None


async def run_together(coroutines: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Run the requests of one fill at once and return their results in order.

    Raises the first exception after cancelling the other requests.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except* Exception as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
