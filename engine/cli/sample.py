"""The sample files of the demo: a small project, with a part of each file that is to be typed."""

from importlib.resources import files
from pathlib import Path

import attrs

# Marks around the part that is typed. A sample's name ends in .txt because the marks make it invalid source.
_START, _END = "⟨", "⟩"


@attrs.frozen
class Sample:
    """A sample file: its name, and its text before, in and after the part that is typed."""

    name: str
    above: str
    typed: str
    below: str

    @classmethod
    def read(cls, name: str, marked: str) -> "Sample":
        """Return the sample of a text with marks."""
        above, _, rest = marked.partition(_START)
        typed, _, below = rest.partition(_END)
        return cls(name, above, typed, below)

    def write(self, folder: Path, typed: str) -> Path:
        """Write the file with `typed` in place of its part, and return its path."""
        path = folder / self.name
        path.write_text(self.above + typed + self.below, "utf-8")
        return path


def samples() -> list[Sample]:
    """Return the samples in the package, sorted by name."""
    found = [file for file in files("engine.cli").joinpath("samples").iterdir() if file.name.endswith(".txt")]
    named = sorted((file.name.removesuffix(".txt"), file.read_text("utf-8")) for file in found)
    return [Sample.read(name, marked) for name, marked in named]
