"""What an import binds, and how an edit changes imports."""

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
