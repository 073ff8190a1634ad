"""The next edit by a model that was chosen for edits, where no rule knows it.

Its engine is another process than the one that fills, unless both models are the same. It is started with the first
edit after which it may be asked, and not at all without such a model.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from pathlib import PurePath

import attrs

from engine.client.address import remote_host_of, resolve_model
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions
from engine.errors import MidspanError
from engine.library.store import DEFAULT, NO_MODEL, chosen_for_edits
from engine.protocol.messages import Fill, ModelInfo, Read, Snippet, plain
from engine.protocol.rewrite import Report, Rewrite
from lsp_server.bulk.project_files import ProjectFiles
from lsp_server.documents.store import Snapshot
from lsp_server.engine_link.link import EngineLink
from lsp_server.engine_link.status import StatusBoard
from lsp_server.refactor.related_code import EditedFile, RelatedCode, related_code
from lsp_server.refactor.worker import NICENESS, Worker
from lsp_server.session import Session
from lsp_server.suggest.region import Region, names_of, past_edits, regions_of, used_in
from lsp_server.suggest.rewritten import EditPrice, JudgedEdit, asked_text, judged
from lsp_server.wire import EditorReport

_logger = logging.getLogger(__name__)
_SCOPE = "edits"
"""Contexts of rewrites are kept apart from those of fills: each would push the other out."""
_BUDGET_MS = 10_000.0
"""A region's longest time. The next key ends it long before."""
_MOST_NEW_TOKENS = 64
"""Besides one for each character: some models have a token for each digit."""
_PAUSE_S, _SETTLED_S = 0.1, 0.4
"""So long after the request nothing is read, and nothing is asked: whoever types on has not finished the edit."""
_MOST_FILES, _MOST_SECONDS, _CHUNK = 400, 0.6, 16
"""The nearest files, in which related code is looked for, for so long."""
_MOST_RELATED, _MOST_CHARACTERS = 4, 1_200
"""Each character is a third of a token, and a processor reads a token in some milliseconds."""
_MOST_REPORTS, _MOST_OF_REPORT = 4, 160


class _Quiet:
    """A bar that nobody sees."""

    def report(self, message: str) -> None:
        """Show nothing."""


Reports = Callable[[str], Awaitable[Sequence[EditorReport]]]
"""Returns what compilers and linters say in the editor of a document."""


@attrs.frozen
class _Known:
    """Related code, and what it was looked for: the document, the names of its edit, the other open files."""

    key: tuple[object, ...]
    snippets: list[Snippet]


class RelatedSearch:
    """Finds what other files have to do with an edit, and keeps it while the edit is about the same names.

    So the start of a prompt stays what the engine has read.
    """

    def __init__(self, session: Session, worker: Worker) -> None:
        self._session, self._worker = session, worker
        self._known: _Known | None = None

    async def around(self, snapshot: Snapshot, model: ModelInfo) -> list[Snippet]:
        """Return related code for the newest edit of a document; none if the model may not read other files.

        Raises MidspanError.
        """
        newest = snapshot.edits.newest
        if newest is None or not self._session.may_read_others(model):
            return []
        names, used = (tuple(sorted(words)) for words in (names_of(snapshot, newest), used_in(newest)))
        others = sorted((one.uri, one.version) for one in self._session.documents.all() if one.uri != snapshot.uri)
        key = (snapshot.uri, names, used, tuple(others))
        if self._known is None or self._known.key != key:
            self._known = _Known(key, snippets_of(await self._found(snapshot, names, used)))
        return self._known.snippets

    async def _found(self, snapshot: Snapshot, names: tuple[str, ...], used: tuple[str, ...]) -> list[RelatedCode]:
        files = await asyncio.to_thread(ProjectFiles.of, self._session)
        here = files.folders.place_of(snapshot.full)
        if here is None:
            return []
        targets = await asyncio.to_thread(files.targets, snapshot)
        near = [one for one in targets if one.folder == here.workspace][:_MOST_FILES]
        edited = EditedFile(snapshot.text, snapshot.language.id, here.path, here.workspace, names, used)
        found, ends = list[RelatedCode](), time.monotonic() + _MOST_SECONDS
        for start in range(0, len(near), _CHUNK):
            found += await self._worker.run(related_code, edited, near[start : start + _CHUNK])
            if len(found) >= _MOST_RELATED or time.monotonic() > ends:
                break
        return found


