"""The next edit by a model that was chosen for edits, where no rule knows it.

Its engine is another process than the one that fills, unless both models are the same. It is started with the first
edit after which it may be asked, and not at all without such a model.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

import attrs

from engine.client.address import remote_host_of
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions
from engine.errors import MidspanError
from engine.library.store import DEFAULT, NO_MODEL, chosen_for_edits
from engine.protocol.messages import Fill
from engine.protocol.rewrite import Rewrite
from lsp_server.documents.store import Snapshot
from lsp_server.engine_link.link import Bar, EngineLink
from lsp_server.engine_link.status import StatusBoard
from lsp_server.session import Session
from lsp_server.suggest.region import Region, past_edits, regions_of
from lsp_server.suggest.rewritten import EditPrice, Verdict, asked_text, verdicts

_logger = logging.getLogger(__name__)
_SCOPE = "edits"
"""Contexts of rewrites are kept apart from those of fills: each would push the other out."""
_BUDGET_MS = 10_000.0
"""A region's longest time. The next key ends it long before."""
_MOST_NEW_TOKENS = 48
_SETTLED_S = 0.4
"""So long after the request nothing is asked: whoever types on has not finished the edit."""


class _Quiet:
    """A bar that nobody sees."""

    def report(self, message: str) -> None:
        """Show nothing."""


@contextmanager
def _no_bar() -> Iterator[Bar]:
    yield _Quiet()


class ModelEdits:
    """Asks the model for edits, region by region."""

    def __init__(self, session: Session, price: EditPrice | None = None) -> None:
        self._session, self._price = session, price or EditPrice()
        self._link = EngineLink(StatusBoard(lambda _: None), _no_bar)
        self._refused: dict[str, int] = {}
        """The newest edit of a document after which the user refused what the model offered."""

    async def find(self, snapshot: Snapshot) -> Verdict | None:
        """Return the next edit of a document; None without one, or without a model. To cancel it cancels the engine."""
        newest = snapshot.edits.newest
        if newest is None or newest.serial <= self._refused.get(snapshot.uri, 0):
            return None
        options = self._chosen()
        return await self._ask(snapshot, options) if options is not None else None

    def refuse(self, snapshot: Snapshot) -> None:
        """Offer nothing more after the newest edit of a document."""
        if snapshot.edits.newest is not None:
            self._refused[snapshot.uri] = snapshot.edits.newest.serial

    def closed(self, uri: str) -> None:
        """Drop a closed document."""
        self._refused.pop(uri, None)

    async def close(self) -> None:
        """End the connection. The engine itself keeps running for others."""
        await self._link.close()

    def _chosen(self) -> EngineOptions | None:
        """Return the options of the engine with the model for edits; None without one."""
        settings = self._session.configuration.settings
        model = settings.edits_model
        if model == DEFAULT:
            model = chosen_for_edits().model
        # A server would get each edit unasked, and none of them knows our formats.
        if model == NO_MODEL or remote_host_of(model) is not None:
            return None
        return attrs.evolve(settings.engine_options, model=model)

    async def _ask(self, snapshot: Snapshot, options: EngineOptions) -> Verdict | None:
        await asyncio.sleep(_SETTLED_S)
        regions = regions_of(snapshot)
        if not regions:
            return None
        self._link.configure(options)
        try:
            # After a failed start this one starts nothing for a while: each edit would try again.
            client = await self._link.started()
            if client is None or not client.welcome.model.edits:
                return None
            for region in regions:
                if (change := await self._changed(client, snapshot, region)) is not None:
                    return change
        except MidspanError as error:
            _logger.warning("no next edit by the model: %s", error)
        return None

    async def _changed(self, client: EngineClient, snapshot: Snapshot, region: Region) -> Verdict | None:
        """Return the first change of a region that is to be offered."""
        fill = rewrite_of(snapshot, region)
        if fill is None:
            return None
        filled = await self._link.fill(client, fill)
        found = verdicts(snapshot, region, filled.candidates[0], self._price)
        _logger.debug("changes by the model: %s", [one.reason or "offered" for one in found])
        return next((one for one in found if not one.reason), None)


def rewrite_of(snapshot: Snapshot, region: Region) -> Fill | None:
    """Return the request to rewrite a region; None for one that must not be."""
    text = asked_text(snapshot, region)
    if text is None:
        return None
    kept = snapshot.text[region.start : region.free].count("\n")
    lines = text.splitlines(keepends=True)
    return Fill(
        id=0,
        prefix="",
        suffix="",
        path=PurePath(snapshot.path).name,
        language=snapshot.language.id,
        extent="lines",
        budget_ms=_BUDGET_MS,
        max_tokens=min(2048, len(text) // 2 + _MOST_NEW_TOKENS),
        memory="off",
        ahead=True,
        scope=_SCOPE,
        rewrite=Rewrite(text, kept=sum(map(len, lines[:kept])), edits=past_edits(snapshot)),
    )
