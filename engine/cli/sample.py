"""The sample files of the demo, and the holes marked in them."""

import re
from importlib.resources import files
from pathlib import Path

import attrs

from engine.cli.cursor import Cursor

# A sample marks its holes as ⟨the original text⟩. Its name ends in .txt because the marks make it invalid source.
_HOLE = re.compile("⟨([^⟩]*)⟩")


@attrs.frozen
class SampleHole:
    """A cursor at one hole of a sample, and the author's original text. All other holes have their original text."""

    cursor: Cursor
    original: str


@attrs.frozen
class Sample:
    """A sample file: its name, and its text with marks around the holes."""

    name: str
    marked: str

    def holes(self, folder: Path) -> list[SampleHole]:
        """Return the holes, as if the file were in `folder`."""
        return [self._hole(folder / self.name, match) for match in _HOLE.finditer(self.marked)]

    def _hole(self, path: Path, match: re.Match[str]) -> SampleHole:
        before = _HOLE.sub(r"\1", self.marked[: match.start()])
        after = _HOLE.sub(r"\1", self.marked[match.end() :])
        return SampleHole(Cursor.at_offset(path, before + after, len(before)), match[1])


def samples() -> list[Sample]:
    """Return the samples in the package, sorted by name."""
    sample_files = [file for file in files("engine.cli").joinpath("samples").iterdir() if file.name.endswith(".txt")]
    return sorted((Sample(file.name.removesuffix(".txt"), file.read_text("utf-8")) for file in sample_files), key=_name)


def _name(sample: Sample) -> str:
    return sample.name
