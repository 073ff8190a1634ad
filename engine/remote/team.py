"""The backend that asks `midspan serve` of a team, in the frames of our own protocol: fills, cancels and the memory.

What it learned is kept here too, compressed. If a fill is answered with another mind, which knows nothing of the
workspace yet, all of it is sent again in the background. So the servers of a team need not keep anything.
"""

import asyncio
import hashlib
import logging
import zlib
from collections import deque

import attrs

from engine.errors import ProtocolError, RemoteError
from engine.protocol.framing import pack, unpack_all
from engine.protocol.memory_messages import (
    Forget,
    Learn,
    MemoryRequest,
    MemoryStatus,
    MemoryStatusRequest,
    MemoryUpdated,
)
from engine.protocol.messages import Fill, Filled, Message, Read
from engine.remote.backend import RemoteBackend
from engine.remote.connection import Reply
from engine.remote.endpoint import Endpoint
from engine.schedule.backend import Ticket

FILL_PATH, MEMORY_PATH = "/midspan/fill", "/midspan/memory"
MOST_REQUESTS = 32
"""About the memory, in one body."""
_MOST_BODY_BYTES = 1 << 20
"""After so many bytes a body gets no further request; a single one may have as many as a frame."""
_KEPT_BYTES = 64 << 20
"""Compressed texts, which is some 80 million tokens of code. Files beyond it are not sent again."""
_PATIENCE_S = 30.0
_log = logging.getLogger(__name__)


class TeamBackend(RemoteBackend):
    """Implements schedule.backend.Backend. The name of a workspace's folder stays here: only its hash is sent."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._kept = _KeptFiles()
        self._queue: deque[_Pending] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._minds: dict[str, str] = {}
        """The memory that has all that was learned of a workspace; "" if something did not arrive."""

    async def stop(self) -> None:
        """Cancel everything and close all connections."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        for pending in self._queue:
            pending.answer.cancel()
        await super().stop()

    def learn(self, learn: Learn) -> asyncio.Future[None]:
        """Send a file. The future ends when the server knows it, or cannot be reached: then it is sent later."""
        self._kept.learn(learn)
        return self._updated(learn)

    def forget(self, forget: Forget) -> asyncio.Future[None]:
        """Have the server forget files. The future ends as that of `learn` does."""
        self._kept.forget(forget)
        return self._updated(forget)

    def memory_status(self, workspace: str) -> asyncio.Future[MemoryStatus]:
        """Ask how much the server knows; nothing if it cannot be reached."""
        answer: asyncio.Future[MemoryStatus] = asyncio.get_running_loop().create_future()
        nothing = MemoryStatus(workspace, files=0, tokens=0, bytes=0)
        if not workspace:
            answer.set_result(nothing)
            return answer

        def settle(done: asyncio.Future[Message | None]) -> None:
            message = None if done.cancelled() else done.result()
            if not answer.done():
                known = message if isinstance(message, MemoryStatus) else nothing
                answer.set_result(attrs.evolve(known, workspace=workspace))

        self._enqueue(MemoryStatusRequest(workspace)).add_done_callback(settle)
        return answer

    async def _ask(self, ticket: Ticket, deadline: float, sent: float) -> Filled:
        request, texts = ticket.request, 1
        asked = attrs.evolve(
            request,
            path=request.path if request.workspace else "",
            workspace=_alias(request.workspace),
            budget_ms=max(1.0, (deadline - sent) * 1000),
        )
        if isinstance(asked, Fill):
            asked, texts = attrs.evolve(asked, progress=False), asked.candidates
        reply = await self._post(FILL_PATH, pack(asked), deadline, request.max_tokens * texts)
        filled = self._messages(reply)[0]
        if not isinstance(filled, Filled) or not (filled.candidates or isinstance(request, Read)):
            raise RemoteError(f"{self._endpoint.server} answers, but not as Midspan does; check the URL")
        if request.workspace:
            self._meet(request.workspace, reply.mind)
        answered = asyncio.get_running_loop().time()
        waited = round((sent - ticket.submitted) * 1000, 3)
        total = round((answered - ticket.submitted) * 1000, 3)
        return attrs.evolve(
            filled, id=request.id, ms=attrs.evolve(filled.ms, queue=filled.ms.queue + waited, total=total)
        )

    def _meet(self, workspace: str, mind: str) -> None:
        """Send a workspace again if this mind does not know it, and nothing of it is under way."""
        if not self._kept.has(workspace) or self._minds.get(workspace) == mind:
            return
        if any(pending.request.workspace == workspace for pending in self._queue):
            return
        self._minds[workspace] = mind
        for request in self._kept.again(workspace):
            self._enqueue(request)

    def _updated(self, request: MemoryRequest) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(_: asyncio.Future[Message | None]) -> None:
            if not done.done():
                done.set_result(None)

        self._enqueue(request).add_done_callback(settle)
        return done

    def _enqueue(self, request: MemoryRequest) -> "asyncio.Future[Message | None]":
        pending = _Pending(request, asyncio.get_running_loop().create_future())
        self._queue.append(pending)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return pending.answer

    async def _send_all(self) -> None:
        while self._queue:
            batch, size = [self._queue.popleft()], 0
            while self._queue and len(batch) < MOST_REQUESTS and size < _MOST_BODY_BYTES:
                if self._queue[0].request.workspace != batch[0].request.workspace:
                    break
                size += len(getattr(batch[-1].request, "text", ""))
                batch.append(self._queue.popleft())
            await self._send_batch(batch)

    async def _send_batch(self, batch: "list[_Pending]") -> None:
        workspace = batch[0].request.workspace
        alias = _alias(workspace)
        answers: list[Message | None] = [None] * len(batch)
        try:
            body = b"".join(pack(attrs.evolve(each.request, workspace=alias, id=0)) for each in batch)
            deadline = asyncio.get_running_loop().time() + _PATIENCE_S
            reply = await self._post(MEMORY_PATH, body, deadline, 0)
            messages = self._messages(reply)
            if len(messages) != len(batch) or not all(isinstance(m, MemoryUpdated | MemoryStatus) for m in messages):
                raise RemoteError(f"{self._endpoint.server} answers, but not as Midspan does; check the URL")
            answers = list(messages)
            before = self._minds.setdefault(workspace, reply.mind)
            if before != reply.mind:
                self._minds[workspace] = ""
        except (RemoteError, ProtocolError, UnicodeEncodeError, TimeoutError) as error:
            _log.warning("the memory of a workspace is not sent: %s", error or type(error).__name__)
            self._minds[workspace] = ""
        for pending, answer in zip(batch, answers, strict=True):
            if not pending.answer.done():
                pending.answer.set_result(answer)

    async def _post(self, path: str, body: bytes, deadline: float, tokens: int) -> Reply:
        assert self._connection is not None
        reply = await self._connection.post(self._endpoint.url + path, body, deadline, tokens)
        if reply.refused:
            raise RemoteError(f"{self._endpoint.server} refuses the request ({reply.status}); is it of this version?")
        return reply

    def _messages(self, reply: Reply) -> list[Message]:
        try:
            messages = unpack_all(reply.body)
        except ProtocolError:
            messages = []
        if not messages:
            raise RemoteError(f"{self._endpoint.server} answers, but not as Midspan does; check the URL")
        return messages


