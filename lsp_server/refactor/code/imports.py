"""What an import binds, and how an edit changes imports."""

import itertools
import posixpath
from collections.abc import Iterable, Sequence

import attrs


@attrs.frozen
class Import:
    """One imported name, as the language writes it: `source` is the module, `name` what is taken of it, or "".

    `alias` is the name in the file if it is another one. `kind` tells default, namespace and named imports apart.
    """

    source: str
    name: str = ""
    alias: str = ""
    kind: str = ""

    @property
    def clause(self) -> str:
        """The name as it is written among others of its module."""
        return f"{self.name} as {self.alias}" if self.alias else self.name

    @property
    def bound(self) -> str:
        """The name that the import binds in the file."""
        if self.alias:
            return self.alias
        if self.name:
            return self.name
        return self.source.rpartition("/")[2] if self.kind == "go" else self.source.partition(".")[0]

    def seen_from(self, path: str, other: str) -> "Import":
        """Return the import of the file `path` as the file `other` writes it: a relative one is another.

        A module of Python that shares no package with it is named from the root.
        """
        here, there = (posixpath.dirname(one).split("/") for one in (path, other))
        if not self.source.startswith(".") or not (path and other) or here[-len(there) :] == there[-len(here) :]:
            return self
        if self.kind != "python":
            whole = posixpath.normpath(posixpath.join(*here, self.source))
            source = posixpath.relpath(whole, posixpath.dirname(other) or ".")
            return attrs.evolve(self, source=source if source.startswith(".") else f"./{source}")
        name = self.source.lstrip(".")
        up = len(self.source) - len(name) - 1
        module = [one for one in (*here[: len(here) - up], *name.split(".")) if one]
        pairs = zip(module, there, strict=False)
        shared = len([*itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)])
        dots = "." * (len(there) - shared + 1) if shared else ""
        return attrs.evolve(self, source=dots + ".".join(module[shared or module[:1] == ["src"] :]))


@attrs.frozen
class ImportEdit:
    """The imports that an example added and removed. `replaced` pairs those of which one took the other's line.

    Where a file has the first of a pair that `follows`, the second goes along with the edit.
    """

    added: tuple[Import, ...] = ()
    removed: tuple[Import, ...] = ()
    replaced: tuple[tuple[Import, Import], ...] = ()
    follows: tuple[tuple[Import, Import], ...] = ()

    def along(self, pairs: Iterable[tuple[Import, Import]]) -> "ImportEdit":
        """Return the edit with pairs that follow it."""
        return attrs.evolve(self, follows=tuple(dict.fromkeys(pairs)))

    def needing(self, more: Iterable[Import]) -> "ImportEdit":
        """Return the edit with more imports that its code needs."""
        return attrs.evolve(self, added=tuple(dict.fromkeys((*self.added, *more))))

    def seen_from(self, path: str, other: str) -> "ImportEdit":
        """Return the edit of the file `path` for the file `other`."""

        def moved(some: Iterable[Import]) -> tuple[Import, ...]:
            return tuple(one.seen_from(path, other) for one in some)

        replaced = tuple((one.seen_from(path, other), new.seen_from(path, other)) for one, new in self.replaced)
        return ImportEdit(moved(self.added), moved(self.removed), replaced, self.follows)

    def joined(self, other: "ImportEdit") -> "ImportEdit":
        """Return the edits of both."""
        return ImportEdit(
            tuple(dict.fromkeys((*self.added, *other.added))),
            tuple(dict.fromkeys((*self.removed, *other.removed))),
            tuple(dict.fromkeys((*self.replaced, *other.replaced))),
        )

    def without(self, pairs: Sequence[tuple[Import, Import]]) -> "ImportEdit":
        """Return the edit without some pairs of `replaced`."""
        gone = {one for pair in pairs for one in pair}
        return ImportEdit(
            tuple(one for one in self.added if one not in gone),
            tuple(one for one in self.removed if one not in gone),
            tuple(pair for pair in self.replaced if pair not in pairs),
        )
