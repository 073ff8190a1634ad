"""Holes of the corpus with related code of their package and their own file, chosen as the engine chooses it."""

import random
from collections.abc import Callable, Sequence

import numpy as np

from engine.corpus.corpus import packages
from engine.corpus.holes import HoleSampler, TrainingHole
from engine.corpus.languages import File
from engine.memory.row_memory import KnownFiles
from engine.memory.windows import MOST_WINDOWS, LineTexts, RelatedWindows
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill, Snippet

HOLES = 8
"""Holes of one package, taken together: its files are indexed once for all of them."""
MOST_FILES, MOST_CHARACTERS = 32, 240_000
"""A package without the hole's own file; files of the same folder first. A larger index takes too long."""
BUFFER = 96
"""Holes that are shuffled, so that those of a package are not learned together."""
_NAME = "package"


class Related:
    """Chooses snippets of known files for holes, as the engine does."""

    def __init__(self, known: KnownFiles, encode: Callable[[str], Sequence[int]], lines: LineTexts) -> None:
        self._windows = RelatedWindows(lambda _: known, encode, lines, MOST_WINDOWS)

    def of(self, prefix: str, suffix: str, path: str) -> list[Snippet]:
        """Return the snippets for a hole in the file of this path, the best first."""
        return self._windows.snippets(Fill(id=0, prefix=prefix, suffix=suffix, path=path, workspace=_NAME))


def line_texts_of(token_bytes: TokenBytes) -> LineTexts:
    """Return what finds the lines of tokenized files."""
    breaks = np.array([token_bytes.breaks_line(token) for token in range(len(token_bytes.bytes))])
    return LineTexts(breaks, lambda token: token_bytes.bytes[token])


class RelatedHoles:
    """Draws holes as `sampler` does, each with snippets of files in the same language."""

    def __init__(
        self,
        sampler: HoleSampler,
        files: Sequence[File],
        encode: Callable[[str], Sequence[int]],
        token_bytes: TokenBytes,
        seed: int,
    ) -> None:
        self._sampler, self._encode, self._rng = sampler, encode, random.Random(seed)
        self._lines = line_texts_of(token_bytes)
        self._package_of = {id(file): package for package in packages(files) for file in package}
        self._drawn: list[tuple[TrainingHole, list[Snippet]]] = []

    def draw(self) -> tuple[TrainingHole, list[Snippet]]:
        """Return the next hole, and the snippets for it, the best first; none where the package has no such code."""
        while len(self._drawn) < BUFFER:
            self._drawn += self._of_package()
            self._rng.shuffle(self._drawn)
        return self._drawn.pop()

    def _of_package(self) -> list[tuple[TrainingHole, list[Snippet]]]:
        """Return up to HOLES holes of a random package."""
        first = self._sampler.file()
        others = [
            file
            for file in self._package_of.get(id(first), [])
            if file is not first and file.language == first.language
        ]
        folder = first.path.rpartition("/")[0]
        self._rng.shuffle(others)
        others.sort(key=lambda file: file.path.rpartition("/")[0] != folder)
        known, room = KnownFiles(), MOST_CHARACTERS
        near = [first]
        known.add(first.path, np.array(self._encode(first.text[:MOST_CHARACTERS]), np.int32))
        for file in others[:MOST_FILES]:
            if len(file.text) <= room:
                known.add(file.path, np.array(self._encode(file.text), np.int32))
                near.append(file)
                room -= len(file.text)
        related = Related(known, self._encode, self._lines)
        sizes = [len(file.text) for file in near]
        drawn = []
        for file in [first, *self._rng.choices(near, sizes, k=HOLES - 1)]:
            hole = self._sampler.hole_of(file)
            if hole is not None:
                drawn.append((hole, related.of(hole.prefix, hole.suffix, hole.path)))
        return drawn
