"""What a dialect is: how a fill is put to a server, and how its answer is read."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from engine.protocol.messages import Fill
from engine.remote.writing import Writing


@attrs.frozen
class Written:
    """The texts for a hole, the greedy one first, and how many tokens of context were read and were known before."""

    writings: Sequence[Writing]
    context_tokens: int = 0
    cached_tokens: int = 0


class Dialect(Protocol):
    """Speaks to one server."""

    async def write(self, fill: Fill, deadline: float) -> Written:
        """Have a hole filled until `deadline`, on the event loop's clock.

        Raises RemoteError in one line, and TimeoutError at the deadline.
        """
        ...
