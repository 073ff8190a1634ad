"""What a fill leaves for the next one: the context it has read, and the text it wrote."""

import time

import attrs

from engine.fill.interface import Context, Model
from engine.library.device_memory import UNKNOWN, DeviceMemory
from engine.protocol.messages import Fill

CACHE_BYTES = 256 * 1024 * 1024
CACHE_SHARE = 64
"""Contexts take at most CACHE_BYTES, and at most this part of the machine's memory."""
CROWDED_BYTES, CROWDED_SHARE = 2 * 1024 * 1024 * 1024, 16
"""The same for those of editors that type at once: a context each, which takes 18 MB."""
GPU_CACHE_SHARE = 3
"""On a GPU they take at most this part of what weights and graphs leave free: a large model's token takes 225 kB."""
RECENT_S = 20.0
"""Seconds without a request, after which nobody is in the middle of a word."""


def common_prefix(first: list[int], second: list[int]) -> int:
    """Return how many tokens two lists share from their start."""
    bound = min(len(first), len(second))
    if first[:bound] == second[:bound]:
        return bound
    return next(at for at in range(bound) if first[at] != second[at])


def cache_bytes_on(device: str, memory: DeviceMemory) -> int:
    """Return the bytes that idle contexts may take on a device with this memory."""
    if device == "cuda" and memory.free < UNKNOWN:
        return memory.free // GPU_CACHE_SHARE
    return min(CACHE_BYTES, memory.total // CACHE_SHARE)


def crowded_bytes_on(device: str, memory: DeviceMemory) -> int:
    """Return the bytes that they may take while many editors type at once."""
    return 0 if device == "cuda" else min(CROWDED_BYTES, memory.total // CROWDED_SHARE)


@attrs.frozen(eq=False)
class _Idle:
    """An idle context, who gave it back, and when: a time of time.monotonic."""

    context: Context
    scope: str
    owner: int
    since: float


class ContextCache:
    """Holds idle contexts, the least recently used first, for fills that begin alike.

    A context that a fill works in is not in the cache. Over `max_bytes` those that were not used for longest leave. But
    what each owner used last in a scope stays for RECENT_S, in up to `crowded_bytes`: if there were one context too few
    for those who type at once, each would find the own one gone at every key.

    Each belongs to a scope, and fills of other scopes do not find it: how fast a context was read would tell them that
    somebody else has the same text.
    """

    def __init__(self, model: Model, max_bytes: int, crowded_bytes: int = 0) -> None:
        self._model, self._max_bytes, self._crowded_bytes = model, max_bytes, crowded_bytes
        self._idle: list[_Idle] = []
        self._asked = self._reused = 0

    @property
    def bytes(self) -> int:
        return sum(idle.context.bytes for idle in self._idle.copy())

    @property
    def hit_rate(self) -> float:
        """The share of all context tokens that needed no encoding."""
        return self._reused / self._asked if self._asked else 0.0

    def take(self, tokens: list[int], scope: str = "") -> Context:
        """Return a context that holds the longest known prefix of `tokens`, for the caller alone.

        An idle context that shares most of its tokens is handed over. If it shares few, they are copied: so a hole
        elsewhere in the file does not discard what the next keystroke here needs.
        """
        self._asked += len(tokens)
        own = [idle for idle in self._idle if idle.scope == scope]
        best = max(own, key=lambda idle: common_prefix(idle.context.tokens, tokens), default=None)
        shared = common_prefix(best.context.tokens, tokens) if best is not None else 0
        if best is None or shared == 0:
            return self._model.new_context()
        self._reused += shared
        if shared * 2 < len(best.context.tokens):
            return best.context.fork(shared)
        self._idle.remove(best)
        best.context.truncate(shared)
        return best.context

    def give_back(self, context: Context, scope: str = "", owner: int = 0) -> None:
        """Keep a context for later, unless it is empty; over the bounds, others leave.

        The last one stays even if it alone is over the bound, as with a large model; unless the bound is 0.
        """
        if context.tokens:
            self._idle.append(_Idle(context, scope, owner, time.monotonic()))
        self.shrink()

    def shrink(self) -> None:
        """Drop what is over the bounds now."""
        kept = 1 if self._max_bytes else 0
        while len(self._idle) > kept and (held := self.bytes) > self._max_bytes:
            leaving = self._idle[0] if held > self._crowded_bytes else self._left_behind()
            if leaving is None:
                break
            self._idle.remove(leaving)

    def _left_behind(self) -> _Idle | None:
        """Return the context, not used for longest, that nobody goes on typing in, or None."""
        newest, before = {(idle.owner, idle.scope): idle for idle in self._idle}, time.monotonic() - RECENT_S
        gone = (each for each in self._idle if each is not newest[each.owner, each.scope] or each.since <= before)
        return next(gone, None)

    def clear(self) -> bool:
        """Drop all idle contexts; return whether there were any."""
        had, self._idle = bool(self._idle), []
        return had


MOST_DOCUMENTS = 64
_TAIL = 200
"""Characters before the hole by which it is known again."""
_Key = tuple[int, str, str]


@attrs.frozen
class _Written:
    tail: str
    text: str


class LastTexts:
    """The last text of each document of each owner, which no other owner's fills draft.

    A key is often what the model expected, shown or not. Then the answer is the rest of the last one.
    """

    def __init__(self) -> None:
        self._written: dict[_Key, _Written] = {}

    def note(self, fill: Fill, owner: int, text: str) -> None:
        """Keep what was written in a hole, or the known rest that begins so: a cancelled fill wrote less of it."""
        known = self.rest(fill, owner)
        text = known if known.startswith(text) else text
        key = _key(fill, owner)
        self._written.pop(key, None)
        if text:
            self._written[key] = _Written(fill.prefix[-_TAIL:], text)
        if len(self._written) > MOST_DOCUMENTS:
            del self._written[next(iter(self._written))]

    def rest(self, fill: Fill, owner: int) -> str:
        """Return how the last text goes on at the hole; "" if something else was typed, or somewhere else.

        A fill with a trace gets nothing: its user watches how the text is written.
        """
        last = self._written.get(_key(fill, owner))
        if last is None or fill.trace:
            return ""
        recent = fill.prefix[-(_TAIL + len(last.text)) :]
        at = recent.rfind(last.tail) if last.tail else -1
        typed = recent[at + len(last.tail) :]
        return last.text[len(typed) :] if at >= 0 and last.text.startswith(typed) else ""


def _key(fill: Fill, owner: int) -> _Key:
    return owner, fill.scope, fill.path
