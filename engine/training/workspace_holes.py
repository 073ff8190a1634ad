"""Holes with their workspace: the other files of the package that a hole is cut from."""

import random
from collections.abc import Sequence

import attrs
import numpy as np

from engine.corpus.holes import TrainingHole, cut
from engine.corpus.languages import MARKUP, File
from engine.corpus.packages import packages
from engine.memory.index import RunIndex
from engine.models.embedded.layout import Encoder

LIVE = 8
"""Packages that are known at a time. A batch mixes holes of several."""
HOLES = 48
"""Holes that are cut from a package before it gives way to another one, because learning it takes time."""
MOST_CHARACTERS = 800_000
"""Of a package; a larger one is learned in part."""
_TRIES = 20


@attrs.frozen(eq=False)
class Workspace:
    """A package that is learned. `file` is the number in it of the file that the hole is cut from."""

    index: RunIndex
    file: int


@attrs.define(eq=False)
class _Package:
    index: RunIndex
    files: list[tuple[int, File]]
    lengths: list[int]
    left: int = HOLES


class WorkspaceHoles:
    """Draws holes without end: a language by its share, a package by its length, a file by its length."""

    def __init__(
        self, files: Sequence[File], shares: dict[str, float], weights: dict[str, float], encode: Encoder, seed: int
    ) -> None:
        self._rng, self._encode = random.Random(seed), encode
        self._kinds, self._odds = list(weights), list(weights.values())
        self._packages: dict[str, list[list[File]]] = {}
        for package in packages(files):
            for language in {file.language for file in package} - MARKUP:
                self._packages.setdefault(language, []).append(package)
        self._languages = [language for language in shares if language in self._packages]
        self._shares = [shares[language] for language in self._languages]
        self._sizes = {
            language: [sum(len(file.text) for file in package if file.language == language) for package in of_language]
            for language, of_language in self._packages.items()
        }
        self._live: list[_Package] = []

    def draw(self) -> tuple[TrainingHole, Workspace]:
        """Return the next hole and its workspace."""
        while True:
            if len(self._live) < LIVE:
                self._live.append(self._learn())
            package = self._rng.choice(self._live)
            package.left -= 1
            if package.left <= 0:
                self._live.remove(package)
            for _ in range(_TRIES):
                number, file = self._rng.choices(package.files, package.lengths)[0]
                hole = cut(file, self._rng.choices(self._kinds, self._odds)[0], self._rng)
                if hole is not None:
                    return hole, Workspace(package.index, number)

    def _learn(self) -> _Package:
        """Learn a random package: its files in random order, until MOST_CHARACTERS are reached."""
        language = self._rng.choices(self._languages, self._shares)[0]
        files = list(self._rng.choices(self._packages[language], self._sizes[language])[0])
        self._rng.shuffle(files)
        # At least one file must be of the language that was drawn.
        files.sort(key=lambda file: file.language != language)
        package, room = _Package(RunIndex(), [], []), MOST_CHARACTERS
        for number, file in enumerate(files):
            if package.files and len(file.text) > room:
                break
            room -= len(file.text)
            package.index.add(number, np.array(self._encode(file.text), np.int32))
            if file.language == language:
                package.files.append((number, file))
                package.lengths.append(len(file.text))
        return package
