"""Rules: what an edit of trees is, what it asks of a place, and the imports that go along with it."""

import re
from collections.abc import Sequence
from typing import Literal

import attrs

from lsp_server.refactor.code.imports import Import, ImportEdit
from lsp_server.refactor.rules.pattern import Branch, Leaf, Pattern


@attrs.frozen
class Name:
    """A free name of a pattern, and how the example bound it, see Binding; "variable" for a global one with methods.

    `source` is what the import names, "" if unknown.
    """

    text: str
    binding: str
    source: str = ""


@attrs.frozen
class Need:
    """What an edit asks of the function around a place. `word` is "await", "?", "return", "yield", "break", "continue",
    or the name of the object that a method is of.

    `results` are the result types of the example's function as code; None if there is no such function, or it does not
    say them. `values` is the code of the values that the edit returns.
    """

    word: str
    results: tuple[str, ...] | None = None
    values: tuple[str, ...] = ()


@attrs.frozen
class Seen:
    """What a variable was in the examples: the sorts of each of its values, and the fewest values without a name.

    `pairs` are the keys of an object that it was in all of them, each with the code of its value.
    """

    name: str
    sorts: tuple[frozenset[str], ...]
    fewest: int
    pairs: tuple[tuple[str, str], ...] = ()


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
    example renamed two declarations alike, `is_key` that it renamed a key
    of a value. `qualifier` is what an imported name got before it, if that is all. `gone` is a name that went from an
    import of several.
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
class Rule:
    """An edit of trees: each place that fits `pattern` becomes `template`.

    Both are runs of sibling nodes, nearly always of one. `indent` is the white space before the example's first line
    after the edit, and `unit` one step of its indentation. `tail` and `template_tail` are the ends of the nodes that
    no token has, such as ";". `level` and `pattern_level` say how tightly the two sides bind. `repeats` says that the
    pattern fits the template again, so that places which have the edit already must be found. Of the names that only
    the edit has, `brings` are those that the file of the example binds, and a place must know them too; `unbound`
    those that nothing in that file binds; `binds` those that the edit itself binds. `needs` says what the edit asks
    of the function around a place, see surroundings.py. `uses` says how the example uses what changed, and so must a
    place; it is empty where that does not matter. `spreads` says that it only takes more out of a value, and `unread`
    are those of `binds` that it does not use itself. `drops_used` says that the example uses a parameter that it
    drops, and `followers` are the patterns of other rules that edit the uses of names which it drops, as
    `bound_beside` are names that it uses, and that the edit of another one around it binds. `jumps` are the words of
    the example's code that leave something else after the edit, see jumps.py.
    `hides` are the globals that it uses, and that its own names hide after the edit.
    `is_syntax` says that no name tells what is meant, and `receivers` what the varying receivers of the examples are
    called and `position` where the code is (None: anywhere), `seen` what its variables are, and `assumed` the names
    that it reads and nothing binds, see doubts.py. `in_annotation` says that Python may not evaluate the example.
    `ending` is the end of the statement around it, if the edit changed that: ";" or "".
    `wide` says why all places are doubtful, see wide.py. `path` is the example's, and `values` are the names that the
    widest form has for its variables there. `home` is the folder that two examples share, if they made a rule so wide
    that nothing else says what is meant; None if it is sure everywhere. `imports` says what a rule of imports does, ""
    for others. `rename` is the declaration whose name it changes, and then the places are its uses. `inserts` are the
    statements that it adds, if it only does that. `follows` pairs the imports by which other packages know the classes
    of the example's package that it takes away and brings, and `needed` are imports that the example's file had, and
    that only the template uses. `members` are those that it begins to use of the type around the example, which is the
    `owner`, and `trait` is that of a method of Rust, or the bases of one that overrides and goes (None: any); `spaces`
    are the namespaces and types around it, see owners.py.
    """

    language: str
    pattern: tuple[Pattern, ...]
    template: tuple[Pattern, ...]
    names: tuple[Name, ...] = ()
    indent: str = ""
    unit: str = "    "
    tail: str = ""
    template_tail: str = ""
    level: int = -1
    pattern_level: int = -1
    repeats: bool = False
    brings: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    uses: frozenset[str] = frozenset()
    spreads: bool = False
    unread: tuple[str, ...] = ()
    drops_used: bool = False
    followers: tuple[Pattern, ...] = ()
    bound_beside: tuple[str, ...] = ()
    jumps: frozenset[str] = frozenset()
    hides: frozenset[str] = frozenset()
    is_syntax: bool = False
    receivers: frozenset[str] = frozenset()
    position: str | None = None
    seen: tuple[Seen, ...] = ()
    assumed: tuple[str, ...] = ()
    in_annotation: bool = False
    ending: str | None = None
    wide: str = ""
    path: str = ""
    values: tuple[str, ...] = ()
    home: str | None = None
    imports: ImportSort = ""
    rename: Rename | None = None
    inserts: Inserts | None = None
    follows: tuple[tuple[Import, Import], ...] = ()
    needed: tuple[Import, ...] = ()
    owner: str = ""
    members: tuple[str, ...] = ()
    trait: str | None = None
    spaces: frozenset[str] = frozenset()

    @property
    def words(self) -> tuple[str, str]:
        """The old and the new name, if it renames a declaration."""
        old, new = self.pattern[0], self.template[0]
        assert isinstance(old, Leaf)
        assert isinstance(new, Leaf)
        return old.text, new.text


@attrs.frozen
class Own:
    """The parts of a text that an example edited: they have the edit, whatever they look like.

    `digest` names the text with "\\n" as its line ends; `spans` are UTF-8 bytes of it.
    """

    digest: str
    spans: tuple[tuple[int, int], ...]


@attrs.frozen
class RuleSet:
    """The rules of some examples in one language, the imports that go along with each, and the examples' places."""

    language: str
    rules: tuple[Rule, ...]
    imports: ImportEdit = attrs.field(factory=ImportEdit)
    reasons: tuple[str, ...] = attrs.field(default=())
    """Why some changes of the examples gave no rule."""
    own: tuple[Own, ...] = ()
    wide: tuple[Rule, ...] = ()
    """The widest forms of the rules, whose places are doubtful."""

    @property
    def all(self) -> tuple[Rule, ...]:
        """All rules, those that come before others first."""
        return (*self.rules, *self.wide)


def has_same_sides(one: Rule, other: Rule) -> bool:
    """Return whether two rules make the same edit of the same trees."""
    return _plain(one.pattern) == _plain(other.pattern) and _plain(one.template) == _plain(other.template)


def _plain(patterns: Sequence[Pattern]) -> list[object]:
    """Return patterns without the names of their variables."""
    plain: list[object] = []
    for one in patterns:
        if isinstance(one, Branch):
            plain.append((one.kind, tuple(_plain(one.children))))
        else:
            plain.append(one if isinstance(one, Leaf) else type(one).__name__)
    return plain
