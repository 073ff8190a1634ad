"""What is left of the code that an edit takes away: places that look alike, where nothing else was said of any."""

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from engine.reading import read_text
from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.bindings import BROUGHT
from lsp_server.refactor.code.grammar import SELF, is_arguments, is_definition, is_import, is_name
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import parse
from lsp_server.refactor.edit.file_edit import counted
from lsp_server.refactor.edit.rewrite import fits_language, may_fit
from lsp_server.refactor.rules.pattern import Item, Leaf, items, literals, texts_of
from lsp_server.refactor.rules.rule import Rule, RuleSet
from lsp_server.refactor.rules.task import Rename
from lsp_server.refactor.search import Target

_LEAST_OF_ARGUMENT = 2
_LEAST = 3
"""The letters of a word that says something."""
_PLAIN = SELF | {"true", "false", "null", "none", "undefined", "nil"}
_MACROS = frozenset(
    {"assert", "assert_eq", "assert_ne", "cfg", "compile_error", "concat", "dbg", "debug_assert", "debug_assert_eq"}
    | {"env", "eprint", "eprintln", "format_args", "include", "include_bytes", "include_str", "line", "matches"}
    | {"print", "stringify", "thread_local", "todo", "unimplemented", "unreachable", "vec", "write", "writeln"}
)
"""Macros of Rust's standard library beside those in BROUGHT."""
_MOST_WORDS = 4
_DECLARES = ("declaration", "definition", "declarator", "assignment", "specifier")


def taken_away(rule: Rule) -> tuple[Leaf, ...]:
    """Return the tokens in a row that an edit takes away and that say most: `else if`, `virtual`; empty if none do."""
    old, new = list(items(rule.pattern)), list(items(rule.template))
    matcher = SequenceMatcher(None, list(map(_key, old)), list(map(_key, new)), autojunk=False)
    runs: list[tuple[Leaf, ...]] = []
    for tag, low, high, _, _ in matcher.get_opcodes():
        if tag != "equal":
            runs += _runs(old[low:high])
    best = max(runs, key=_says, default=())
    if _is_same_call(rule) and sum(map(_is_word, best)) < _LEAST_OF_ARGUMENT:
        return ()  # an argument of one word alone says nothing
    return best if _says(best) >= _LEAST else ()


def alike(rules: Sequence[RuleSet], texts: Iterable[tuple[str, str]], seconds: float) -> Iterator[str]:
    """Yield a line for each rule whose old code is still in some of the texts, which have all edits.

    A text comes with its path. The definitions of a name that the edit only uses do not count, nor do imports, if the
    rule is not of one. After `seconds` no other text is read.
    """
    end = time.monotonic() + seconds
    modules = [rule for one in rules for rule in one.rules if _is_macro_of_module(rule)]
    macros: Counter[str] = Counter()
    wanted = [(rule, leaves) for one in rules for rule in _searched(one) if (leaves := taken_away(rule))]
    counts = [0] * len(wanted)
    for path, text in texts if wanted or modules else ():
        if time.monotonic() > end:
            break
        language = language_for("", path)
        here = [
            (number, rule, leaves)
            for number, (rule, leaves) in enumerate(wanted)
            if fits_language(rule, language) and all(leaf.text in text for leaf in leaves)
        ]
        of_macros = any(fits_language(rule, language) for rule in modules)
        if not (here or of_macros) or (syntax := parse(text.encode("utf-8", "surrogatepass"), language)) is None:
            continue
        macros.update(_macros(syntax.root) if of_macros else ())
        for number, rule, leaves in here:
            code = _code(syntax.root, has_imports=rule.task == "statement")
            counts[number] += _count(leaves, code, _is_declaration(rule), _is_same_call(rule))
    for count, (_, leaves) in zip(counts, wanted, strict=True):
        if count:
            words = "".join(leaf.gap + leaf.text for leaf in leaves).strip()
            places = "1 more place has" if count == 1 else f"{count:,} more places have"
            yield f"{places} `{words}` in other code than the example: give one of them as an example too"

    if macros:
        named = ", ".join(f"`{name}!`" for name in sorted(macros))
        count = macros.total()
        places = "1 more place calls" if count == 1 else f"{count:,} more places call"
        yield f"{places} {named} without a module: give one of them as an example too"


def _is_macro_of_module(rule: Rule) -> bool:
    """Return whether an edit only says which module a macro is of: `debug!(x)` becomes `log::debug!(x)`."""
    sides = [texts_of(side) for side in (rule.pattern, rule.template)]
    is_macro = getattr(rule.pattern[0] if rule.pattern else None, "kind", "") == "macro_invocation"
    return is_macro and sides[1][-len(sides[0]) :] == sides[0] and "::" in sides[1][: -len(sides[0])]


def _macros(root: Node) -> Iterator[str]:
    """Yield the names of the macros that are called without a module, and that neither Rust nor the file brings."""
    nodes = list(root.walk())
    own = {name.text for one in nodes if one.kind == "macro_definition" and (name := one.child("name")) is not None}
    for one in nodes:
        name = one.child("macro") if one.kind == "macro_invocation" else None
        if name is not None and not name.children and name.text not in own | BROUGHT | _MACROS:
            yield name.text


