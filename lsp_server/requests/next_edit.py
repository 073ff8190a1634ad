"""textDocument/copilotInlineEdit: where the user's last edit belongs next, one place at a time.

A round begins with an edit that gives a rule. It goes on while the only changes are the offered edits themselves, and
ends with any other change. The answer is always a list, empty if need be.
"""

import asyncio
import logging

import attrs
from lsprotocol import types

from engine.errors import MidspanError, describe
from engine.protocol.rewrite import changed_part
from lsp_server.bulk.recent_rule import RecentRule
from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.store import Snapshot, offset_in, position_in
from lsp_server.documents.text_edit import TextEdit
from lsp_server.refactor.pending import PendingFile
from lsp_server.refactor.recent import RecentRules, places_in
from lsp_server.refactor.worker import NICENESS, Worker
from lsp_server.requests.calls import SETTLED_S, Calls, NextPlace
from lsp_server.requests.file_search import FileSearch
from lsp_server.requests.model_edits import ModelEdits, Reports
from lsp_server.session import Session
from lsp_server.wire import NEXT_EDIT_ACCEPTED, NextEdit, NextEditParams, NextEditResult

_logger = logging.getLogger(__name__)
_HOLD_S = 0.12
"""So long nothing is offered at the end of a new word: its next key cancels the request."""


@attrs.define
class _Round:
    """The places of one rule. `taken` counts those that the user took."""

    recent: RecentRules
    files: dict[str, PendingFile]
    search: FileSearch
    taken: int = 0

    @property
    def may_leave_file(self) -> bool:
        """Whether other files may be searched: the user has shown that this edit is to be repeated."""
        return not self.recent.is_of_file and (self.taken > 0 or self.recent.examples > 1)


@attrs.frozen
class _Answer:
    """What was found without a rule for a version of a document, and whether any file was asked for."""

    asked: tuple[int, bool]
    place: NextPlace | None


