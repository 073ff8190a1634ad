"""The request midspan/whyThisSuggestion: the last offer of a document is filled again, and explained."""

from pathlib import Path

import attrs

from engine.errors import MidspanError
from engine.protocol.messages import Origin
from engine.protocol.origin_text import origin_line, quoted, source_line
from lsp_server.protocol import refusal
from lsp_server.session import Session
from lsp_server.suggest.pipeline import Plan, present
from lsp_server.wire import WhyAnswer, WhyOrigin, WhyParams

_BUDGET_MS = 5000.0
"""Nobody types meanwhile, and a fill that ends at its deadline would give another text."""


@attrs.frozen
class _Offer:
    plan: Plan
    text: str


class Why:
    """Keeps the last offer of each document, and says where it came from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._offers: dict[str, _Offer] = {}

    def note(self, plan: Plan, text: str) -> None:
        """Keep what is offered in a document now."""
        self._offers[plan.snapshot.uri] = _Offer(plan, text)

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._offers.pop(uri, None)

    async def answer(self, params: WhyParams) -> WhyAnswer:
        """Return where the last suggestion came from. Raises JsonRpcException with one line without an engine."""
        offer = self._offers.get(params.text_document.uri)
        if offer is None:
            return WhyAnswer("nothing has been suggested in this document yet")
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
