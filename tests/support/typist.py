"""A user's changes of a text, noted as the server notes them."""

from lsp_server.documents.edits import RecentEdits
from lsp_server.documents.text_edit import TextEdit
from lsp_server.refactor.recent import RecentPlaces, recent_places


class Typist:
    """Changes a text as an editor's notifications say it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits = RecentEdits()

    def replace(self, old: str, new: str) -> None:
        """Replace the first `old`."""
        self.change(self.text.index(old), len(old), new)

    def change(self, start: int, length: int, new: str) -> None:
        """Replace `length` characters."""
        after = self.text[:start] + new + self.text[start + length :]
        self.edits = self.edits.changed(self.text, start, start + length, after, start + len(new))
        self.text = after

    def type(self, behind: str, keys: str) -> None:
        """Type keys after the first `behind`."""
        start = self.text.index(behind) + len(behind)
        for index, key in enumerate(keys):
            self.change(start + index, 0, key)


def next_places(typist: Typist, language: str = "python") -> RecentPlaces | None:
    """Return the places of the newest edit, if it looks like one that belongs elsewhere too."""
    found = recent_places(typist.edits.all, language, "file")
    return found if found is not None and found.recent.is_telling else None


def next_lines(typist: Typist, language: str = "python") -> list[str]:
    """Return the lines that the next edits would make, each made alone."""
    found = next_places(typist, language)
    return [next_line(typist.text, place) for place in found.one_by_one.places] if found is not None else []


def next_line(text: str, place: TextEdit) -> str:
    after = place.applied(text)
    return after[after.rfind("\n", 0, place.start) + 1 :].partition("\n")[0].strip()
