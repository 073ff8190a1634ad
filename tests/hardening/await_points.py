"""Strikes at the await points of the engine's client: each place where one of its coroutines is suspended.

A task factory wraps every task of the event loop, so a fault comes at a chosen suspension and not after some time.
"""

import asyncio
import types
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from pathlib import Path
from typing import Any

import attrs

import engine

_OURS = str(Path(engine.__file__).parent)


@attrs.frozen(order=True)
class AwaitPoint:
    """A line of the client that awaits, and which time it does so in this session, from 1."""

    place: str
    time: int

    def __str__(self) -> str:
        return f"{self.place}, time {self.time}"


@attrs.define
class Striker:
    """Notes the await points of a session in their order, and strikes once when `at` is reached."""

    at: AwaitPoint | None
    strike: Callable[[], None]
    points: list[AwaitPoint] = attrs.field(factory=list)
    struck: bool = False
    _times: Counter[str] = attrs.field(factory=Counter)

    def attach(self) -> None:
        """Watch the tasks that the running loop starts from now on."""
        asyncio.get_running_loop().set_task_factory(self._task)

    def _task(
        self, loop: asyncio.AbstractEventLoop, body: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        return asyncio.Task(self._watch(body), loop=loop, name=name, context=context)

    async def _watch(self, body: Coroutine[Any, Any, Any]) -> Any:
        return await _stepped(body, self._suspended)

    def _suspended(self, body: Coroutine[Any, Any, Any]) -> None:
        place = _place(body)
        if place is None:
            return
        self._times[place] += 1
        point = AwaitPoint(place, self._times[place])
        self.points.append(point)
        if point == self.at and not self.struck:
            self.struck = True
            self.strike()


@types.coroutine
def _stepped(
    body: Coroutine[Any, Any, Any], suspended: Callable[[Coroutine[Any, Any, Any]], None]
) -> Generator[Any, Any, Any]:
    """Run a coroutine as `await` does, and call `suspended` at each of its suspensions."""
    value, error = None, None
    while True:
        try:
            awaited = body.send(value) if error is None else body.throw(error)
        except StopIteration as end:
            return end.value
        suspended(body)
        try:
            value, error = (yield awaited), None
        except GeneratorExit:
            body.close()
            raise
        except BaseException as raised:
            value, error = None, raised


def _place(body: Any) -> str | None:
    """Return the innermost line of the engine's own code that waits in a coroutine."""
    found = None
    while body is not None:
        frame = getattr(body, "cr_frame", None)
        if frame is not None and frame.f_code.co_filename.startswith(_OURS):
            file = Path(frame.f_code.co_filename).relative_to(_OURS)
            found = f"{file.as_posix()}:{frame.f_lineno} {frame.f_code.co_name}"
        body = getattr(body, "cr_await", None)
    return found
