"""The server's commands, which editors run by workspace/executeCommand."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from engine.errors import MidspanError
from engine.protocol.editor_messages import SHOW_STATUS, StatusReport
from engine.protocol.messages import Status
from lsp_server.documents.store import offset_in
from lsp_server.engine_link.status import MAX_MINUTES, as_log_line
from lsp_server.protocol import refusal
from lsp_server.requests.ladder import Ladder
from lsp_server.requests.late_edits import LateEdits
from lsp_server.requests.registration import HostQuestion
from lsp_server.requests.suggestions import Suggestions
from lsp_server.session import Session
from lsp_server.settings import number
from lsp_server.wire import (
    ACCEPTED,
    NEXT_EDIT_ACCEPTED,
    NEXT_EDIT_DISMISSED,
    RUN_ACTION,
    Dismissal,
    SnoozeResult,
    ToggleResult,
    read_tag,
)

_logger = logging.getLogger(__name__)

RESTART_ENGINE = "midspan.restartEngine"
INSTALL_MODEL = "midspan.installModel"
WITH_OFFER = "offer"
TOGGLE = "midspan.toggle"
DISMISSED = "midspan.dismissed"
SNOOZE = "midspan.snooze"
_STATUS_TIMEOUT_S = 2.0
_OFFER_TIMEOUT_S = 15.0
_MINUTES = number(0, MAX_MINUTES)


class Commands:
    """Each method is a command; its arguments are those that the editor sends."""

    def __init__(
        self, session: Session, suggestions: Suggestions, edits: LateEdits, host_question: HostQuestion, ladder: Ladder
    ) -> None:
        self._session = session
        self._suggestions = suggestions
        self._edits = edits
        self._host_question = host_question
        self._ladder = ladder

    @property
    def handlers(self) -> Mapping[str, Callable[..., Any]]:
        """The commands by name."""
        return {
            RESTART_ENGINE: self.restart_engine,
            SHOW_STATUS: self.show_status,
            INSTALL_MODEL: self._ladder.install,
            TOGGLE: self.toggle,
            SNOOZE: self.snooze,
            ACCEPTED: self.accepted,
            DISMISSED: self.dismissed,
            RUN_ACTION: self._edits.run_action,
            NEXT_EDIT_ACCEPTED: self._edits.asked(lambda features: features.next_edits.accepted),
            NEXT_EDIT_DISMISSED: self._edits.asked(lambda features: features.next_edits.dismiss),
        }

    async def restart_engine(self) -> None:
        """Stop the engine, for all its clients, and start it again."""
        self._suggestions.cancel_all()
        # The user may have confirmed the model's server meanwhile.
        self._host_question.use(self._session.configuration.settings.engine_options)
        try:
            await self._session.link.restart()
        except MidspanError as error:
            raise refusal(str(error)) from None

    async def show_status(self, *arguments: Any) -> StatusReport:
        """Return what the session and its engine did, and log it.

        With the argument "offer" the machine is measured first, unless it was: would it carry a larger model?
        """
        if arguments and arguments[0] == WITH_OFFER:
            with suppress(TimeoutError):
                async with asyncio.timeout(_OFFER_TIMEOUT_S):
                    await self._ladder.offered()
        engine: Status | None = None
        client = self._session.link.connected
        if client is not None:
            try:
                async with asyncio.timeout(_STATUS_TIMEOUT_S):
                    engine = await client.status()
                    await self._session.memory.count()
            except (MidspanError, TimeoutError):
                _logger.warning("the engine does not answer the status request; command %s may help", RESTART_ENGINE)
        report = self._session.board.report(self._session.configuration.settings.model, engine)
        _logger.info("%s", as_log_line(report))
        return report

    def toggle(self, *arguments: Any) -> ToggleResult:
        """Switch suggestions on or off, in all languages or in the one whose id is the argument.

        While nothing is suggested because of a snooze, the switch of all languages ends it.
        """
        language = arguments[0] if arguments else None
        if language is not None and not isinstance(language, str):
            raise JsonRpcInvalidParams(f"{TOGGLE} takes a language id or nothing, not {type(language).__name__}")
        configuration, snooze = self._session.configuration, self._session.snooze
        is_snoozed = language is None and snooze.holds()
        enabled = True if is_snoozed and configuration.is_on() else configuration.toggle(language)
        if is_snoozed and enabled:
            snooze.begin(0)
        self._suggestions.cancel_all()
        self._session.board.switch(self._session.configuration.is_on())
        return ToggleResult(enabled, language)

    def snooze(self, *arguments: Any) -> SnoozeResult:
        """Suggest nothing unasked for some minutes. The one argument is their number; 0 ends the snooze."""
        try:
            minutes = _MINUTES.read(*arguments)
        except (TypeError, ValueError):
            raise JsonRpcInvalidParams(f"{SNOOZE} takes minutes: {_MINUTES.allowed}; 0 ends the snooze") from None
        self._suggestions.cancel_all()
        return SnoozeResult(self._session.snooze.begin(minutes))

    def accepted(self, *arguments: Any) -> None:
        """Count an item that the user took. The one argument is the item's OfferTag."""
        tag = read_tag(arguments[0]) if arguments else None
        if tag is not None:
            self._session.offers.accepted(tag)
        else:
            # An editor that leaves the argument out still says that something was taken.
            self._session.board.counts.accepted += 1

    def dismissed(self, dismissal: Dismissal) -> None:
        """Suggest nothing at a position until the text there changes. The one argument is `{uri, position}`.

        `position` is the cursor's, in the agreed encoding. A document that is not open is ignored: it was just closed.
        """
        snapshot = self._session.served(dismissal.uri)
        if snapshot is not None:
            self._suggestions.dismiss(snapshot, offset_in(snapshot.source, dismissal.position, self._session.encoding))
