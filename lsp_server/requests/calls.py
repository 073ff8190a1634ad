"""The next edit after a signature changed: its calls follow it, one by one, first those of its own file.

Trees say which calls. In other files they are looked for when its own file has none to offer, by a process of low
priority; the next key ends that.
"""

import asyncio
import time
from collections.abc import Sequence

import attrs

from engine.reading import read_text
from lsp_server.bulk.project_files import ProjectFiles
from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.documents.text_edit import TextEdit
from lsp_server.refactor.search import Target
from lsp_server.refactor.signatures import (
    CallPlace,
    ChangedSignature,
    SignatureChange,
    calls_in_files,
    calls_left,
    signature_change,
)
from lsp_server.refactor.worker import Worker
from lsp_server.requests.arguments import Arguments
from lsp_server.session import Session

SETTLED_S = 0.5
"""So long nothing is offered at the end of a name that is declared: each start of it is a name too."""
_MOST_ASKED = 4
"""The holes of a file that a model fills before it is silent about all others too."""
_MOST_FILES = 2_000
"""Those nearest to the signature. Git lists them at once; to read so many takes a second or two of a disk's cache."""
_MOST_SECONDS = 5.0
"""Whoever waits longer for a search has gone on by then."""
_MOST_WITH_CALLS = 20
"""Files with calls that are asked about. In more a signature is public, and the user needs a list, not one by one."""
_CHUNK = 16
"""Files that the worker reads at a time: a cancelled search ends with them, in a few tens of milliseconds."""
_PARSE_S = 0.5


@attrs.frozen
class NextPlace:
    """The next edit in a version of a file: 0 is the version of one that is not open. `remaining` counts places."""

    snapshot: Snapshot
    edit: TextEdit
    remaining: int = 1


@attrs.define
class _Following:
    """The signature that calls follow: of which document, and as other files of its folder see it.

    `begun` has the newest edit of each document at that time. `targets` are the files that are not searched yet, None
    until they are listed, and `found` those that were found to have calls, without the ones that stay as they are.
    """

    uri: str
    changed: ChangedSignature
    begun: dict[str, int]
    targets: list[Target] | None = None
    found: list[Target] = attrs.field(factory=list)
    with_calls: int = 0
    seconds_left: float = _MOST_SECONDS

    def edits_since(self, snapshot: Snapshot) -> Sequence[RecentEdit]:
        """Return what was edited in a document since the signature changed."""
        return [edit for edit in snapshot.edits.all if edit.serial > self.begun.get(snapshot.uri, 0)]


