"""What the search processes find in a file: its edits, and the places as blocks. This module imports little."""

from collections.abc import Sequence

import attrs

from lsp_server.bulk.blocks import Block, blocks_of
from lsp_server.documents.recent_edits import RecentEdit
from lsp_server.documents.source import Source
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for
from lsp_server.languages.syntax_errors import errors
from lsp_server.refactor.file_edit import FileEdit
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.recent import RecentRules, recent_rules, touched_parts
from lsp_server.refactor.rewrite import rewrite
from lsp_server.refactor.search import Target, searched
from lsp_server.refactor.syntax import PARSE_SECONDS


@attrs.frozen
class FoundFile:
    """The edits of one file of a folder, and its blocks. In a file with syntax errors every place is doubtful."""

    folder: str
    path: str
    edit: FileEdit
    blocks: tuple[Block, ...]
    following: tuple[Block, ...]
    has_errors: bool

    @classmethod
    def of(cls, target: Target, text: str, edit: FileEdit, language: Language) -> "FoundFile":
        """Return what was found in this text."""
        if not edit.edits:
            return cls(target.folder, target.path, edit, (), (), False)
        source = Source.of(text)
        blocks, following = blocks_of(source, edit)
        tree = language.parse(source.data, None, PARSE_SECONDS)
        has_errors = tree is None or bool(errors(tree.root_node))
        return cls(target.folder, target.path, edit, tuple(blocks), tuple(following), has_errors)


@attrs.frozen
class RecentPlaces:
    """The rules of the newest edits of a document, and where they fit in the document."""

    recent: RecentRules
    file: FoundFile


def found_files(rules: RuleSet, targets: Sequence[Target]) -> list[FoundFile]:
    """Return the files that the rules change or leave places out in."""
    return [
        FoundFile.of(one.target, one.text, one.edit, language_for("", one.target.path))
        for one in searched([rules], targets)
    ]


def recent_places(edits: Sequence[RecentEdit], language_id: str, path: str) -> RecentPlaces | None:
    """Return where the newest edit belongs too, in the text after it. None if the edits give no rule."""
    language = language_for(language_id, path)
    recent = recent_rules(edits, language)
    if recent is None:
        return None
    text, done = edits[-1].after, touched_parts(edits)
    found = places_in(recent.rules, text, language_id, path)
    left = {one for one in found.edit.places if not any(one.start < end and start < one.end for start, end in done)}
    if len(left) < len(found.edit.places):
        # Where arguments changed places, nothing in the code tells that it has the edit already.
        edit = rewrite(recent.rules, path, text, language, left)
        found = FoundFile.of(Target("", path), text, edit, language)
    return RecentPlaces(recent, found)


def places_in(rules: RuleSet, text: str, language_id: str, path: str) -> FoundFile:
    """Return where rules fit in the text of a document."""
    language = language_for(language_id, path)
    return FoundFile.of(Target("", path), text, rewrite(rules, path, text, language), language)
