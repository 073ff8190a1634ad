"""What an action would change: the files with their places, before anyone has chosen among them."""

from collections.abc import Callable, Collection, Sequence
from pathlib import PurePath

import attrs

from engine.errors import MidspanError
from lsp_server.bulk.blocks import Block, blocks_of
from lsp_server.documents.store import Snapshot
from lsp_server.refactor.file_edit import FileEdit, TextEdit


class NotApplied(MidspanError):
    """A bulk edit was not made, and nothing is changed. The message is one line for the user."""

    code = "not-applied"


@attrs.frozen
class DraftFile:
    """The edits of one file. `path` is what the user sees; `full` is the real path, "" for what is no file.

    `reason` holds for each of its places, unless `reasons` has one for each block. `doubtful` has the numbers of the
    blocks that are to be asked about.
    """

    uri: str
    path: str
    full: str
    edit: FileEdit
    blocks: tuple[Block, ...]
    following: tuple[Block, ...] = ()
    reason: str = ""
    doubtful: frozenset[int] = frozenset()
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot, path: str, edit: FileEdit, reason: str) -> "DraftFile":
        """Return the draft of an edit of this version of a document, none of whose places is doubtful."""
        blocks, following = blocks_of(snapshot.source, edit) if edit.edits else ([], [])
        return cls(snapshot.uri, path, snapshot.full, edit, tuple(blocks), tuple(following), reason)

    def reason_of(self, number: int) -> str:
        """Return the reason of a block."""
        return self.reasons[number] if self.reasons else self.reason

    @property
    def name(self) -> str:
        """The file's name, for the user."""
        return PurePath(self.path).name or self.uri


Narrow = Callable[[DraftFile, str, Sequence[Block]], FileEdit]


def only_chosen(file: DraftFile, text: str, blocks: Sequence[Block]) -> FileEdit:
    """Return the edit of some blocks of a file, where each stands alone, and what follows them."""
    chosen: Collection[TextEdit] = [edit for block in (*blocks, *file.following) for edit in block.edits]
    edits = tuple(sorted(chosen, key=lambda edit: (edit.start, edit.end)))
    return attrs.evolve(file.edit, edits=edits, places=tuple(span for block in blocks for span in block.spans))


@attrs.frozen
class Draft:
    """What an action would change. `rule` is the edit as code, "" if a model wrote it.

    `reached` has a line for each cap that ended the search. With `exclusive` the places are answers to choose one of,
    each in a DraftFile of its own. `narrow` returns the edit of some places of a file, given its text.
    """

    title: str
    rule: str
    files: tuple[DraftFile, ...]
    reached: tuple[str, ...] = ()
    exclusive: bool = False
    narrow: Narrow = only_chosen

    @property
    def places(self) -> int:
        """The number of places that can be chosen."""
        return sum(len(file.blocks) for file in self.files)

    @property
    def left_out(self) -> int:
        """The number of places that were left out."""
        return sum(len(file.edit.left_out) for file in self.files)
