"""Edits as LSP has them: one WorkspaceEdit, in the form that the editor understands."""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from lsp_server.bulk.current_files import Ready
from lsp_server.documents.store import position_in
from lsp_server.refactor.file_edit import TextEdit

_SURE = "midspan"
_DOUBTFUL = "midspan.doubtful"


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
