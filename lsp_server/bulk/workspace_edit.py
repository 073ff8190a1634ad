"""The chosen places of a draft as one WorkspaceEdit."""

from collections.abc import Sequence
from pathlib import Path

import attrs
from lsprotocol import types

from engine.reading import read_real
from lsp_server.bulk.action import DraftFile, Narrow, NotApplied
from lsp_server.bulk.project_files import open_files
from lsp_server.documents.source import Source
from lsp_server.documents.store import Documents, OpenDocument, position_in
from lsp_server.documents.text_edit import TextEdit
from lsp_server.exclusion import MAX_DOCUMENT_BYTES
from lsp_server.refactor.edit.file_edit import digest_of
from lsp_server.refactor.save import BOM, is_read_only

_SURE = "midspan"
_DOUBTFUL = "midspan.doubtful"


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


def ready(chosen: Sequence[DraftFile], narrow: Narrow, documents: Documents) -> list[Ready]:
    """Return the edits of the blocks of all files. Reads the disk, so call it in a thread.

    Raises NotApplied, with one line about the first file that is not what it was.
    """
    files = open_files(documents.all())
    by_uri = {document.uri: document for document in documents.all()}
    return [_ready(file, narrow, documents, by_uri.get(file.uri) or files.get(file.full)) for file in chosen]


def _ready(file: DraftFile, narrow: Narrow, documents: Documents, document: OpenDocument | None) -> Ready:
    uri, version, full = file.uri, None, file.full
    if document is not None:
        uri, version, full = document.uri, document.version, document.full
    text = document.text if document is not None else _read(file)
    # The editor will say how it saves a document without a file.
    if full and is_read_only(Path(full)):
        raise NotApplied(f"{file.path} is read-only; make it writable, or leave its places out")
    if digest_of(text) != file.edit.digest:
        raise NotApplied(f"{file.path} has changed since its places were found; run the action again")
    edit = file.edit if file.edits_chosen == set(file.edit.edits) else narrow(file, text)
    doubtful = frozenset(one for block in file.blocks if block.doubtful for one in block.edits)
    return Ready(uri, version, documents.source_of(text), edit.edits, doubtful)


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


@attrs.frozen
class EditForm:
    """What an editor understands of a WorkspaceEdit, and how it counts columns."""

    encoding: types.PositionEncodingKind | str
    versions: bool = False
    annotations: bool = False
    metadata: bool = False

    @classmethod
    def of(cls, capabilities: types.ClientCapabilities, encoding: types.PositionEncodingKind | str) -> "EditForm":
        workspace = capabilities.workspace
        edit = workspace.workspace_edit if workspace is not None else None
        if edit is None or not edit.document_changes:
            return cls(encoding)
        annotations = edit.change_annotation_support is not None
        return cls(encoding, versions=True, annotations=annotations, metadata=bool(edit.metadata_support))

    def workspace_edit(self, files: Sequence[Ready], title: str) -> types.WorkspaceEdit:
        """Return the edits of all files as one edit."""
        if not self.versions:
            return types.WorkspaceEdit(changes={file.uri: self._edits(file) for file in files})
        changes = [
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(file.uri, file.version), self._annotated(file)
            )
            for file in files
        ]
        if not self.annotations:
            return types.WorkspaceEdit(document_changes=changes)
        annotations = {_SURE: types.ChangeAnnotation(title, needs_confirmation=False)}
        if any(file.doubtful for file in files):
            annotations[_DOUBTFUL] = types.ChangeAnnotation(f"{title} (please check)", needs_confirmation=True)
        return types.WorkspaceEdit(document_changes=changes, change_annotations=annotations)

    def _edits(self, file: Ready) -> list[types.TextEdit]:
        return [types.TextEdit(self._range(file, edit), edit.text) for edit in file.edits]

    def _annotated(self, file: Ready) -> list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit]:
        if not self.annotations:
            return [*self._edits(file)]
        return [
            types.AnnotatedTextEdit(_DOUBTFUL if edit in file.doubtful else _SURE, self._range(file, edit), edit.text)
            for edit in file.edits
        ]

    def _range(self, file: Ready, edit: TextEdit) -> types.Range:
        return types.Range(
            position_in(file.source, edit.start, self.encoding), position_in(file.source, edit.end, self.encoding)
        )
