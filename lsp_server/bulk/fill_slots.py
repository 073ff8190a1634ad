"""The actions that ask the model: fill stubs, missing annotations, missing docstrings, or the selection again."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import PurePath

import attrs

from engine.client.connection import EngineClient
from engine.errors import MidspanError
from engine.protocol.messages import Fill, Filled
from lsp_server.bulk.action import Cancelled, Draft, DraftFile, MenuItem, NotApplied, Selection, Work
from lsp_server.bulk.project_files import ProjectFiles
from lsp_server.documents.store import Snapshot
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.blocks import Block, blocks_of
from lsp_server.refactor.edit.file_edit import Omission, counted
from lsp_server.refactor.search import Target
from lsp_server.session import Session
from lsp_server.settings import Settings
from lsp_server.slots.fill import BESIDE_TYPING, Filler, fill_slots, gathered, refill, why_unable
from lsp_server.slots.find import find_bare_slots, find_slots, in_style, read_slots, touching
from lsp_server.slots.slot import Slot, SlotEdit, SlotKind, has_query
from lsp_server.suggest.pipeline import Plan
from lsp_server.wire import ActionName, ScopeName

_NOUNS: dict[SlotKind, str] = {"stubs": "stub", "annotations": "annotation", "docstrings": "docstring"}
_ASIDE = "it is only likely, and shares lines with what is sure; run the action again for it"


@attrs.frozen
class _Work:
    """The slots of one file. `uri`, `path` and `full` are those of its DraftFile."""

    snapshot: Snapshot
    slots: Sequence[Slot]
    uri: str
    path: str
    full: str


@attrs.define
class FillSlots:
    """Fills the slots of one kind in the selection or the file; stubs also in the workspace."""

    _session: Session
    name: SlotKind
    by_model: bool = True
    only_invoked: bool = False
    _last: tuple[Snapshot, Sequence[Slot]] | None = None
    """The version of a document that was looked at last, and its slots."""

    @property
    def kind(self) -> str:
        """The LSP kind of the action."""
        return f"refactor.rewrite.midspan.{self.name}"

    @property
    def _verb(self) -> str:
        return "Fill" if self.name == "stubs" else "Add"

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Offer it where the selection touches a slot."""
        snapshot = selection.snapshot
        language = snapshot.language.id
        if not self._session.configuration.is_on(language) or not has_query(language, self.name):
            return []
        if self._unable() is not None:
            return []
        slots = await self._slots(snapshot)
        touched = touching(snapshot, slots, selection.lines)
        # Selected code is meant; at a mere cursor the file's own style decides.
        if not touched or (selection.start == selection.end and not any(slot.in_style for slot in touched)):
            return []
        noun = _NOUNS[self.name]
        offers = [MenuItem("selection", f"{self._verb} {counted(len(touched), noun)}")]
        if len(slots) > len(touched) and any(slot.in_style for slot in slots):
            offers.append(MenuItem("file", f"{self._verb} all {noun}s in this file (up to {len(slots)})"))
        if self.name == "stubs" and self._session.memory.folders.workspaces:
            offers.append(MenuItem("workspace", f"{self._verb} all {noun}s in the workspace"))
        return offers

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the filled slots. Raises NotApplied, and MidspanError if the engine fails."""
        settings = self._session.configuration.settings
        todo = await self._todo(selection, scope, work)
        total = sum(len(one.slots) for one in todo)
        numbers = itertools.count(1)

        def count() -> None:
            done = next(numbers)
            with suppress(Cancelled):  # the fills are cancelled with their task
                work.report(f"{done} of {total} {_NOUNS[self.name]}s", 100 * done // max(total, 1))

        filler, why = await self._filler(todo)
        files = await gathered([self._fill(one, filler, count, why) for one in todo])
        places = sum(len(file.blocks) for file in files)
        if not places:
            raise NotApplied(_nothing(files, self.name))
        changed = sum(bool(file.blocks) for file in files)
        title = f"{self._verb} {_NOUNS[self.name]}s: {counted(places, 'place')} in {counted(changed, 'file')}"
        is_cut = total >= settings.refactor_max_places
        return Draft(title, "", tuple(files), (f"only {counted(total, 'place')} were looked at",) if is_cut else ())

    async def _todo(self, selection: Selection, scope: ScopeName, work: Work) -> list[_Work]:
        snapshot, most = selection.snapshot, self._session.configuration.settings.refactor_max_places
        own = _Work(snapshot, [], snapshot.uri, PurePath(snapshot.path).name, snapshot.full)
        slots = await asyncio.to_thread(find_slots, snapshot, self.name)
        if scope == "selection":
            return [attrs.evolve(own, slots=touching(snapshot, slots, selection.lines))]
        wanted = await asyncio.to_thread(in_style, snapshot, slots, self.name)
        if not wanted and scope == "file":
            raise NotApplied(f"this file has no {self.name} to go by; select a function to have its own written")
        todo = [attrs.evolve(own, slots=wanted)]
        if scope == "workspace":
            todo += await asyncio.to_thread(self._elsewhere, snapshot, work)
        left, kept = most, list[_Work]()
        for one in todo:
            kept.append(attrs.evolve(one, slots=one.slots[:left]))
            left -= len(kept[-1].slots)
        return [one for one in kept if one.slots]

    def _elsewhere(self, snapshot: Snapshot, work: Work) -> list[_Work]:
        """Return the slots of all other files of the workspace. Reads the disk."""
        files = ProjectFiles.of(self._session)
        found: list[_Work] = []
        targets = files.targets(snapshot)[: files.settings.refactor_max_files]
        for number, target in enumerate(targets):
            if not number % 100:
                work.report(f"{number:,} of {counted(len(targets), 'file')}")
            one = self._of(target, files)
            if one is not None and one.uri != snapshot.uri:
                found.append(one)
        return found

    def _of(self, target: Target, files: ProjectFiles) -> _Work | None:
        if not has_query(language_for("", target.path).id, self.name):
            return None
        read = read_slots(target, self.name)
        if read is None or not read[1]:
            return None
        return _Work(*read, files.uri(target), files.shown_path(target), target.full)

    async def _slots(self, snapshot: Snapshot) -> Sequence[Slot]:
        last = self._last
        if last is None or last[0] is not snapshot:
            last = self._last = snapshot, await asyncio.to_thread(find_bare_slots, snapshot, self.name)
        return last[1]

    async def _filler(self, todo: Sequence[_Work]) -> tuple[Filler | None, str]:
        """Return what asks the model, or None and why no model is asked. Raises MidspanError without an engine."""
        if all(slot.known for one in todo for slot in one.slots):
            return None, ""
        try:
            client = await self._session.link.client()
        except MidspanError as error:
            if self.name == "annotations":  # the file itself may say some of them
                return None, str(error)
            raise
        unable = why_unable(self.name, client.welcome.model)
        return (filler_of(self._session, client), "") if unable is None else (None, unable)

    def _unable(self) -> str | None:
        client = self._session.link.connected
        if client is None:
            return "the engine is not running" if self.name == "docstrings" else None
        return why_unable(self.name, client.welcome.model)

    async def _fill(self, one: _Work, filler: Filler | None, count: Callable[[], None], why: str) -> DraftFile:
        edit = await fill_slots(one.snapshot, one.slots, filler, count, why)
        return await asyncio.to_thread(_drafted, one, edit)


def _drafted(one: _Work, edit: SlotEdit) -> DraftFile:
    """Return the draft of a file. Places that share lines are chosen together, so only the sure ones of them stay."""
    text = one.snapshot.text
    doubtful = {place.span for place in edit.places if place.doubtful}
    shared = [block.spans for block in blocks_of(text, edit.file_edit(with_doubtful=True))[0]]
    aside = {span for spans in shared for span in spans if span in doubtful and not doubtful.issuperset(spans)}
    left_out = [*edit.left_out, *(Omission(span, _ASIDE) for span in aside)]
    kept = attrs.evolve(
        edit,
        places=tuple(place for place in edit.places if place.span not in aside),
        left_out=tuple(sorted(left_out, key=lambda omission: omission.span.start)),
    )
    final = kept.file_edit(with_doubtful=True)
    blocks = tuple(
        attrs.evolve(block, reason=_reason(block, kept), doubtful=not doubtful.isdisjoint(block.spans))
        for block in blocks_of(text, final)[0]
    )
    return DraftFile(one.uri, one.path, one.full, final, blocks)


def _reason(block: Block, edit: SlotEdit) -> str:
    return "; ".join(dict.fromkeys(place.reason for place in edit.places if place.span in block.spans))


def _nothing(files: Sequence[DraftFile], kind: SlotKind) -> str:
    """Return one line that says why no slot was filled."""
    left_out = [omission for file in files for omission in file.edit.left_out]
    if not left_out:
        return "there is no stub to fill" if kind == "stubs" else f"no {_NOUNS[kind]} is missing"
    more = f", and {len(left_out) - 1} more left out" if len(left_out) > 1 else ""
    return f"nothing was filled in; {left_out[0].reason}{more}"


_CLOSING = " \t)]}>;,:\"'`"


@attrs.frozen
class Refill:
    """Offers other text for the selection."""

    _session: Session
    name: ActionName = "refill"
    kind: str = "refactor.rewrite.midspan.refill"
    by_model: bool = True
    only_invoked: bool = True

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Offer it for a selection with text, and at a cursor in a blank line or before closing brackets.

        In some editors the character under the cursor is always selected.
        """
        snapshot = selection.snapshot
        if not self._session.configuration.is_on(snapshot.language.id):
            return []
        if selection.end - selection.start > 1 and snapshot.text[selection.start : selection.end].strip():
            return [MenuItem("selection", "Refill the selection")]
        source = snapshot.source
        line = source.lines.at(selection.start)
        after = source.text[selection.start : source.line_end(line)].strip()
        is_hole = not source.line_text(line).strip() or (after and not after.strip(_CLOSING))
        return [MenuItem("selection", "Fill this hole")] if is_hole else []

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the answers. Raises NotApplied, and MidspanError if the engine fails."""
        snapshot = selection.snapshot
        client = await self._session.link.client()
        work.report("asking the model")
        filler = filler_of(self._session, client)
        edits = await refill(snapshot, selection.start, selection.end, filler)
        if not edits:
            raise NotApplied("nothing was changed: the model is not sure enough of any answer here")
        name = PurePath(snapshot.path).name
        files = [
            DraftFile.of(snapshot, name, edit.file_edit(with_doubtful=True), edit.places[0].reason) for edit in edits
        ]
        return Draft(f"Refill: {counted(len(files), 'answer')}", "", tuple(files), exclusive=True)


def filler_of(session: Session, client: EngineClient) -> Filler:
    """Return what fills holes with the session's engine, and with all that the session knows."""
    model = client.welcome.model

    def plan(snapshot: Snapshot, offset: int, settings: Settings, candidates: int) -> Plan:
        return session.plan(snapshot, offset, model, settings, candidates)

    async def ask(fill: Fill) -> Filled:
        return await session.link.fill(client, fill)

    return Filler(plan, ask, session.configuration.settings, asyncio.Semaphore(BESIDE_TYPING))
