"""The files of the workspace as an action sees them, with unsaved texts."""

import os
from collections.abc import Iterable
from pathlib import Path

import attrs

from engine.reading import is_learnable
from lsp_server.documents.store import OpenDocument
from lsp_server.refactor.search import Target
from lsp_server.session import Session
from lsp_server.settings import Settings
from lsp_server.workspace.files import Rules, learnable_files
from lsp_server.workspace.memory import Folders


def open_files(documents: Iterable[OpenDocument]) -> dict[str, OpenDocument]:
    """Return the documents of files that are open, by real path. Reads the disk to resolve paths."""
    return {os.path.realpath(one.full): one for one in documents if one.full}


@attrs.frozen
class ProjectFiles:
    """The workspace folders, the open documents, and the settings that leave files out."""

    folders: Folders
    open: dict[str, OpenDocument]
    settings: Settings

    @classmethod
    def of(cls, session: Session) -> "ProjectFiles":
        """Return the files of a session. Reads the disk."""
        return cls(session.memory.folders, open_files(session.documents.all()), session.configuration.settings)

    def targets(self, snapshot: OpenDocument) -> list[Target]:
        """Return the files to search for an action in a document, the document and its neighbours first.

        The folder of the document comes before the other workspace folders. Reads the disk.
        """
        rules = Rules.of(self.settings)
        here = self.folders.place_of(snapshot.full)
        near = {here.workspace: here.path} if here is not None else {}
        folders = sorted(self.folders.workspaces, key=lambda folder: folder not in near)
        targets: dict[str, Target] = {}
        if here is not None:
            full = str(Path(here.workspace, here.path))
            targets[full] = Target(here.workspace, here.path, snapshot.text)
        for folder in folders:
            for path in learnable_files(folder, rules, near.get(folder, "")):
                full = str(Path(folder, path))
                document = self.open.get(full)
                if document is None or is_learnable(document.text):
                    targets.setdefault(full, Target(folder, path, document.text if document is not None else None))
        return list(targets.values())

    def uri(self, target: Target) -> str:
        """Return the URI of a file, as the editor writes it if it is open."""
        document = self.open.get(target.full)
        return document.uri if document is not None else Path(target.full).as_uri()

    def shown_path(self, target: Target) -> str:
        """Return the path of a file for the user: from its folder, with the folder's name if there are several."""
        return target.path if len(self.folders.workspaces) < 2 else f"{Path(target.folder).name}/{target.path}"