def _searched(rules: RuleSet) -> list[Rule]:
    """Return the rules whose old code is looked for: another local of a name that a local had is none of them."""
    return [
        rule
        for rule in rules.rules
        if not (isinstance(rule.task, Rename) and (rule.task.sort == "local" or rule.task.gone is not None))
    ]


def _callee(side: Sequence[Item]) -> list[str]:
    """Return the names before the first bracket."""
    before = itertools.takewhile(lambda item: not (isinstance(item, Leaf) and item.text == "("), side)
    return [item.text for item in before if isinstance(item, Leaf) and item.named]


def _is_same_call(rule: Rule) -> bool:
    """Return whether what is called stays: only its arguments are others."""
    callee = _callee(list(items(rule.pattern)))
    return bool(callee) and callee == _callee(list(items(rule.template)))


def _key(item: Item) -> str:
    return item.text if isinstance(item, Leaf) else f"${getattr(item, 'name', '')}"


def _runs(side: Sequence[Item]) -> Iterator[tuple[Leaf, ...]]:
    """Yield the runs of tokens between variables, without signs at their ends."""
    run: list[Leaf] = []
    for item in (*side, None):
        if isinstance(item, Leaf):
            run.append(item)
            continue
        words = [index for index, leaf in enumerate(run) if any(map(str.isalnum, leaf.text))]
        if words:
            yield tuple(run[words[0] : words[-1] + 1])
        run = []


def _says(run: Sequence[Leaf]) -> int:
    return max((len(leaf.text) for leaf in run if _is_word(leaf)), default=0)


def _is_word(leaf: Leaf) -> bool:
    return any(map(str.isalpha, leaf.text)) and leaf.text.lower() not in _PLAIN


def _is_declaration(rule: Rule) -> bool:
    """Return whether the edit is of a declaration, so that other declarations look alike."""
    kind = getattr(rule.pattern[0], "kind", "") if rule.pattern else ""
    return any(word in kind for word in _DECLARES)


def _count(wanted: Sequence[Leaf], code: Iterator[Node], has_declarations: bool, of_arguments: bool) -> int:
    leaves = [leaf for leaf in code if has_declarations or not _is_defined(leaf)]
    first = wanted[0]
    at = [index for index, leaf in enumerate(leaves) if leaf.text == first.text and leaf.kind == first.kind]
    runs = [run for index in at if _fits(wanted, run := leaves[index : index + len(wanted)])]
    return sum(_is_argument(run) for run in runs) if of_arguments else len(runs)


def _is_argument(run: Sequence[Node]) -> bool:
    """Return whether tokens are an argument of a call, and all of it."""
    top: Node | None = run[0]
    while top is not None and top.end < run[-1].end:
        top = top.parent
    while top is not None and top.parent is not None and len(top.parent.children) == 1:
        top = top.parent
    is_whole = top is not None and (top.start, top.end) == (run[0].start, run[-1].end)
    return is_whole and top is not None and top.parent is not None and is_arguments(top.parent)


def _fits(wanted: Sequence[Leaf], leaves: Sequence[Node]) -> bool:
    return [leaf.text for leaf in wanted] == [leaf.text for leaf in leaves]


def _code(root: Node, has_imports: bool) -> Iterator[Node]:
    """Yield the tokens of a text, with its imports or without."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not node.children:
            yield node
        elif has_imports or not is_import(node):
            waiting.extend(reversed(node.children))


def _is_defined(leaf: Node) -> bool:
    return is_name(leaf) and leaf.field == "name" and leaf.parent is not None and is_definition(leaf.parent)


def why_nothing(rules: Sequence[RuleSet], targets: Sequence[Target]) -> Iterator[str]:
    """Yield a line for each language: what was searched there, and why nothing was found."""
    for one in rules:
        files = [
            target for target in targets if any(fits_language(rule, language_for("", target.path)) for rule in one.all)
        ]
        texts = [text for target in files if (text := read_text(target.folder, target.path)) is not None]
        count = sum(may_fit(one.all, text.encode("utf-8", "surrogatepass")) for text in texts)
        if not files:
            yield f"{one.language}: no file of this language was searched"
        elif not count:
            words = dict.fromkeys(_lacking(rule, texts) for rule in one.all)
            yield f"{one.language}: none of {counted(len(files), 'file')} has {' or '.join(filter(None, words))}"
        else:
            fits = "has these words, but not this code" if count == 1 else "have these words, but not this code"
            yield f"{one.language}: {count} of {counted(len(files), 'file')} {fits}"


def _lacking(rule: Rule, texts: Sequence[str]) -> str:
    """Return the first word of a rule that no text has, or those that none has together; "" if it has no words."""
    parts = literals(rule.pattern)
    words = [part for part in parts if part.isidentifier()] or parts[:1]
    lacking = [word for word in words if not any(word in text for text in texts)][:1]
    return " with ".join(map(repr, lacking or words[:_MOST_WORDS]))
