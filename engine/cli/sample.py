"""The sample files that ship with Midspan, and the holes marked in them."""

import re
from importlib.resources import files
from pathlib import Path

import attrs

from engine.cli.cursor import Cursor

# A sample marks its holes as ⟨what stood there⟩; its name ends in .txt because with the marks it is no valid source.
_HOLE = re.compile("⟨([^⟩]*)⟩")


@attrs.frozen
class SampleHole:
    """A cursor in a sample whose other holes are closed, and what its author had written there."""

    cursor: Cursor
    original: str


@attrs.frozen
class Sample:
    name: str
    marked: str

    def holes(self, folder: Path) -> list[SampleHole]:
        """Return each hole on its own, as if the file lay in `folder`."""
        return [self._hole(folder / self.name, match) for match in _HOLE.finditer(self.marked)]

    def _hole(self, path: Path, match: re.Match[str]) -> SampleHole:
        before = _HOLE.sub(r"\1", self.marked[: match.start()])
        after = _HOLE.sub(r"\1", self.marked[match.end() :])
        return SampleHole(Cursor.at_offset(path, before + after, len(before)), match[1])


def samples() -> list[Sample]:
    """Return the samples that ship with the package, by name."""
    found = [file for file in files("engine.cli").joinpath("samples").iterdir() if file.name.endswith(".txt")]
    return sorted((Sample(file.name.removesuffix(".txt"), file.read_text("utf-8")) for file in found), key=_name)


def _name(sample: Sample) -> str:
    return sample.name