@attrs.frozen
class _Pending:
    """A request about the memory that waits to be sent. `answer` is None if it did not arrive."""

    request: MemoryRequest
    answer: "asyncio.Future[Message | None]"


class _KeptFiles:
    """The texts that were learned, compressed, the least recently learned first."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._bytes = 0

    def has(self, workspace: str) -> bool:
        return any(name == workspace for name, _ in self._files)

    def learn(self, learn: Learn) -> None:
        self._drop(learn.workspace, learn.path)
        packed = zlib.compress(learn.text.encode(errors="replace"), 1)
        self._files[learn.workspace, learn.path] = learn.language, packed
        self._bytes += len(packed)
        while self._bytes > _KEPT_BYTES:
            self._drop(*next(iter(self._files)))

    def forget(self, forget: Forget) -> None:
        """As the engine does: these paths, or all but those to keep."""
        kept, named = set(forget.keep), set(forget.paths)
        for workspace, path in list(self._files):
            if workspace == forget.workspace and (path in named if named else path not in kept):
                self._drop(workspace, path)

    def again(self, workspace: str) -> list[MemoryRequest]:
        """Return what makes an empty memory one that knows this workspace."""
        return [
            Learn(workspace, path, zlib.decompress(packed).decode(), language)
            for (name, path), (language, packed) in self._files.items()
            if name == workspace
        ]

    def _drop(self, workspace: str, path: str) -> None:
        dropped = self._files.pop((workspace, path), None)
        if dropped is not None:
            self._bytes -= len(dropped[1])


def _alias(workspace: str) -> str:
    """Return the name of a workspace for the server, which tells nothing of the folder's place."""
    return hashlib.sha256(workspace.encode(errors="replace")).hexdigest()[:32] if workspace else ""