def snippets_of(found: Sequence[RelatedCode]) -> list[Snippet]:
    """Return the code that is read: declarations come first, because all uses of a name say much the same."""
    chosen, room = list[Snippet](), _MOST_CHARACTERS
    for one in sorted(found, key=lambda one: not one.declares)[:_MOST_RELATED]:
        room -= len(one.text)
        if room >= 0 and plain(one.text) == one.text:
            chosen.append(Snippet(one.path, one.text))
    return chosen


class ModelEdits:
    """Asks the model for edits, region by region. `worker` looks for related code."""

    def __init__(self, session: Session, worker: Worker, reports: Reports) -> None:
        self._session, self._reports = session, reports
        self._related = RelatedSearch(session, worker)
        self._link = EngineLink(StatusBoard(lambda _: None), lambda: nullcontext(_Quiet()))
        self._refused: dict[str, int] = {}
        """The newest edit of a document after which the user refused what the model offered."""

    async def find(self, snapshot: Snapshot) -> JudgedEdit | None:
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
        # An engine of its own gives way to the one that fills.
        niceness = 0 if resolve_model(model) == resolve_model(settings.model) else NICENESS
        return attrs.evolve(settings.engine_options, model=model, niceness=niceness)

    async def _ask(self, snapshot: Snapshot, options: EngineOptions) -> JudgedEdit | None:
        settled = time.monotonic() + _SETTLED_S
        await asyncio.sleep(_PAUSE_S)
        regions = regions_of(snapshot)
        if not regions:
            return None
        self._link.configure(options)
        try:
            # After a failed start this one starts nothing for a while: each edit would try again.
            client = await self._link.started()
            if client is None or not client.welcome.model.edits:
                return None
            related = await self._related.around(snapshot, client.welcome.model)
            await self._read(client, rewrite_of(snapshot, regions[0], related))
            await asyncio.sleep(settled - time.monotonic())
            said = await self._reports(snapshot.uri)
            for region in regions:
                fill = rewrite_of(snapshot, region, related, reports_of(snapshot, region, said))
                if fill is not None and (change := await self._changed(client, snapshot, region, fill)) is not None:
                    return change
        except MidspanError as error:
            _logger.warning("no next edit by the model: %s", error)
        return None

    async def _read(self, client: EngineClient, fill: Fill | None) -> None:
        """Have the engine read a prompt while the user may still type on: that is the most of a rewrite's time."""
        if fill is not None:
            await self._link.fill(client, Read.of(fill))

    async def _changed(self, client: EngineClient, snapshot: Snapshot, region: Region, fill: Fill) -> JudgedEdit | None:
        """Return the first change of a region that is to be offered."""
        filled = await self._link.fill(client, fill)
        found = judged(snapshot, region, filled.candidates[0], EditPrice())
        _logger.debug("changes by the model: %s", [one.reason or "offered" for one in found])
        return next((one for one in found if not one.reason), None)


def reports_of(snapshot: Snapshot, region: Region, said: Sequence[EditorReport]) -> list[Report]:
    """Return what the editor says of a region, in the order of its lines."""
    lines = snapshot.source.lines
    first, last = lines.at(region.start), lines.at(max(region.start, region.end - 1))
    inside = sorted((one for one in said if first <= one.line <= last), key=lambda one: one.line)
    return [
        Report(
            one.line + 1,
            plain(snapshot.source.line_text(one.line).strip()),
            plain(one.message.strip().partition("\n")[0])[:_MOST_OF_REPORT],
        )
        for one in inside[:_MOST_REPORTS]
    ]


def rewrite_of(
    snapshot: Snapshot, region: Region, related: Sequence[Snippet] = (), reports: Sequence[Report] = ()
) -> Fill | None:
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
        snippets=list(related),
        extent="lines",
        budget_ms=_BUDGET_MS,
        max_tokens=min(2048, len(text) + _MOST_NEW_TOKENS),
        memory="off",
        ahead=True,
        scope=_SCOPE,
        rewrite=Rewrite(text, -1, sum(map(len, lines[:kept])), past_edits(snapshot), list(reports)),
    )
