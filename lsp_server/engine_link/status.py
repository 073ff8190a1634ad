"""The state that an editor's status item shows, and the snooze, which it shows too."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import attrs

from engine.client.address import is_loopback
from engine.protocol.editor_messages import ModelOffer, State, StatusReport
from engine.protocol.memory_messages import MemoryStatus
from engine.protocol.messages import ModelInfo, Status
from lsp_server.engine_link.offers import Counts
from lsp_server.wire import StatusParams

IDLE = "The engine starts when it is first needed."
DIED = "The engine died; it starts again with the next request."
"""Shown as an error, but not as a message to the user: the next request repairs it."""
_RECENT_FILLS = 101
_FILLING = "Filling a hole."
MAX_MINUTES = 7 * 24 * 60
_LATE_S = 0.05
"""The timer and the clock do not go exactly alike: a little later the snooze is over by both."""


class StatusBoard:
    """Keeps the state, and sends it to the editor as midspan/status whenever it changes.

    `warn` shows an error to the user, each once: many editors have no status item, and silence would look like a model
    that has nothing to suggest.
    """

    def __init__(self, send: Callable[[StatusParams], None], warn: Callable[[str], object] = lambda _: None) -> None:
        self.counts = Counts()
        self._send, self._warn = send, warn
        self._warned = {DIED}
        self._sent: StatusParams | None = None
        self._state: State = "idle"
        self._message = IDLE
        self._model: str | None = None
        self._is_server = False
        self._busy = _FILLING
        self._enabled = True
        self._filling = 0
        self._recent_ms: deque[float] = deque(maxlen=_RECENT_FILLS)
        self._memory: str | None = None
        self._snoozed_until: float | None = None
        self._note = ""
        self._offer: ModelOffer | None = None
        self._awaited: list[float] = []
        self._fills_to_await = 0
        self._then: Callable[[list[float]], object] = lambda _: None

    @property
    def median_ms(self) -> float | None:
        """The median time of the recent fills in milliseconds, from request to answer; None before the first."""
        return round(sorted(self._recent_ms)[len(self._recent_ms) // 2], 1) if self._recent_ms else None

    @property
    def message(self) -> str:
        """What is said of the engine, as a sentence."""
        return self._message

    def show(self, state: State, message: str, model: str | None = None) -> None:
        """Set the engine's state."""
        self._state, self._message, self._model = state, message, model
        self.refresh()

    def connected(self, model: ModelInfo) -> None:
        """Show that the engine is ready, with which model, and whether the code is sent to another machine."""
        self._is_server = bool(model.server)
        self._busy = f"Filling a hole. {_whereabouts(model)}" if model.server else _FILLING
        if model.server:
            label = model.name if model.name == model.server else f"{model.name} at {model.server}"
            self.show("ready", f"Ready: {model.name}. {_whereabouts(model)}", label)
        else:
            self.show("ready", f"Ready: {model.name} on {model.device}.", model.name)

    def switch(self, enabled: bool) -> None:
        """Set whether suggestions are on."""
        self._enabled = enabled
        self.refresh()

    def snooze(self, until: float | None) -> None:
        """Show until when, in seconds since the epoch, nothing is suggested unasked; None ends that."""
        self._snoozed_until = until
        self.refresh()

    def know(self, memory: MemoryStatus) -> None:
        """Show how much is known of the workspace."""
        self._memory = f"memory: {memory.readable}"
        self.refresh()

    def note(self, sentence: str) -> None:
        """Show a sentence about the file in which the user was last; "" when there is nothing to say."""
        if sentence != self._note:
            self._note = sentence
            self.refresh()

    def took(self, milliseconds: float) -> None:
        """Note the time of a fill, from request to answer."""
        self._recent_ms.append(milliseconds)

    def after_fills(self, count: int, then: Callable[[list[float]], object]) -> None:
        """Call `then` once, with the times of the next `count` fills that nobody asked for, in milliseconds."""
        self._awaited, self._fills_to_await, self._then = [], count, then

    def awaited(self, milliseconds: float) -> None:
        """Note the time of a fill that nobody asked for, also of one that was late and then cancelled."""
        if self._fills_to_await:
            self._awaited.append(milliseconds)
            if len(self._awaited) == self._fills_to_await:
                self._fills_to_await = 0
                self._then(self._awaited)

    def offer(self, offer: ModelOffer | None) -> None:
        """Show a larger model that this machine could carry, or none any more."""
        self._offer = offer
        self.refresh()

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Show the state "busy" while the context is open. Fills may overlap."""
        self._filling += 1
        self.refresh()
        try:
            yield
        finally:
            self._filling -= 1
            self.refresh()

    def refresh(self) -> None:
        """Send the state if it has changed."""
        current = self._current()
        if self._sent is None or _without_median(current) != _without_median(self._sent):
            self._sent = current
            self._send(current)
            if current.state == "error" and current.message not in self._warned:
                self._warned.add(current.message)
                self._warn(current.message)

    def report(self, model: str, engine: Status | None) -> StatusReport:
        """Return the whole report; `model` is the one of the settings."""
        current = self._current()
        return StatusReport(
            state=current.state,
            message=current.message,
            enabled=self._enabled,
            model=model,
            **attrs.asdict(self.counts),
            median_ms=self.median_ms,
            memory=self._memory,
            snoozed_until=self._snoozed_until,
            engine=engine,
            offer=self._offer,
        )

    def _current(self) -> StatusParams:
        until = self._snoozed_until
        if not self._enabled:
            return StatusParams("off", "Suggestions are off.", snoozed_until=until)
        state, message = self._state, self._message
        if state == "ready" and self._filling:
            state, message = "busy", self._busy
        elif state in ("idle", "ready") and until is not None:
            state, message = "off", f"Snoozed until {time.strftime('%H:%M', time.localtime(until))}."
        if state in ("idle", "ready", "busy") and self._note:
            message = f"{message} {self._note}"
        median, memory = self.median_ms, self._memory
        return StatusParams(state, message, self._model, median, memory, until, self._offer, self._is_server)


def leaves_machine(model: ModelInfo) -> bool:
    """Return whether the text that a model reads is sent to another machine."""
    return bool(model.server) and not is_loopback(urlsplit(f"//{model.server}").hostname or "")


def _whereabouts(model: ModelInfo) -> str:
    """Return a sentence that says where the code goes for a model that a server runs."""
    if not leaves_machine(model):
        return f"Its server {model.server} is on this machine, which your code does not leave."
    return f"Your code leaves this machine: it is sent to {model.server}."


def _without_median(params: StatusParams) -> StatusParams:
    """A new median alone is not sent; it goes along with the next change."""
    return attrs.evolve(params, median_ms=None)


def as_log_line(report: StatusReport) -> str:
    """Return a report as one line for the log."""
    parts = [f"{report.state} ({report.message.rstrip('.')})", f"model {report.model}"]
    if report.engine is not None:
        model = report.engine.model
        parts[-1] = f"model {model.name} on {model.server or model.device}"
        parts.append(f"engine {report.engine.pid}, cache hit rate {report.engine.cache_hit_rate:.0%}")
    parts.append(
        f"{report.asked} asked, {report.reused} typed along, {report.shown} shown, {report.accepted} accepted, "
        f"{report.partial} in part, {report.dismissed} dismissed"
    )
    if report.memory is not None:
        parts.append(report.memory)
    if report.median_ms is not None:
        parts.append(f"median {report.median_ms:g} ms")
    return "; ".join(parts)


class Snooze:
    """For some minutes nothing is suggested unless the user asks. The end is shown on the status board."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, minutes: float) -> float | None:
        """Snooze from now on, and return the end in seconds since the epoch; 0 minutes end it and return None."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._until = time.time() + 60 * minutes if minutes > 0 else None
        if self._until is not None:
            self._wait(self._until)
        self._board.snooze(self._until)
        return self._until

    def holds(self) -> bool:
        """Return whether the snooze goes on. Its end is shown on the board."""
        # The timer stops while the machine sleeps, so the clock decides.
        if self._until is not None and time.time() >= self._until:
            self.begin(0)
        return self._until is not None

    def _wait(self, until: float) -> None:
        left = max(until - time.time(), 0.0) + _LATE_S
        self._timer = asyncio.get_running_loop().call_later(left, self._wake)

    def _wake(self) -> None:
        if self.holds() and self._until is not None:
            self._wait(self._until)
