"""Rules: a pattern of syntax trees, and a template that takes its place."""

from collections.abc import Iterator, Sequence
from typing import Literal

import attrs

from lsp_server.refactor.grammar import SELF

ENOUGH = 2
"""The least weight of a pattern. A lower one, such as `return $X`, fits nearly everywhere."""


@attrs.frozen
class Leaf:
    """A token that stays as it is. `gap` is the text before it in the example; it does not count for equality."""

    kind: str
    text: str
    named: bool
    gap: str = attrs.field(default="", eq=False)


@attrs.frozen
class Hole:
    """A variable for one node. Equal names are equal trees.

    `kinds` limits the kinds of nodes; empty means any expression. `never_imported` refuses a name that an import of
    the file binds: the receiver was a value in the example, and there it is a module. `level` says how tightly the
    place of the hole binds, see `level` in grammar.py; -1 where anything fits.
    """

    name: str
    kinds: frozenset[str] = frozenset()
    never_imported: bool = False
    prefix: str = ""
    gap: str = attrs.field(default="", eq=False)
    level: int = attrs.field(default=-1, eq=False)


@attrs.frozen
class Limit:
    """The keywords that a Rest of arguments may have, where the edit calls something else than the code before it."""

    names: frozenset[str]


@attrs.frozen
class Rest:
    """A variable for any number of elements of a list, or of statements. `limit` bounds arguments."""

    name: str
    gap: str = attrs.field(default="", eq=False)
    separator: str = attrs.field(default="", eq=False)
    limit: Limit | None = attrs.field(default=None, eq=False)


@attrs.frozen
class Tail(Rest):
    """A variable for all that is left of a node, whatever it is."""


@attrs.frozen
class Text:
    """A token of a template with holes in its text, such as the content of a string. Each part is a text or a Hole."""

    kind: str
    parts: "tuple[str | Hole, ...]"
    gap: str = attrs.field(default="", eq=False)


@attrs.frozen
class Branch:
    """A node with children. `field` is its role in its parent."""

    kind: str
    children: "tuple[Pattern, ...]"
    field: str = attrs.field(default="", eq=False)


Item = Leaf | Hole | Rest | Text
Pattern = Leaf | Hole | Rest | Text | Branch


def items(patterns: Sequence[Pattern]) -> Iterator[Item]:
    """Yield the leaves of patterns in their order."""
    for pattern in patterns:
        if isinstance(pattern, Branch):
            yield from items(pattern.children)
        else:
            yield pattern


def literals(patterns: Sequence[Pattern]) -> list[str]:
    """Return the texts that each place must have, the longest first."""
    texts = {item.text for item in items(patterns) if isinstance(item, Leaf) and item.text.strip("\"'`() ")}
    texts |= {item.prefix for item in items(patterns) if isinstance(item, Hole) and item.prefix}
    return sorted(texts, key=lambda text: (-len(text), text))


def as_pattern(template: Pattern) -> Pattern:
    """Return a template as a pattern, to find the places that have an edit already. Composed texts may be any."""
    if isinstance(template, Branch):
        return attrs.evolve(template, children=tuple(as_pattern(child) for child in template.children))
    if isinstance(template, Text):
        return Hole("text of " + "".join(str(part) for part in template.parts), frozenset({template.kind}))
    return template


def variables(patterns: Sequence[Pattern]) -> set[str]:
    """Return the names of the holes and rests of patterns."""
    names: set[str] = set()
    for item in items(patterns):
        if isinstance(item, Hole | Rest):
            names.add(item.name)
        elif isinstance(item, Text):
            names.update(part.name for part in item.parts if isinstance(part, Hole))
    return names


@attrs.frozen
class Name:
    """A free name of a pattern, and how the example bound it: "import", "local", "global" or "unknown".

    `source` is what the import names, "" if unknown.
    """

    text: str
    binding: str
    source: str = ""


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
class Need:
    """What an edit asks of the function around a place. `word` is "await", "?", "return", "yield", "break", "continue".

    `results` are the result types of the example's function as code; None if there is no such function, or it does not
    say them. `values` is the code of the values that the edit returns.
    """

    word: str
    results: tuple[str, ...] | None = None
    values: tuple[str, ...] = ()


@attrs.frozen
class Seen:
    """What a variable was in the examples: the sorts of each of its values, and the fewest values without a name."""

    name: str
    sorts: tuple[frozenset[str], ...]
    fewest: int


ImportSort = Literal["", "statement", "relative", "removal", "package"]
"""What a rule of imports alone does, see import_rules.py. In another folder "relative" means another module, and
"package" is the form of imports of packages."""


