"""What a user's own language server asks a server of its team: fills and the memory, in the frames of our protocol.

The workspaces of different tokens are apart: their names begin with the token's owner, whatever a client sends.
"""

import hashlib
from collections.abc import Awaitable, Callable

import attrs

from engine.http.access import LOCAL
from engine.http.body import in_thread
from engine.http.connection import Problem
from engine.http.engine_links import Links
from engine.protocol.framing import limit_error, memory_limit_error, pack, unpack_all
from engine.protocol.memory_messages import Forget, Learn, MemoryRequest, MemoryStatus, MemoryStatusRequest
from engine.protocol.messages import Fill, Filled, HoleRequest, Message
from engine.remote.team import MOST_REQUESTS


def scope_of(owner: str) -> str:
    """Return what keeps an owner's contexts and workspaces apart from all others; "" where no token is asked for."""
    return "" if owner == LOCAL else hashlib.sha256(owner.encode()).hexdigest()[:32]


class Team:
    """Reads the frames of a request, and writes those of its answer. The mind of an answer names its memory."""

    def __init__(self, links: Links) -> None:
        self._links = links

    async def fill(self, owner: str, body: bytes, ask: Callable[[HoleRequest], Awaitable[Filled]]) -> tuple[str, bytes]:
        """Return the mind and the frame of Filled. Raises MidspanError."""
        messages = await in_thread(_messages, body)
        request = messages[0]
        if len(messages) != 1 or not isinstance(request, HoleRequest):
            raise Problem(400, "the body is not one request about a hole; send one")
        if (wrong := limit_error(request)) is not None:
            raise Problem(400, wrong)
        asked = attrs.evolve(request, workspace=_own(owner, request.workspace))
        filled = await ask(attrs.evolve(asked, progress=False) if isinstance(asked, Fill) else asked)
        return self._links.mind_of(owner, asked.workspace), pack(attrs.evolve(filled, id=request.id))

    async def remember(self, owner: str, body: bytes) -> tuple[str, bytes]:
        """Return the mind and the frames of the answers, in the order of the requests. Raises MidspanError."""
        requests = await in_thread(_requests, owner, body)
        workspace = requests[0].workspace
        if any(request.workspace != workspace for request in requests):
            raise Problem(400, "the body has requests of two workspaces; send those of one")
        answers = await self._links.remember(owner, requests)
        # Without our name of the workspace.
        bare = (attrs.evolve(each, workspace="") if isinstance(each, MemoryStatus) else each for each in answers)
        return self._links.mind_of(owner, workspace), b"".join(map(pack, bare))


def _messages(body: bytes) -> list[Message]:
    """Return the messages of a body, at least one. Raises ProtocolError, Problem."""
    messages = unpack_all(body, MOST_REQUESTS)
    if not messages:
        raise Problem(400, "the body is empty; send frames of Midspan's protocol")
    return messages


def _requests(owner: str, body: bytes) -> list[MemoryRequest]:
    return [_scoped(owner, message) for message in _messages(body)]


def _scoped(owner: str, message: Message) -> MemoryRequest:
    if not isinstance(message, Learn | Forget | MemoryStatusRequest):
        raise Problem(400, "the body has another message than Learn, Forget or MemoryStatusRequest; send these here")
    if not message.workspace:
        raise Problem(400, "workspace is empty; name it")
    request: MemoryRequest = attrs.evolve(message, workspace=_own(owner, message.workspace))
    if (wrong := memory_limit_error(request)) is not None:
        raise Problem(400, wrong)
    return request


def _own(owner: str, workspace: str) -> str:
    """Return the name that a client's workspace has here; "" stays "", which is no workspace.

    It is no path, so it is none of the folders that the server's user named.
    """
    return f"{scope_of(owner)}:{workspace}" if workspace else ""
