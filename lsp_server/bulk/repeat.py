"""The action that repeats the newest edit wherever its rule fits."""

import asyncio
from collections.abc import Sequence
from pathlib import PurePath

import attrs

from lsp_server.bulk.action import Draft, DraftFile, MenuItem, NotApplied, Selection, Work
from lsp_server.bulk.project_files import ProjectFiles
from lsp_server.bulk.recent_rule import KnownRule, RecentRule
from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.blocks import Block
from lsp_server.refactor.edit.file_edit import FileEdit, counted
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.places.doubts import TO_CHOOSE
from lsp_server.refactor.rivals import found_rivals
from lsp_server.refactor.rules.rule import RuleSet
from lsp_server.refactor.search import Caps, Found, Progress, search
from lsp_server.session import Session
from lsp_server.wire import ActionName, ScopeName

_PATIENCE_S = 0.25
"""A menu waits so long for the rule of an edit that was just made: its process may have to start."""


@attrs.frozen
class Repeat:
    """Repeats the newest edit of a document in the file, or in the workspace."""

    _session: Session
    _rules: RecentRule
    name: ActionName = "repeat"
    kind: str = "refactor.rewrite.midspan.repeat"
    by_model: bool = False
    only_invoked: bool = False

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Offer it on the lines of the edit, and on those of each place that fits."""
        known = await self._rules.find(selection.snapshot, _PATIENCE_S)
        if known is None or not _is_at(selection, known):
            return []
        places = len(known.found.blocks)
        offers: list[MenuItem] = []
        if places:
            offers.append(MenuItem("file", f"Repeat this edit in this file ({counted(places, 'place')})"))
        if self._session.memory.folders.workspaces and not known.recent.is_of_file:
            offers.append(MenuItem("workspace", "Repeat this edit in the workspace"))
        return offers

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the places of the file, or search the workspace."""
        snapshot = selection.snapshot
        known = await self._rules.find(snapshot) or await self._rules.find_former(snapshot)
        if known is None:
            raise NotApplied("the last edit gives no rule to repeat; change a call, an expression or a statement")
        rules, reached = known.recent.rules, list[str]()
        drafts = [DraftFile.found(snapshot.uri, PurePath(snapshot.path).name, known.found, known.reason)]
        if scope == "workspace":
            files = await asyncio.to_thread(ProjectFiles.of, self._session)
            rules = attrs.evolve(rules, wide=known.recent.wide)
            rules, found, reached = await _search(rules, files, snapshot, work)
            for one in found:
                uri, path = files.uri(one.target), files.shown_path(one.target)
                if uri != snapshot.uri:
                    drafts.append(DraftFile.found(uri, path, one, known.reason))
                else:  # the search does not know what the user did in this document, but who else has a renamed member
                    here = one if known.recent.is_rename else _with_wide(known.found, one)
                    drafts[0] = DraftFile.found(uri, path, here, known.reason)
        fitting = [(file.uri, block) for file in drafts for block in file.blocks if not block.wide]
        doubtful = sum(block.doubtful for _, block in fitting)
        changed = counted(len({uri for uri, _ in fitting}), "file")
        title = f"Repeat this edit: {counted(len(fitting), 'place')} in {changed}"
        title += f", {doubtful:,} of them doubtful" if doubtful else ""
        narrow = Narrowing(rules, snapshot.uri, snapshot.language).narrow
        return Draft(title, known.recent.name, tuple(drafts), tuple(reached), narrow=narrow)


@attrs.frozen
class Narrowing:
    """Makes an edit of some places of a file. `language` is that of the document `uri`; a path says that of others."""

    rules: RuleSet
    uri: str
    language: Language

    def narrow(self, file: DraftFile, text: str) -> FileEdit:
        """Return the edit of the blocks of a file. The imports follow what is chosen."""
        spans = {span for block in file.blocks for span in block.spans}
        language = self.language if file.uri == self.uri else language_for("", file.path)
        edit = rewrite(self.rules, file.edit.path, text, language, spans, TO_CHOOSE)
        if set(edit.places) != spans:
            raise NotApplied(f"{file.path}: the chosen places alone would have a syntax error; choose all of this file")
        return edit


def _with_wide(here: Found, searched: Found) -> Found:
    """Return what is known of a document, with the wide places that a search of it found."""
    wide = [one for one in searched.edit.doubtful if one.doubt == "wide"]
    left_out = [one for one in searched.edit.left_out if one.doubt == "wide"]
    spans, own = {one.span for one in wide}, {row for block in here.blocks for row in _rows(block)}
    more = [block for block in searched.blocks if spans.issuperset(block.spans) and own.isdisjoint(_rows(block))]
    edit = attrs.evolve(
        here.edit,
        digest=searched.edit.digest,
        left_out=(*here.edit.left_out, *left_out),
        doubtful=(*here.edit.doubtful, *wide),
    )
    blocks = tuple(sorted((*here.blocks, *more), key=lambda block: block.line))
    return attrs.evolve(here, target=searched.target, edit=edit, blocks=blocks)


def _rows(block: Block) -> range:
    return range(block.line, block.line + block.before.count("\n") + 1)


def _is_at(selection: Selection, known: KnownRule) -> bool:
    return selection.touches(known.lines, *map(_rows, known.found.blocks))


async def _search(
    rules: RuleSet, files: ProjectFiles, snapshot: Snapshot, work: Work
) -> tuple[RuleSet, list[Found], list[str]]:
    """Return the rules as other files have them, the files in which they fit, and the caps that ended the search."""

    def report(progress: Progress) -> None:
        done = f"{progress.searched:,} of {counted(progress.files, 'file')}"
        percentage = 100 * progress.searched // max(progress.files, 1)
        work.report(f"{done}, {counted(progress.places, 'place')}", percentage)

    work.report("listing the files")
    targets = await asyncio.to_thread(files.targets, snapshot)
    settings = files.settings
    caps = Caps(settings.refactor_max_files, settings.refactor_max_places, settings.refactor_max_seconds)
    settled = await found_rivals([rules], targets[: caps.files], caps.seconds / 2)
    found, progress = await search(settled, targets, caps, report, few=0, beside=TO_CHOOSE)
    return settled[0], found, progress.reached
