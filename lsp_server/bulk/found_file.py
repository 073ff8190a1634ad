"""What the search processes find in a file: its edits, and the places as blocks. This module imports little."""

from collections.abc import Sequence

import attrs

from lsp_server.bulk.blocks import Block, blocks_of
from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.source import Source
from lsp_server.languages.registry import language_for
from lsp_server.refactor.file_edit import FileEdit
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.recent import RecentRules, RepeatedEdit, repeated_edit, touched_parts
from lsp_server.refactor.rewrite import rewrite
from lsp_server.refactor.search import Target, searched


@attrs.frozen
class FoundFile:
    """The edits of one file of a folder, and its blocks."""

    folder: str
    path: str
    edit: FileEdit
    blocks: tuple[Block, ...]
    following: tuple[Block, ...]

    @classmethod
    def of(cls, target: Target, text: str, edit: FileEdit) -> "FoundFile":
        """Return what was found in this text."""
        blocks, following = blocks_of(Source.of(text), edit) if edit.edits else ([], [])
        return cls(target.folder, target.path, edit, tuple(blocks), tuple(following))


@attrs.frozen
class RecentPlaces:
    """The rules of the newest edits of a document, and where they fit in the document."""

    recent: RecentRules
    file: FoundFile


def found_files(rules: RuleSet, targets: Sequence[Target]) -> list[FoundFile]:
    """Return the files that the rules change or leave places out in."""
    return [FoundFile.of(one.target, one.text, one.edit) for one in searched([rules], targets)]


def recent_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> RecentPlaces | None:
    """Return where the newest edit belongs too, in the text after it. None if the edits give no rule."""
    repeated = repeated_edit(edits, language_id, path)
    return _without_done(repeated, edits, language_id, path) if repeated is not None else None


def former_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> RecentPlaces | None:
    """Return where the newest of the edits that gives a rule belongs too, in the text after the last one."""
    for count in range(len(edits) - 1, 0, -1):
        repeated = repeated_edit(edits[:count], language_id, path)
        if repeated is not None:
            edit = rewrite(repeated.recent.rules, path, edits[-1].after, language_for(language_id, path))
            return _without_done(RepeatedEdit(repeated.recent, edit), edits, language_id, path)
    return None


def _without_done(repeated: RepeatedEdit, edits: Sequence[RecentEdit], language_id: str, path: str) -> RecentPlaces:
    """Return the places of an edit, without those that the user has edited."""
    recent, edit = repeated.recent, repeated.edit
    text, done = edits[-1].after, touched_parts(edits)
    left = {one for one in edit.places if not any(one.start < end and start < one.end for start, end in done)}
    if len(left) < len(edit.places):
        # Where arguments changed places, nothing in the code tells that it has the edit already.
        edit = rewrite(recent.rules, path, text, language_for(language_id, path), left)
    return RecentPlaces(recent, FoundFile.of(Target("", path), text, edit))


def found_in_document(rules: RuleSet, text: str, language_id: str, path: str) -> FoundFile:
    """Return where rules fit in the text of a document."""
    edit = rewrite(rules, path, text, language_for(language_id, path))
    return FoundFile.of(Target("", path), text, edit)
