"""Files as they are now: a draft is only applied to the texts that it was made for."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from lsp_server.bulk.blocks import Block
from lsp_server.bulk.draft import DraftFile, Narrow, NotApplied
from lsp_server.bulk.project_files import OpenFiles
from lsp_server.documents.exclusion import MAX_DOCUMENT_BYTES
from lsp_server.documents.source import Source
from lsp_server.documents.store import OpenDocument
from lsp_server.refactor.file_edit import FileEdit, TextEdit, digest_of
from lsp_server.refactor.save import BOM, is_read_only
from lsp_server.workspace.reading import read_real


@attrs.frozen
class Choice:
    """The blocks of a file that are to be applied."""

    file: DraftFile
    blocks: tuple[Block, ...]


@attrs.frozen
class Ready:
    """Edits that fit the text of a file as it is now. `version` is None for a file that is not open.

    `doubtful` has those to be asked about.
    """

    uri: str
    version: int | None
    source: Source
    edits: tuple[TextEdit, ...]
    doubtful: frozenset[TextEdit] = frozenset()


def ready(choices: Sequence[Choice], narrow: Narrow, documents: Sequence[OpenDocument]) -> list[Ready]:
    """Return the edits of all choices. Reads the disk, so call it in a thread.

    Raises NotApplied, with one line about the first file that is not what it was.
    """
    files = OpenFiles.of(documents)
    by_uri = {document.uri: document for document in documents}
    return [_ready(choice, narrow, by_uri.get(choice.file.uri) or files.at(choice.file.full)) for choice in choices]


def _ready(choice: Choice, narrow: Narrow, document: OpenDocument | None) -> Ready:
    file = choice.file
    if document is not None:
        text = document.text
        _check_writable(file, document.full)
    else:
        text = _read(file)
        _check_writable(file, file.full)
    if digest_of(text) != file.edit.digest:
        raise NotApplied(f"{file.path} has changed since its places were found; run the action again")
    edit: FileEdit = file.edit if choice.blocks == file.blocks else narrow(file, text, choice.blocks)
    doubtful = {one for number in file.doubtful for one in file.blocks[number].edits}
    version = document.version if document is not None else None
    uri = document.uri if document is not None else file.uri
    return Ready(uri, version, Source.of(text), edit.edits, frozenset(doubtful))


def _read(file: DraftFile) -> str:
    if not file.full:
        raise NotApplied(f"{file.path} was closed; open it and run the action again")
    try:
        data = read_real(file.full, MAX_DOCUMENT_BYTES)
    except FileNotFoundError:
        raise NotApplied(f"{file.path} was deleted; run the action again") from None
    except OSError as error:
        raise NotApplied(f"{file.path} cannot be read ({error.strerror}); run the action again") from error
    try:
        return data.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError:
        raise NotApplied(f"{file.path} is not UTF-8 any more; convert it and run the action again") from None


def _check_writable(file: DraftFile, full: str) -> None:
    # The editor will say how it saves a document without a file.
    if full and is_read_only(Path(full)):
        raise NotApplied(f"{file.path} is read-only; make it writable, or leave its places out")
