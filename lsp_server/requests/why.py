"""The requests midspan/whyThisSuggestion and midspan/whyNoSuggestion: where an offer came from, or why none came."""

from pathlib import Path

import attrs

from engine.errors import MidspanError
from engine.protocol.messages import Origin
from engine.protocol.origin_lines import origin_line, quoted, source_line
from lsp_server.protocol import refusal
from lsp_server.requests.desk import Desks, Offered
from lsp_server.session import Session
from lsp_server.suggest.pipeline import Plan, present
from lsp_server.suggest.silence import Silence
from lsp_server.wire import WhyAnswer, WhyOrigin, WhyParams

_BUDGET_MS = 5000.0
"""Nobody types meanwhile, and a fill that ends at its deadline would give another text."""


class Why:
    """Says where the last offer of a document came from, or why its last request showed nothing."""

    def __init__(self, session: Session, desks: Desks) -> None:
        self._session, self._desks = session, desks

    def nothing_in(self, uri: str) -> str:
        """Return why nothing is shown in a document, by its last request."""
        if (reason := self._session.why_not_served(uri)) is not None:
            return reason
        desk = self._desks.at(uri)
        silence = desk.silence
        if silence is not None and silence.cause == "waits" and self._session.link.connected is None:
            silence = Silence("away", self._session.board.message)
        if silence is not None:
            return silence.line
        if desk.offered is None:
            return "nothing was asked for in this document yet"
        return f"{quoted(desk.offered.text)} was shown"

    def answer_nothing(self, params: WhyParams) -> WhyAnswer:
        """Return why nothing is shown, whatever was shown before."""
        uri = params.text_document.uri
        silence = self._desks.at(uri).silence if self._session.why_not_served(uri) is None else None
        return WhyAnswer(self.nothing_in(uri), is_held_back=silence is not None and silence.is_held_back)

    def _is_taken(self, offer: Offered) -> bool:
        """Return whether the last thing that happened to a document is that the user took an offer."""
        before, current = offer.plan.snapshot, self._session.documents.find(offer.plan.snapshot.uri)
        at = offer.plan.hole.offset
        return current is not None and current.text == before.text[:at] + offer.text + before.text[at:]

    async def answer(self, params: WhyParams) -> WhyAnswer:
        """Return where the last suggestion came from, or why nothing was shown since.

        Raises JsonRpcException with one line without an engine.
        """
        desk = self._desks.at(params.text_document.uri)
        offer = desk.offered
        if offer is None or (desk.silence is not None and not self._is_taken(offer)):
            return self.answer_nothing(params)
        fill = attrs.evolve(offer.plan.fill, explain=True, budget_ms=_BUDGET_MS)
        try:
            client = await self._session.link.client()
            # The settings may exclude the file by now.
            if (reason := self._session.why_excluded(offer.plan.snapshot)) is not None:
                return WhyAnswer(f"this file is left alone: it {reason}")
            filled = await self._session.link.fill(client, fill)
        except MidspanError as error:
            raise refusal(str(error)) from None
        found = next((each for each in present(offer.plan, filled) if each.text == offer.text), None)
        if found is None:
            return WhyAnswer(f"{quoted(offer.text)} would not be suggested there now; what is known has changed")
        places = [self._place(offer.plan, origin) for origin in found.origins]
        return WhyAnswer(source_line(offer.text, found.source, found.origins), places)

    def _place(self, plan: Plan, origin: Origin) -> WhyOrigin:
        if origin.path != plan.fill.path:
            uri = Path(plan.fill.workspace, origin.path).as_uri()
            return WhyOrigin(origin_line(origin), uri, origin.line - 1)
        # The lines below have moved if the user took several lines.
        uri, current = plan.snapshot.uri, self._session.documents.find(plan.snapshot.uri)
        if current is not None and origin.line > plan.fill.line:
            moved = current.text.count("\n") - plan.snapshot.text.count("\n")
            origin = attrs.evolve(origin, line=max(1, origin.line + moved))
        return WhyOrigin(origin_line(origin), uri, origin.line - 1)
