"""The pieces of code that minutes.py types: what no model and no memory has seen, in a small project.

The project's files are in minutes_project, with the ending .txt. What stands between « and » is typed; the project on
the disk lacks it.
"""

import re
from pathlib import Path

import attrs

_PROJECT = Path(__file__).resolve().parent / "minutes_project"
_TYPED = re.compile("«(.*?)»", re.DOTALL)
_KINDS = {
    "parcel_box.py": "functions",
    "depot.py": "imports",
    "tariffs.py": "dict literal",
    "test_parcel_box.py": "tests",
    "tracking.ts": "TypeScript",
}


@attrs.frozen
class Piece:
    """Text to type into the project's file `name`, between `before` and `after`. `kind` says what code it is."""

    name: str
    kind: str
    before: str
    typed: str
    after: str

    @property
    def keys(self) -> int:
        """How many keys it takes, as `keys_of` counts."""
        return len(keys_of(self.typed))

    def start(self, keys: int) -> "Piece":
        """Return the piece of which only the first lines are typed: about `keys` keys, and at least one line."""
        lines = self.typed.split("\n")
        count = next((n for n in range(1, len(lines)) if len(keys_of("\n".join(lines[:n]))) >= keys), len(lines))
        return attrs.evolve(self, typed="\n".join(lines[:count]).rstrip())


def keys_of(text: str) -> list[str]:
    """Return the keys that type `text`. Newlines count as one key, with the indentation, which editors write."""
    return re.findall(r"\n+[ ]*|.", text)


def write_project(folder: Path) -> None:
    """Write the project's files into `folder`, without what is to be typed."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(_PROJECT.iterdir()):
        (folder / source.stem).write_text(_TYPED.sub("", source.read_text("utf-8")), "utf-8")


def pieces(keys: int) -> list[Piece]:
    """Return what to type, about `keys` keys: the start of each piece if there are fewer than in all."""
    whole = [piece for source in sorted(_PROJECT.iterdir()) for piece in _pieces_of(source)]
    share = min(1.0, keys / sum(piece.keys for piece in whole))
    return [piece.start(round(share * piece.keys)) for piece in whole]


def _pieces_of(source: Path) -> list[Piece]:
    """Return the pieces of a file. Each is typed into a file that has those before it."""
    text, found = source.read_text("utf-8"), []
    for number, match in enumerate(_TYPED.finditer(text)):
        before, after = text[: match.start()], text[match.end() :]
        kind = "functions" if source.stem == "depot.py" and number else _KINDS[source.stem]
        found.append(Piece(source.stem, kind, re.sub("[«»]", "", before), match[1], _TYPED.sub("", after)))
    return found
