"""The action "Repeat this edit": the newest edit of a document, made in all places where it fits."""

import asyncio
import functools
from collections.abc import Sequence
from pathlib import Path, PurePath

import attrs

from lsp_server.bulk.action import MenuItem, Project, Selection, Work
from lsp_server.bulk.blocks import Block
from lsp_server.bulk.draft import Draft, DraftFile, NotApplied
from lsp_server.bulk.found_file import FoundFile, found_files
from lsp_server.bulk.known_rules import KnownRule, KnownRules
from lsp_server.bulk.project_files import OpenFiles, ProjectFiles
from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for
from lsp_server.refactor.file_edit import FileEdit, counted
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.rewrite import rewrite
from lsp_server.refactor.search import Caps, Progress, search_elsewhere
from lsp_server.wire import ActionName, ScopeName

_PATIENCE_S = 0.25
"""A menu waits so long for the rule of an edit that was just made: its process may have to start."""


@attrs.frozen
class Repeat:
    """Repeats the newest edit of a document in the file, or in the workspace."""

    _project: Project
    _rules: KnownRules
    name: ActionName = "repeat"
    kind: str = "refactor.rewrite.midspan.repeat"
    by_model: bool = False
    only_invoked: bool = False

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Offer it on the lines of the edit, and on those of each place that fits."""
        known = await self._rules.find(selection.snapshot, _PATIENCE_S)
        if known is None or not _is_at(selection, known):
            return []
        places = len(known.file.blocks)
        offers: list[MenuItem] = []
        if places:
            offers.append(MenuItem("file", f"Repeat this edit in this file ({counted(places, 'place')})"))
        if self._project.memory.folders.workspaces:
            offers.append(MenuItem("workspace", "Repeat this edit in the workspace"))
        return offers

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the places of the file, or search the workspace."""
        snapshot = selection.snapshot
        known = await self._rules.find(snapshot) or await self._rules.find_former(snapshot)
        if known is None:
            raise NotApplied("the last edit gives no rule to repeat; change a call, an expression or a statement")
        progress = Progress(1)
        drafts: list[DraftFile] = []
        current = _drafted(known.file, snapshot.uri, PurePath(snapshot.path).name, known.reason)
        if scope == "workspace":
            files = ProjectFiles(
                self._project.memory.folders,
                await asyncio.to_thread(OpenFiles.of, self._project.documents.all()),
                self._project.configuration.settings,
            )
            found, progress = await asyncio.to_thread(_search, known.rules, files, snapshot, work)
            for one in found:
                if files.uri(one.folder, one.path) == snapshot.uri:
                    # The search does not know what the user did in this document.
                    current = _drafted(
                        attrs.evolve(known.file, folder=one.folder, path=one.path),
                        snapshot.uri,
                        files.shown_path(one.folder, one.path),
                        known.reason,
                    )
                else:
                    uri, path = files.uri(one.folder, one.path), files.shown_path(one.folder, one.path)
                    drafts.append(_drafted(one, uri, path, known.reason))
        drafts.insert(0, current)
        places = sum(len(file.blocks) for file in drafts)
        changed = sum(bool(file.blocks) for file in drafts)
        title = f"Repeat this edit: {counted(places, 'place')} in {counted(changed, 'file')}"
        narrow = Narrowing(known.rules, snapshot.uri, snapshot.language).narrow
        return Draft(title, known.name, tuple(drafts), tuple(progress.reached), narrow=narrow)


@attrs.frozen
class Narrowing:
    """Makes an edit of some places of a file. `language` is that of the document `uri`; a path says that of others."""

    rules: RuleSet
    uri: str
    language: Language

    def narrow(self, file: DraftFile, text: str, blocks: Sequence[Block]) -> FileEdit:
        """Return the edit of some places. The imports follow what is chosen."""
        spans = {span for block in blocks for span in block.spans}
        language = self.language if file.uri == self.uri else language_for("", file.path)
        edit = rewrite(self.rules, file.edit.path, text, language, spans)
        if set(edit.places) != spans:
            raise NotApplied(f"{file.path}: the chosen places alone would have a syntax error; choose all of this file")
        return edit


def _is_at(selection: Selection, known: KnownRule) -> bool:
    blocks = [range(block.line, block.line + block.before.count("\n") + 1) for block in known.file.blocks]
    return selection.touches(known.lines, *blocks)


def _search(rules: RuleSet, files: ProjectFiles, snapshot: Snapshot, work: Work) -> tuple[list[FoundFile], Progress]:
    last = Progress(0)

    def report(progress: Progress) -> None:
        nonlocal last
        work.check()
        if progress.searched > last.searched:
            done = f"{progress.searched:,} of {counted(progress.files, 'file')}"
            percentage = 100 * progress.searched // max(progress.files, 1)
            work.report(f"{done}, {counted(progress.places, 'place')}", percentage)
        last = attrs.evolve(progress)

    work.report("listing the files")
    targets = files.targets(snapshot)
    work.check()
    settings = files.settings
    caps = Caps(settings.refactor_max_files, settings.refactor_max_places, settings.refactor_max_seconds)
    found = list(search_elsewhere(functools.partial(found_files, rules), targets, caps, report))
    return sorted(found, key=lambda one: (one.folder, one.path)), last


def _drafted(found: FoundFile, uri: str, path: str, reason: str) -> DraftFile:
    """Return the draft of a file. In one with syntax errors every place is doubtful."""
    doubtful: frozenset[int] = frozenset()
    if found.edit.has_errors:
        reason, doubtful = f"{reason}; this file has syntax errors", frozenset(range(len(found.blocks)))
    elif found.edit.unknown:
        names = ", ".join(f"`{name}`" for name in found.edit.unknown)
        reason, doubtful = f"{reason}; nothing here defines {names}", frozenset(range(len(found.blocks)))
    full = str(Path(found.folder, found.path)) if found.folder else ""
    return DraftFile(uri, path, full, found.edit, found.blocks, found.following, reason, doubtful)