class NextEdits:
    """Answers the requests for the next edit of a session."""

    def __init__(self, session: Session, worker: Worker, rules: RecentRule, reports: Reports) -> None:
        self._session = session
        self._worker = worker
        self._rules = rules
        self._background = Worker(NICENESS)
        self._calls = Calls(session, worker, self._background)
        self._by_model = ModelEdits(session, self._background, reports)
        self._without_rule: asyncio.Task[NextPlace | None] | None = None
        """The search for what no rule gives."""
        self._answers: dict[str, _Answer] = {}
        """The last answer of each document that no rule gave."""
        self._without_rule_at: str | None = None
        """The document in which the edit that was offered last was asked for, if no rule gave it."""
        self._round: _Round | None = None
        self._changed: set[str] = set()
        self._ended: set[str] = set()
        """The rules that the user dismissed."""
        self._undone: dict[str, int] = {}
        """The newest edit of a document when the user took a place back: up to it there is no rule."""
        self._left: dict[str, tuple[str, int]] = {}
        """The rule and the edit of a round that ended because the user typed something else there."""
        self._asking: asyncio.Task[NextEdit | None] | None = None

    async def find(self, params: NextEditParams) -> NextEditResult:
        """Return the next edit, if there is one. A newer request cancels this one, which then returns none."""
        if self._asking is not None:
            self._asking.cancel()
        asking = self._asking = asyncio.create_task(self._find(params))
        try:
            edit = await asking
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                asking.cancel()
                raise
            edit = None
        except MidspanError as error:
            _logger.warning("no next edit: %s", error)
            edit = None
        except Exception as error:
            _logger.error("no next edit: %s; please report this", describe(error))
            edit = None
        return NextEditResult([edit] if edit is not None else [])

    def changed(self, uri: str) -> None:
        """Note that a document changed. What that means is seen when the next edit is asked for."""
        self._changed.add(uri)
        # Each key comes here, so nothing of the model's own files may be called.
        if self._without_rule is not None:
            self._without_rule.cancel()

    async def accepted(self, *_: object) -> None:
        """Go on to the next place: the user took the edit that was offered. The text must have it by now."""
        self._follow_changes()

    async def dismiss(self, *_: object) -> None:
        """Offer no place of this rule again in this session; without a rule, nothing more after this edit."""
        if self._without_rule_at is not None:
            self._calls.refuse()
            self._answers.pop(self._without_rule_at, None)
            if (snapshot := self._session.documents.snapshot(self._without_rule_at)) is not None:
                self._by_model.refuse(snapshot)
        elif self._round is not None:
            self._ended.add(_code_of(self._round.recent))
            self._end()

    def closed(self, uri: str) -> None:
        """Drop a closed document. Its edits are counted from 1 again when it is opened."""
        self._changed.discard(uri)
        self._undone.pop(uri, None)
        self._left.pop(uri, None)
        self._answers.pop(uri, None)
        self._calls.closed(uri)
        self._by_model.closed(uri)

    async def close(self) -> None:
        """End the search and its worker process."""
        if self._asking is not None:
            self._asking.cancel()
        self._end()
        await self._background.close()
        await self._by_model.close()

    async def _find(self, params: NextEditParams) -> NextEdit | None:
        uri = params.text_document.uri
        self._follow_changes()
        snapshot = self._session.served(uri)
        if snapshot is None or not self._session.configuration.settings.next_edits or self._session.snooze.holds():
            return None
        offset = offset_in(snapshot.source, params.position, self._session.encoding)
        current = self._round or await self._begin(snapshot)
        self._without_rule_at = None
        if current is None:
            return await self._found_without_rule(snapshot, offset, params, self._by_model)
        newest = snapshot.edits.newest
        if not current.taken and newest is not None:
            await asyncio.sleep(_hold_s(current.recent, newest, offset))
        file = await self._file(current, snapshot)
        if self._is_stale(snapshot, current) or file is None:
            return None
        place = file.nearest(offset)
        if place is not None:
            self._search(current, snapshot)
            return self._offer(current, uri, snapshot.version, file, place)
        if not params.any_file or not current.may_leave_file:
            model = None if current.taken else self._by_model
            return await self._found_without_rule(snapshot, offset, params, model)
        self._search(current, snapshot)
        found = await current.search.first(lambda other: other != uri)
        return None if found is None or self._is_stale(snapshot, current) else self._elsewhere(current, found)

    async def _found_without_rule(
        self, snapshot: Snapshot, offset: int, params: NextEditParams, model: ModelEdits | None
    ) -> NextEdit | None:
        """Return what no rule knows: a call that follows its signature, else what a model for edits offers."""
        answer = self._answers.get(snapshot.uri)
        if answer is None or answer.asked != (snapshot.version, params.any_file) or self._is_gone(answer):
            searching = self._without_rule = asyncio.create_task(
                self._search_without_rule(snapshot, offset, params, model)
            )
            try:
                found = await searching
            finally:
                if self._without_rule is searching:
                    self._without_rule = None
            answer = self._answers[snapshot.uri] = _Answer((snapshot.version, params.any_file), found)
        place = answer.place
        if place is None or not self._session.documents.is_current(snapshot) or self._is_gone(answer):
            return None
        self._without_rule_at = snapshot.uri
        there = place.snapshot
        return self._edit(there.uri, there.version, there.text, place.edit, place.remaining)

    async def _search_without_rule(
        self, snapshot: Snapshot, offset: int, params: NextEditParams, model: ModelEdits | None
    ) -> NextPlace | None:
        try:
            call = await self._calls.find(snapshot, offset)
            if call is None and params.any_file:
                call = await self._calls.find_elsewhere(snapshot)
        except MidspanError as error:
            _logger.warning("no call follows its signature: %s", error)
            call = None
        if call is not None or model is None:
            return call
        change = await model.find(snapshot)
        return NextPlace(snapshot, change) if change is not None else None

    def _is_gone(self, answer: "_Answer") -> bool:
        """Return whether the file of an answer has another text by now."""
        there = answer.place.snapshot if answer.place is not None else None
        document = self._session.documents.find(there.uri) if there is not None else None
        return there is not None and document is not None and document.text != there.text

    async def _begin(self, snapshot: Snapshot) -> _Round | None:
        newest = snapshot.edits.newest
        if newest is None or not newest.may_be_example or newest.serial <= self._undone.get(snapshot.uri, 0):
            return None
        known = await self._rules.find_own(snapshot)
        if not self._session.documents.is_current(snapshot):
            return None
        found = known.places if known is not None and known.recent.is_telling else None
        is_left = found is not None and self._left.get(snapshot.uri) == (found.recent.name, newest.serial)
        if not is_left:
            self._left.pop(snapshot.uri, None)
        if found is None or is_left or _code_of(found.recent) in self._ended:
            return None
        self._end()
        files = {snapshot.uri: PendingFile.of(snapshot.text, found.one_by_one)}
        search = FileSearch(self._session, self._background, found.recent.rules, files)
        self._round = _Round(found.recent, files, search)
        return self._round

    async def _file(self, current: _Round, snapshot: Snapshot) -> PendingFile | None:
        """Return what is left in a document: in one that did not change since the round began, it is found now."""
        file = current.files.get(snapshot.uri)
        if file is None or file.text != snapshot.text:
            language = snapshot.language.id
            rules = await current.search.rules(snapshot)
            places = await self._worker.run(places_in, rules, snapshot.text, language, snapshot.path)
            file = current.files[snapshot.uri] = PendingFile.of(snapshot.text, places)
        return file

    def _follow_changes(self) -> None:
        """Go on with the round if all changes are edits that it offered, else end it."""
        changed, self._changed = self._changed, set()
        current = self._round
        if current is None:
            return
        texts = {document.uri: document.text for document in self._session.documents.all() if document.uri in changed}
        for uri, text in texts.items():
            file = current.files.get(uri)
            step = file.follow(text) if file is not None else "other"
            if step == "taken":
                current.taken += 1
            elif step == "undone":
                self._note_undo(uri)
            elif step == "other" and file is not None:
                self._note_leave(uri, file.text, text)
            if step in ("undone", "other"):
                self._end()
                return

    def _note_undo(self, uri: str) -> None:
        snapshot = self._session.documents.snapshot(uri)
        if snapshot is not None and snapshot.edits.newest is not None:
            self._undone[uri] = snapshot.edits.newest.serial

    def _note_leave(self, uri: str, old: str, text: str) -> None:
        """Note what the user left for something else: a comment below the edit does not bring its rule back."""
        start, end, new_end = changed_part(old, text)
        snapshot = self._session.documents.snapshot(uri)
        is_more = (old[start:end] + text[start:new_end]).strip(" \t\r\n,;")
        if is_more and self._round is not None and snapshot is not None and snapshot.edits.newest is not None:
            self._left[uri] = self._round.recent.name, snapshot.edits.newest.serial

    def _search(self, current: _Round, snapshot: Snapshot) -> None:
        if current.may_leave_file:
            current.search.begin(snapshot)

    def _offer(self, current: _Round, uri: str, version: int, file: PendingFile, place: TextEdit) -> NextEdit:
        remaining = max(1, sum(one.count for one in current.files.values()))
        return self._edit(uri, version, file.text, place, remaining)

    def _edit(self, uri: str, version: int, text: str, place: TextEdit, remaining: int = 1) -> NextEdit:
        source, encoding = self._session.documents.source_of(text), self._session.encoding
        start, end = (position_in(source, offset, encoding) for offset in (place.start, place.end))
        return NextEdit(
            place.text,
            types.Range(start, end),
            types.VersionedTextDocumentIdentifier(version, uri),
            types.Command("Accept the next edit", NEXT_EDIT_ACCEPTED, arguments=[uri]),
            remaining,
        )

    def _elsewhere(self, current: _Round, uri: str) -> NextEdit | None:
        file = current.files[uri]
        place = file.nearest(0)
        document = self._session.documents.find(uri)
        version = document.version if document is not None else 0
        return self._offer(current, uri, version, file, place) if place is not None else None

    def _is_stale(self, snapshot: Snapshot, current: _Round) -> bool:
        return self._round is not current or not self._session.documents.is_current(snapshot)

    def _end(self) -> None:
        if self._round is not None:
            self._round.search.stop()
            self._round = None


def _hold_s(recent: RecentRules, newest: RecentEdit, offset: int) -> float:
    """Return how long nothing is offered, because the word before the cursor may go on."""
    if recent.may_go_on and newest.is_behind_word(offset):
        return SETTLED_S
    return _HOLD_S if newest.is_in_progress(offset) else 0.0


def _code_of(recent: RecentRules) -> str:
    """Return the rules as code without white space: more of that in the edit does not make it another one."""
    return "".join(recent.name.split())
