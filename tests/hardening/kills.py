"""Sessions of a client in which something ends, stops, fills or vanishes at an await point; the next session works."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import attrs
import psutil

from engine.client.launcher import HEARTBEAT_TIMEOUT_S, EngineOptions, connect_or_start
from engine.client.lock import is_held, read_record
from engine.errors import MidspanError
from engine.protocol.memory_messages import Forget, Learn
from engine.protocol.messages import Fill
from hardening.await_points import AwaitPoint, Striker
from hardening.language_server import Broken
from hardening.work import Row, Work

PATIENCE_S = HEARTBEAT_TIMEOUT_S + 30
"""A client waits so long for an engine that shows no sign of life, and then says so."""
_QUIET_S = 0.3
_TMPFS = "256k"
_HOLE = Fill(0, "def area(width, height):\n    return ", "\n", path="shapes.py", max_tokens=4)
_FILLER = "filler"


@attrs.define
class Place:
    """A runtime folder, and the engines that were seen there."""

    folder: Path
    options: EngineOptions
    seen: dict[int, psutil.Process] = attrs.field(factory=dict)

    def engine(self) -> psutil.Process | None:
        """Return the engine that holds the lock."""
        record = read_record(self.options.paths.lock)
        if record is None or not is_held(self.options.paths.lock):
            return None
        return self.seen.setdefault(record.pid, psutil.Process(record.pid))

    def end(self) -> None:
        """End every engine, also those whose folder was removed."""
        self.engine()
        for process in self.seen.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()
                process.wait(PATIENCE_S)


@attrs.frozen
class Fault:
    """Something that goes wrong, and how it is put right when the session is over or stands still."""

    name: str
    lifts_when_quiet: bool = False

    def strike(self, place: Place, session: "asyncio.Task[None]") -> None:
        engine = place.engine()
        match self.name:
            case "the engine is killed" if engine is not None:
                engine.kill()
            case "the engine is stopped" if engine is not None:
                engine.suspend()
            case "the disk is full":
                _fill_up(place.folder)
            case "the folder is gone":
                for path in place.folder.iterdir():
                    path.unlink()
                with suppress(OSError):  # A mount point stays.
                    place.folder.rmdir()
            case "the client gives up":
                session.cancel()

    def lift(self, place: Place) -> None:
        for process in place.seen.values():
            with suppress(psutil.NoSuchProcess):
                process.resume()
        (place.folder / _FILLER).unlink(missing_ok=True)
        place.folder.mkdir(mode=0o700, exist_ok=True)


FAULTS = (
    Fault("the engine is killed"),
    Fault("the engine is stopped", lifts_when_quiet=True),
    Fault("the disk is full"),
    Fault("the folder is gone"),
    Fault("the client gives up"),
)


async def _session(place: Place) -> None:
    """Do all that a client does: find or start, learn, fill, ask, forget, end."""
    client = await connect_or_start(place.options, "hardening")
    try:
        place.engine()
        await client.learn(Learn("/w", "a.py", "x = 1\n", "python"))
        await client.fill(attrs.evolve(_HOLE, workspace="/w"), lambda _: None)
        await client.status()
        await client.memory_status("/w")
        await client.forget(Forget("/w", ["a.py"]))
        await client.shutdown()
    finally:
        await client.close()


async def _struck_session(place: Place, fault: Fault, at: AwaitPoint | None) -> Striker:
    """Run a session that is struck at a point. Raises Broken if it does not end, or ends with anything but one line."""
    session: asyncio.Task[None]
    striker = Striker(at, lambda: fault.strike(place, session))
    striker.attach()
    session = asyncio.get_running_loop().create_task(_session(place))
    if fault.lifts_when_quiet:
        asyncio.get_running_loop().set_task_factory(None)
        watching = asyncio.create_task(_lift_when_quiet(place, fault, striker))
        striker.attach()
    await asyncio.wait({session}, timeout=PATIENCE_S)
    if fault.lifts_when_quiet:
        watching.cancel()
    if not session.done():
        session.cancel()
        raise Broken(f"{fault.name} at {at}: the session hangs after {striker.points[-1]}")
    error = None if session.cancelled() else session.exception()
    if error is not None and not (isinstance(error, MidspanError) and "\n" not in str(error)):
        raise Broken(f"{fault.name} at {at}: {type(error).__name__}: {error}") from error
    return striker


async def _lift_when_quiet(place: Place, fault: Fault, striker: Striker) -> None:
    while True:
        points = len(striker.points)
        await asyncio.sleep(_QUIET_S)
        if striker.struck and points == len(striker.points):
            fault.lift(place)


def points_of(place: Place) -> list[AwaitPoint]:
    """Return the await points of a session that nothing disturbs, each place once."""
    asyncio.run(_session(place))
    striker = asyncio.run(_struck_session(place, Fault("nothing"), None))
    return [point for point in striker.points if point.time == 1]


def strike(place: Place, fault: Fault, at: AwaitPoint) -> bool:
    """Run a session with a fault and then one without. Return whether the point was reached. Raises Broken."""
    try:
        striker = asyncio.run(_struck_session(place, fault, at))
        fault.lift(place)
        try:
            asyncio.run(asyncio.wait_for(_session(place), PATIENCE_S))
        except (MidspanError, TimeoutError) as error:
            raise Broken(f"after {fault.name} at {at} no session works: {error}") from None
        return striker.struck
    finally:
        place.end()
        place.seen.clear()


def soak(work: Work) -> list[Row]:
    """Strike with each fault at each place, then each time that it is reached, until the time is over."""
    rows = []
    with small_disk(work.folder) as disk:
        place = Place(work.folder, EngineOptions(model="embedded", threads=1))
        places = points_of(place)
        place.end()
        left = list(FAULTS)
        while left:
            fault, until = left.pop(0), work.left * len(left) / (len(left) + 1)
            if fault.name == "the disk is full" and disk is None:
                rows.append(Row(f"{fault.name}, at await points", 0, seen="skipped: needs root on Linux"))
                continue
            tried, lost = _strike_everywhere(place, fault, places, partial(_is_over, work, until))
            rows.append(Row(f"{fault.name}, at await points", tried, lost, f"{len(places)} places"))
            work.say(f"{fault.name}: {tried} sessions")
    return rows


def _is_over(work: Work, until: float) -> bool:
    return work.left < until


def _strike_everywhere(
    place: Place, fault: Fault, places: list[AwaitPoint], is_over: Callable[[], bool]
) -> tuple[int, list[str]]:
    """Strike at all places once, then at each place again, one time later, while it is reached."""
    tried, lost, points = 0, list[str](), list(places)
    while points and (tried < len(places) or not is_over()):
        point = points.pop(0)
        try:
            reached = strike(place, fault, point)
        except Broken as error:
            reached = False
            lost.append(str(error))
        tried += 1
        if reached:
            points.append(attrs.evolve(point, time=point.time + 1))
    return tried, lost


def _fill_up(folder: Path) -> None:
    with (folder / _FILLER).open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a small disk on a folder; None where that is not allowed."""
    allowed = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mount") is not None
    command = ["mount", "-t", "tmpfs", "-o", f"size={_TMPFS},mode=700", "tmpfs", str(folder)]
    if not allowed or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
