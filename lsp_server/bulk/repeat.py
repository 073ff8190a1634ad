"""The action "Repeat this edit": the newest edit of a document, made in all places where it fits."""

import asyncio
from collections.abc import Sequence
from pathlib import Path, PurePath

import attrs

from lsp_server.bulk.action import Offer, Project, Selection, Work
from lsp_server.bulk.blocks import Block
from lsp_server.bulk.draft import Draft, DraftFile, NotApplied, counted
from lsp_server.bulk.known_rules import KnownRule, KnownRules
from lsp_server.bulk.project_files import OpenFiles, ProjectFiles
from lsp_server.bulk_messages import ActionName, ScopeName
from lsp_server.documents.store import Snapshot
from lsp_server.languages.registry import language_for
from lsp_server.refactor.file_edit import FileEdit
from lsp_server.refactor.notation import described
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.rewrite import rewrite
from lsp_server.refactor.search import Caps, Found, Progress, search
from lsp_server.workspace.reading import read_text

_PATIENCE_S = 0.02


@attrs.frozen
class Repeat:
    """Repeats the newest edit of a document in the file, or in the workspace."""

    _project: Project
    _rules: KnownRules
    name: ActionName = "repeat"
    kind: str = "refactor.rewrite.midspan.repeat"
    by_model: bool = False

    async def offers(self, selection: Selection) -> Sequence[Offer]:
        """Offer it on the lines of the edit, and on those of each place that fits."""
        known = await self._rules.find(selection.snapshot, _PATIENCE_S)
        if known is None or not _is_at(selection, known):
            return []
        places = len(known.file.blocks)
        offers: list[Offer] = []
        if places:
            offers.append(Offer("file", f"Repeat this edit in this file ({counted(places, 'place')})"))
        if self._project.memory.folders.workspaces:
            offers.append(Offer("workspace", "Repeat this edit in the workspace"))
        return offers

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the places of the file, or search the workspace."""
        snapshot = selection.snapshot
        known = await self._rules.find(snapshot)
        if known is None:
            raise NotApplied(
                "the last edit of this file gives no rule to repeat; change a call, expression or statement"
            )
        reason = f"as in {PurePath(snapshot.path).name}:{snapshot.source.lines.at(known.example[0]) + 1}"
        if scope == "workspace":
            files = ProjectFiles(
                self._project.memory.folders,
                await asyncio.to_thread(OpenFiles.of, self._project.documents.all()),
                self._project.configuration.settings,
            )
            found, progress = await asyncio.to_thread(_search, known, files, snapshot, work)
        else:
            found, progress = [attrs.evolve(known.file, path=PurePath(snapshot.path).name)], Progress(1)
        drafts = tuple(attrs.evolve(file, reason=reason) for file in found)
        rule = "\n".join(described(one) for one in known.rules.rules)
        draft = Draft("", rule, drafts, tuple(progress.reached), narrow=_Narrowing(known.rules).narrow)
        changed = sum(bool(file.blocks) for file in drafts)
        return attrs.evolve(
            draft, title=f"Repeat this edit: {counted(draft.places, 'place')} in {counted(changed, 'file')}"
        )


@attrs.frozen
class _Narrowing:
    rules: RuleSet

    def narrow(self, file: DraftFile, text: str, blocks: Sequence[Block]) -> FileEdit:
        """Return the edit of some places. The imports follow what is chosen."""
        spans = {span for block in blocks for span in block.spans}
        edit = rewrite(self.rules, file.edit.path, text, language_for("", file.path), spans)
        if set(edit.places) != spans:
            raise NotApplied(f"{file.path}: the chosen places alone would have a syntax error; choose all of this file")
        return edit


def _is_at(selection: Selection, known: KnownRule) -> bool:
    lines = selection.snapshot.source.lines
    touched = selection.lines
    first, last = lines.at(known.example[0]), lines.at(known.example[1])
    if first <= touched[-1] and touched[0] <= last:
        return True
    ranges = [(block.line, block.line + block.before.count("\n")) for block in known.file.blocks]
    return any(first <= touched[-1] and touched[0] <= last for first, last in ranges)


def _search(known: KnownRule, files: ProjectFiles, snapshot: Snapshot, work: Work) -> tuple[list[DraftFile], Progress]:
    last = Progress(0)

    def report(progress: Progress) -> None:
        nonlocal last
        last = progress
        percentage = 100 * progress.searched // max(progress.files, 1)
        work.report(f"{progress.searched} of {counted(progress.files, 'file')}, {progress.places} places", percentage)

    work.report("listing the files")
    targets = files.targets(snapshot)
    work.check()
    settings = files.settings
    caps = Caps(settings.refactor_max_files, settings.refactor_max_places, settings.refactor_max_seconds)
    found = sorted(search([known.rules], targets, caps, report), key=_path)
    return [draft for one in found if (draft := _drafted(one, files)) is not None], last


def _drafted(found: Found, files: ProjectFiles) -> DraftFile | None:
    target = found.target
    text = target.text if target.text is not None else read_text(target.folder, target.path)
    if text is None:
        return None
    full = str(Path(target.folder, target.path))
    return DraftFile.of(files.uri(target), files.shown_path(target), full, text, found.edit)


def _path(found: Found) -> tuple[str, str]:
    return found.target.folder, found.target.path
