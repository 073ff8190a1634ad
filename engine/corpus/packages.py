"""The packages of a corpus. A package is what a user would have open as a workspace."""

import hashlib
from collections.abc import Iterator, Sequence

from engine.corpus.languages import File

FEWEST_FILES = 5
"""A smaller package is no workspace."""


def packages(files: Sequence[File]) -> Iterator[list[File]]:
    """Yield the files of each package with at least FEWEST_FILES.

    A corpus keeps the files of a package together, in the order of their paths' hashes.
    """
    part: list[File] = []
    last = ("", b"")
    for file in files:
        key = (file.path.split("/")[0], hashlib.sha1(file.path.encode()).digest())
        if key[0] != last[0] or key[1] < last[1]:
            if len(part) >= FEWEST_FILES:
                yield part
            part = []
        part.append(file)
        last = key
    if len(part) >= FEWEST_FILES:
        yield part
