"""A dialect: how a server is asked to fill a hole, and how its answer is read."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from engine.protocol.messages import Fill
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
