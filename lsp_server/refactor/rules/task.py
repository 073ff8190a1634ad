"""What sort of edit a rule is: another name, added lines, imports alone, or more of a value."""

import re
from typing import Literal

import attrs

from lsp_server.refactor.code.imports import Import
from lsp_server.refactor.rules.pattern import Pattern

ImportSort = Literal["", "statement", "relative", "removal", "package"]
"""What a rule of imports alone does, see import_rules.py. In another folder "relative" means another module, and
"package" is the form of imports of packages."""


@attrs.frozen
class Rename:
    """The declaration whose name an example changed; see renames.py.

    `sort` is "local", "member", "global", "fixture", "import", "file" for a global that no other file can use, or
    "root" or "module", see import_roots.py. `digest` names the example's text and `start` the byte of the new name in
    it, as in Own; `module` is what others import the file as. An import has its origin as the `owner`, a global its
    package (in Rust its crate, "" if nobody looked), and a parameter what a call calls its function. A member has an
    `owner` and its `bases`, and `family` are the types of a workspace that have the same member, `rivals` those that
    declare another one, None if nobody looked. `clash` says why the new name is not free. `is_of_all` says that the
    example renamed two declarations alike, `is_key` that it renamed a key of a value. `qualifier` is what an imported
    name got before it, if that is all. `gone` is a name that went from an import of several.
    """

    sort: str
    digest: str
    start: int
    module: str = ""
    owner: str = ""
    bases: frozenset[str] = frozenset()
    is_function: bool = False
    family: frozenset[str] = frozenset()
    rivals: tuple[str, ...] | None = None
    clash: str = ""
    is_of_all: bool = False
    is_key: bool = False
    qualifier: str = ""
    gone: Import | None = None

    @property
    def qualifier_name(self) -> str:
        """The name that a file must know for the qualifier."""
        return re.split(r"\W", self.qualifier)[0]

    @property
    def is_found(self) -> bool:
        """Whether its uses are found by the import that they are of, and not by what else has the name."""
        return self.sort in ("import", "module") or self.gone is not None

    @property
    def is_of_file(self) -> bool:
        """Whether no other file can use the declaration."""
        return self.sort == "file" or (self.sort == "local" and not self.owner)


@attrs.frozen
class Inserts:
    """Statements that an edit adds on lines of their own: beside the one that its pattern fits, or in its body.

    They are added "before" that statement or "after" it, or "first" in the body of a function. `statements` are their
    template, and `tails` the end of each that no token has, such as ";": None is that of the statement beside them.
    `blanks` says whether an empty line is above each of them and below the last one, `is_below_comments` that they come
    between a statement and the comments above it, `is_last` that nothing follows them in the example's block.
    `variables` are the local names of the example that they use, and that the pattern lacks.
    """

    side: Literal["before", "after", "first"]
    statements: tuple[Pattern, ...]
    tails: tuple[str | None, ...]
    blanks: tuple[bool, ...]
    is_below_comments: bool = False
    is_last: bool = False
    variables: frozenset[str] = frozenset()


@attrs.frozen
class Spread:
    """That an edit only takes more out of a value: `x = f()` becomes `x, y = f()`.

    `unread` are the names that it binds and does not use itself.
    """

    unread: tuple[str, ...] = ()


Task = ImportSort | Rename | Inserts | Spread
"""What sort of edit it is: of imports alone, another name of a declaration, lines that are added, or a value of which
more is taken; "" for all others."""