class Calls:
    """Finds the calls that the last changed signature leaves behind.

    `worker` answers for the document of a request, `background` searches other files.
    """

    def __init__(self, session: Session, worker: Worker, background: Worker) -> None:
        self._session, self._worker, self._background = session, worker, background
        self._arguments = Arguments(session)
        self._following: _Following | None = None
        self._refused: set[tuple[str, ...]] = set()
        """The signatures of documents that the user wants no calls to follow."""

    async def find(self, snapshot: Snapshot, offset: int) -> NextPlace | None:
        """Return the next edit of a call in a document, from `offset` on first; None without one.

        To cancel it cancels the engine. Raises MidspanError.
        """
        newest = snapshot.edits.newest
        if snapshot.language.grammar is None or (newest is not None and newest.undone):
            self._following = None
            return None
        change = await self._left(snapshot)
        if change is None or self._following is None:
            return None
        if newest is not None:
            await asyncio.sleep(SETTLED_S)
        return await self._edit(snapshot, sorted(change.places, key=lambda call: call.place.end < offset))

    async def find_elsewhere(self, snapshot: Snapshot) -> NextPlace | None:
        """Return the edit of a call in another file, if the last search in this document went on to none there.

        Raises MidspanError.
        """
        following = self._following
        if following is None:
            return None
        files = await asyncio.to_thread(self._files, following)
        while (target := await self._next(following, snapshot)) is not None:
            uri = files.uri(target)
            is_open = self._session.documents.find(uri) is not None
            there = self._session.served(uri) if is_open else await asyncio.to_thread(self._closed, target, uri)
            edit = await self._first(following, there, target.path) if there is not None else None
            if edit is not None:
                return edit
            # It stays as it is, and is not asked about again.
            following.found.remove(target)
        return None

    def refuse(self) -> None:
        """Let no call follow the signature whose call was offered last."""
        if self._following is not None:
            self._refused.add((self._following.uri, *self._following.changed.key))
            self._following = None

    def closed(self, uri: str) -> None:
        """Drop a closed document. Its edits are counted from 1 again when it is opened."""
        self._refused = {one for one in self._refused if one[0] != uri}
        if self._following is not None and self._following.uri == uri:
            self._following = None
        elif self._following is not None:
            self._following.begun.pop(uri, None)

    async def _left(self, snapshot: Snapshot) -> SignatureChange | None:
        """Return the calls of a document that are left behind, of its own signature or of the one that is followed."""
        following, change = self._following, None
        if snapshot.edits.newest is not None:
            edits, language = snapshot.edits.all, snapshot.language.id
            change = await self._worker.run(signature_change, edits, language, snapshot.path)
        if change is not None:
            change = self._follow(snapshot, change)
        elif following is not None and following.uri != snapshot.uri:
            path, edits = self._path(snapshot), following.edits_since(snapshot)
            change = await self._worker.run(calls_left, following.changed, edits, snapshot.text, path)
        if change is None and self._following is following:
            self._following = None  # the user does something else
        return change

    def _follow(self, snapshot: Snapshot, change: SignatureChange) -> SignatureChange | None:
        """Follow a signature, unless the user refused that. A search for the same one goes on."""
        what = attrs.evolve(change.changed.what, path=self._path(snapshot))
        changed = attrs.evolve(change.changed, what=what)
        if (snapshot.uri, *changed.key) in self._refused:
            return None
        if self._following is not None and (self._following.uri, self._following.changed.key) == (
            snapshot.uri,
            changed.key,
        ):
            return change
        newest = {one.uri: self._session.documents.newest_edit(one.uri) for one in self._session.documents.all()}
        begun = {uri: edit.serial for uri, edit in newest.items() if edit is not None}
        self._following = _Following(snapshot.uri, changed, begun)
        return change

    def _path(self, snapshot: Snapshot) -> str:
        """Return the path of a document in its workspace folder; its whole path outside of all."""
        here = self._session.memory.folders.place_of(snapshot.full)
        return here.path if here is not None else snapshot.path

    async def _edit(self, snapshot: Snapshot, places: Sequence[CallPlace]) -> NextPlace | None:
        """Return the edit of the first call that is offered."""
        for call in places[:_MOST_ASKED]:
            edit = await self._arguments.edit(snapshot, call)
            if edit is not None and not edit.reason:
                return NextPlace(snapshot, edit, len(places))
        return None

    async def _first(self, following: _Following, there: Snapshot, path: str) -> NextPlace | None:
        """Return the edit of the first call of another file that is offered."""
        edits = following.edits_since(there)
        change = await self._background.run(calls_left, following.changed, edits, there.text, path)
        return await self._edit(there, change.places) if change is not None else None

    def _files(self, following: _Following) -> ProjectFiles:
        """Return what names files, and list those to search if they are not. Reads the disk."""
        files = ProjectFiles.of(self._session)
        document = self._session.documents.find(following.uri)
        here = files.folders.place_of(document.full) if document is not None else None
        if following.targets is None and document is not None and here is not None:
            targets = [one for one in files.targets(document) if one.folder == here.workspace][:_MOST_FILES]
            what = following.changed.what.located(here.workspace)
            following.changed = attrs.evolve(following.changed, what=what)
            following.targets = targets  # at last: a request that is cancelled meanwhile leaves no half of a list
        return files

    async def _next(self, following: _Following, asked: Snapshot) -> Target | None:
        """Return the next file with calls, other than that of a document; None if the search has ended."""
        own = self._path(asked)
        while not (known := [one for one in following.found if one.path != own]):
            targets = following.targets or []
            if not targets or following.seconds_left <= 0 or following.with_calls >= _MOST_WITH_CALLS:
                return None
            chunk, began = targets[:_CHUNK], time.monotonic()
            numbers = await self._background.run(calls_in_files, following.changed, chunk)
            following.seconds_left -= time.monotonic() - began
            following.targets = targets[_CHUNK:]
            following.found += [chunk[number] for number in numbers]
            following.with_calls += len(numbers)
        return known[0]

    def _closed(self, target: Target, uri: str) -> Snapshot | None:
        """Return a file that is not open as if it were, with version 0; None if it is gone. Reads the disk."""
        text = read_text(target.folder, target.path)
        if text is None:
            return None
        alone = Documents(_PARSE_S)
        alone.newline_only = self._session.documents.newline_only
        alone.open(uri, "", 0, text)
        return alone.snapshot(uri)
