"""Which files the memory may learn: the same languages and the same exclusions as for suggestions."""

from collections.abc import Iterable

import attrs

from lsp_server.documents.exclusion import why_secret
from lsp_server.languages.registry import language_for
from lsp_server.settings import Settings
from lsp_server.workspace.reading import is_inside


@attrs.frozen
class Rules:
    """The settings that decide what is learned."""

    exclude: tuple[str, ...]
    languages_off: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> "Rules":
        return cls(settings.exclude, frozenset(name for name, on in settings.languages.items() if not on))

    def language_of(self, folder: str, path: str) -> str | None:
        """Return the id of a file's language; None for a file that must not be learned. The file is not opened."""
        if not is_inside(path):
            return None
        language = language_for("", path)
        if not language.extensions or language.id in self.languages_off:
            return None
        return None if why_secret(f"{folder}/{path}", self.exclude) else language.id

    def allowed(self, folder: str, paths: Iterable[str]) -> list[str]:
        """Return the paths that may be learned."""
        return [path for path in paths if self.language_of(folder, path) is not None]