@attrs.frozen
class Rename:
    """The declaration whose name an example changed; see renames.py.

    `sort` is "local", "member", "global", "fixture", "import", or "file" for a global that no other file can use.
    `digest` names the example's text and `start` the byte of the new name in it, as in Own; `module` is what others
    import the file as. An import has its origin as the `owner`. A member has an `owner` and its `bases`, and `family`
    are the types of a workspace that have the same member, `rivals` those that declare another one, None if nobody
    looked. `clash` says why the new name is not free. `is_of_all` says that the example renamed two declarations alike.
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

    @property
    def is_of_file(self) -> bool:
        """Whether no other file can use the declaration."""
        return self.sort in ("local", "file")


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
    are those of `binds` that it does not use itself. `drops_used` says that the example uses a parameter that it drops.
    `hides` are the globals that it uses, and that its own names hide after the edit.
    `is_syntax` says that no name tells what is meant, and `receivers` what the varying receivers of the examples are
    called and `position` where the code is (None: anywhere), `seen` what its variables are, and `assumed` the names
    that it reads and nothing binds, see doubts.py. `in_annotation` says that Python may not evaluate the example.
    `ending` is the end of the statement around it, if the edit changed that: ";" or "".
    `wide` says why all places are doubtful, see wide.py. `path` is the example's, and `values` are the names that the
    widest form has for its variables there. `home` is the folder that two examples share, if they made a rule so wide
    that nothing else says what is meant; None if it is sure everywhere. `imports` says what a rule of imports does, ""
    for others. `rename` is the declaration whose name it changes, and then the places are its uses.
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

    @property
    def words(self) -> tuple[str, str]:
        """The old and the new name, if it renames a declaration."""
        old, new = self.pattern[0], self.template[0]
        assert isinstance(old, Leaf)
        assert isinstance(new, Leaf)
        return old.text, new.text


@attrs.frozen
class ImportEdit:
    """The imports that an example added and removed. `replaced` pairs those of which one took the other's line."""

    added: tuple[Import, ...] = ()
    removed: tuple[Import, ...] = ()
    replaced: tuple[tuple[Import, Import], ...] = ()

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
    imports: ImportEdit = ImportEdit()
    reasons: tuple[str, ...] = attrs.field(default=())
    """Why some changes of the examples gave no rule."""
    own: tuple[Own, ...] = ()
    wide: tuple[Rule, ...] = ()
    """The widest forms of the rules, whose places are doubtful."""

    @property
    def all(self) -> tuple[Rule, ...]:
        """All rules, those that come before others first."""
        return (*self.rules, *self.wide)


def weight(patterns: Sequence[Pattern]) -> int:
    """Return how much a pattern says: 2 for a name or literal, 1 for a keyword, operator or repeated variable."""
    total, seen = 0, set[str]()
    for item in items(patterns):
        if isinstance(item, Leaf) and item.text not in SELF:
            total += 2 if item.named else int(item.text.isalpha() or item.text[:1] in "=!<>+-*/%&|?@^~")
        elif isinstance(item, Hole):
            total += int(item.name in seen) + 2 * bool(item.prefix)
            seen.add(item.name)
    return total


def is_constant(patterns: Sequence[Pattern]) -> bool:
    """Return whether a pattern has no variables, and more than one token."""
    found = list(items(patterns))
    return len(found) > 1 and all(isinstance(item, Leaf) for item in found)


def _is_plain_type(pattern: Branch) -> bool:
    names = [item for item in items((pattern,)) if isinstance(item, Leaf) and item.named]
    return pattern.kind in ("type", "type_annotation") and len(names) <= 1


def has_anchor(patterns: Sequence[Pattern]) -> bool:
    """Return whether a pattern has a name, so that names which are defined in it may vary."""
    for pattern in patterns:
        if isinstance(pattern, Branch):
            # A type such as `str` is everywhere; a parameter whose default is None is not.
            is_default = "default" in pattern.kind and any(
                isinstance(one, Leaf) and one.named for one in pattern.children
            )
            if is_default or (not _is_plain_type(pattern) and has_anchor(pattern.children)):
                return True
        elif isinstance(pattern, Hole):
            if pattern.prefix:
                return True
        elif _is_telling(pattern):
            return True
    return False


def _is_telling(pattern: Pattern) -> bool:
    """Return whether a pattern is a token that says something: no None, True or self."""
    is_named = isinstance(pattern, Leaf) and pattern.named and pattern.text not in SELF
    return is_named and isinstance(pattern, Leaf) and pattern.kind not in ("none", "true", "false")


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
