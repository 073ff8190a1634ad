"""A dialect: how a server is asked to fill a hole, and how its answer is read."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from engine.protocol.messages import Fill
from engine.remote.server_text import ServerText


@attrs.frozen
class ServerAnswer:
    """A server's texts for one hole, the greedy one first, and the size of the context in tokens.

    The server had `cached_tokens` of the `context_tokens` in its cache.
    """

    texts: Sequence[ServerText]
    context_tokens: int = 0
    cached_tokens: int = 0


class Dialect(Protocol):
    """Asks one server."""

    async def ask(self, fill: Fill, deadline: float) -> ServerAnswer:
        """Have a hole filled until `deadline`, in seconds of the event loop's clock.

        Raises RemoteError in one line, and TimeoutError at the deadline.
        """
        ...
