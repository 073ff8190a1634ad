"""Rules: what an edit of trees is, what it asks of a place, and the imports that go along with it."""

from collections.abc import Collection, Sequence

import attrs

from lsp_server.refactor.code.imports import Import, ImportEdit
from lsp_server.refactor.rules.pattern import Branch, Leaf, Pattern, texts_of
from lsp_server.refactor.rules.task import Task


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


@attrs.frozen
class Values:
    """What the variables of a pattern were in the examples.

    `seen` are those that vary, and `receivers` what the receivers among them are called, each with the types that the
    file writes for them. `names` are those of the widest form that are a name alone.
    """

    seen: tuple[Seen, ...] = ()
    receivers: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()


@attrs.frozen
class NewNames:
    """The names that only the template has, and the imports that go along with them.

    `known` are those that the file of the example binds, and a place must know them too; `unbound` those that nothing
    in that file binds; `binds` those that the edit itself binds. `assumed` are those that it reads and nothing binds,
    see doubts.py, and `beside` those that the edit of another rule around it binds. `needed` are imports that the
    example's file had. `follows` pairs the imports by which other packages know the classes of the example's package
    that the edit takes away and brings.
    """

    known: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    needed: tuple[Import, ...] = ()
    follows: tuple[tuple[Import, Import], ...] = ()

    def joined(self, other: "NewNames") -> "NewNames":
        """Return those of the first of two examples, without what the file of the other one makes otherwise."""
        known = tuple(name for name in self.known if name in other.known)
        return attrs.evolve(self, known=known, unbound=tuple(name for name in self.unbound if name in other.unbound))

    def with_bound(self, others: Collection[str]) -> "NewNames":
        """Return them where other rules of the examples bind the names `others`: those are beside, and nothing else."""
        known, unbound = (tuple(name for name in mine if name not in others) for mine in (self.known, self.unbound))
        beside = tuple(name for name in (*self.known, *self.unbound) if name in others)
        return attrs.evolve(self, known=known, unbound=unbound, beside=beside)


@attrs.frozen
class Edges:
    """How the two sides of an edit meet the code around them.

    `indent` is the white space before the example's first line after the edit, and `unit` one step of its indentation.
    `tail` and `template_tail` are the ends of the nodes that no token has, such as ";". `level` and `pattern_level` say
    how tightly the two sides bind. `ending` is the end of the statement around the example, if the edit changed that:
    ";" or "".
    """

    indent: str = ""
    unit: str = "    "
    tail: str = ""
    template_tail: str = ""
    level: int = -1
    pattern_level: int = -1
    ending: str | None = None

    def joined(self, other: "Edges") -> "Edges":
        """Return the edges of the first of two examples, with the ending that both have."""
        return attrs.evolve(self, ending=self.ending if self.ending == other.ending else None)


@attrs.frozen
class Allowed:
    """What an example does although it may change the meaning of code: a place may do so too.

    `jumps` are the words of its code that leave something else after the edit, see jumps.py, and `hides` the globals
    that it uses, and that its own names hide after the edit. `drops` says that it uses a parameter that it drops, or
    reads a variable whose value it drops, and `followers` are the patterns of other rules of the examples that edit the
    uses of names which it drops, see drops.py.
    """

    jumps: frozenset[str] = frozenset()
    hides: frozenset[str] = frozenset()
    drops: bool = False
    followers: tuple[Pattern, ...] = ()

    def joined(self, other: "Allowed") -> "Allowed":
        """Return what one of two examples does; what is hidden is that of the first."""
        return attrs.evolve(self, jumps=self.jumps | other.jumps, drops=self.drops or other.drops)


@attrs.frozen
class Surroundings:
    """What is around an example, and is asked of a place too.

    `needs` says what the edit asks of the function, see surroundings.py. `uses` says how the example uses what changed;
    it is empty where that does not matter. `position` says where the code is (None: anywhere), see positions.py, and
    `in_annotation` that Python may not evaluate it. `named` are the words of names there that a text of the template
    has, see messages.py. `home` is the folder that two examples share, if they made a rule so wide that nothing else
    says what is meant; None if it is sure everywhere.
    """

    needs: tuple[Need, ...] = ()
    uses: frozenset[str] = frozenset()
    position: str | None = None
    in_annotation: bool = False
    named: frozenset[str] = frozenset()
    home: str | None = None

    def joined(self, other: "Surroundings") -> "Surroundings":
        """Return what is around the first of two examples of one pattern, used and placed as both are."""
        uses = self.uses | other.uses if self.uses and other.uses else frozenset[str]()
        return attrs.evolve(self, uses=uses, position=self.position if self.position == other.position else None)

    def widened(self, other: "Surroundings", home: str | None) -> "Surroundings":
        """Return what is around two examples whose patterns differ. Where their functions do, any will do."""
        others = {need.word: need for need in other.needs}
        both = [(need, others[need.word]) for need in self.needs if need.word in others]
        needs = tuple(one if one == each else Need(one.word, None, one.values) for one, each in both)
        in_annotation = self.in_annotation and other.in_annotation
        named = self.named & other.named
        return attrs.evolve(self.joined(other), needs=needs, in_annotation=in_annotation, named=named, home=home)


@attrs.frozen
class Owner:
    """The type around an example, by its name, and what the edit takes from it; see owners.py.

    `members` are those that the edit begins to use. `trait` is that of a method of Rust, or the bases of one that
    overrides and goes (None: any). `spaces` are the namespaces and types around the example.
    """

    name: str = ""
    members: tuple[str, ...] = ()
    trait: str | None = None
    spaces: frozenset[str] = frozenset()

    def joined(self, other: "Owner") -> "Owner":
        """Return what two examples of one edit have in common."""
        members = tuple(name for name in self.members if name in other.members)
        trait = self.trait if self.trait == other.trait else None
        return Owner(self.name, members, trait, self.spaces | other.spaces)


@attrs.frozen
class Rule:
    """An edit of trees: each place that fits `pattern` becomes `template`.

    Both are runs of sibling nodes, nearly always of one; those of a Rename are the two names, and its places are the
    uses of the declaration. `names` are the free ones of the pattern. `repeats` says that the pattern fits the template
    again, so that places which have the edit already must be found. `is_syntax` says that no name tells what is meant,
    and `wide` why all places are doubtful, see wide.py. `path` is the example's.
    """

    language: str
    pattern: tuple[Pattern, ...]
    template: tuple[Pattern, ...]
    task: Task = ""
    names: tuple[Name, ...] = ()
    new_names: NewNames = NewNames()
    edges: Edges = Edges()
    repeats: bool = False
    around: Surroundings = Surroundings()
    owner: Owner = Owner()
    values: Values = Values()
    allowed: Allowed = Allowed()
    is_syntax: bool = False
    wide: str = ""
    path: str = ""

    @property
    def words(self) -> tuple[str, str]:
        """The old and the new name, if it renames a declaration."""
        old, new = self.pattern[0], self.template[0]
        assert isinstance(old, Leaf)
        assert isinstance(new, Leaf)
        return old.text, new.text

    @property
    def branches(self) -> list[Branch]:
        """The sides that are one node with others inside."""
        return [side[0] for side in (self.pattern, self.template) if len(side) == 1 and isinstance(side[0], Branch)]


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


def changed_words(rule: Rule) -> tuple[set[str], set[str], set[str]]:
    """Return the tokens that an edit takes away, those that it brings, and those that stay."""
    old, new = (set(texts_of(side)) for side in (rule.pattern, rule.template))
    return old - new, new - old, old & new


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
