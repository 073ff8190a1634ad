"""A user's changes of a text, noted as the server notes them."""

from lsp_server.documents.edits import RecentEdits


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
