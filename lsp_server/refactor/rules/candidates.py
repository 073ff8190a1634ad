"""Whether a parsed file may have a place, found without a look at all of its nodes; and what looks like a place."""

import functools
import itertools
import re
from collections.abc import Collection, Iterator, Sequence

import attrs
import tree_sitter

from lsp_server.languages.language import Language
from lsp_server.refactor.code.grammar import (
    BINDERS,
    SELF,
    is_access,
    is_arguments,
    is_binding_kind,
    is_call,
)
from lsp_server.refactor.code.node import SAME_KIND, node_of
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.rules.matching import Match, match_at, matches
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest, items, names_in, texts_of, weight
from lsp_server.refactor.rules.rule import Rule
from lsp_server.refactor.rules.task import Rename, Spread

_NOT_BOUND = "its value is not bound as in the example"
_TOKEN = re.compile(r"\w+|[^\w\s]")


def patterns_of(rule: Rule) -> Iterator[Sequence[Pattern]]:
    """Yield the pattern of a rule, and those of what looks like its places."""
    yield rule.pattern
    words = re.findall(r"\w+", rule.task.module) if isinstance(rule.task, Rename) and rule.task.qualifier else []
    if words:
        yield (Leaf("", words[-1], named=True),)  # the module's other names follow too
    for near in near_patterns(rule):
        yield (near.pattern,)


def may_have_places(rule: Rule, tree: tree_sitter.Tree, data: bytes, language: Language) -> bool:
    """Return whether a file may have a place of a rule, or something that looks like one."""
    words = other_syntax(rule)
    if isinstance(rule.task, Rename) or traits_of(language.id).macros or (words is not None and words.search(data)):
        return True
    return any(may_have_place(pattern, tree, data, language) for pattern in patterns_of(rule))


def may_have_place(pattern: Sequence[Pattern], tree: tree_sitter.Tree, data: bytes, language: Language) -> bool:
    """Return whether the first node of a pattern fits anywhere in a file."""
    first = pattern[0]
    if not isinstance(first, Branch | Leaf):
        return True
    query = _query(tree.language, first.kind)
    if query is None:
        return False
    leaf = next(items((first,)))
    start = leaf.text.encode() if isinstance(leaf, Leaf) and leaf.text.isidentifier() else b""
    needed = [item.text.encode() for item in items((first,)) if isinstance(item, Leaf) and item.text.isidentifier()]
    for raw in tree_sitter.QueryCursor(query).captures(tree.root_node).get("node", ()):
        if not data.startswith(start, raw.start_byte):
            continue
        text = data[raw.start_byte : raw.end_byte]
        if all(part in text for part in needed) and match_at(first, node_of(raw, data, language)) is not None:
            return True
    return False


@functools.cache
def _query(language: tree_sitter.Language, kind: str) -> tree_sitter.Query | None:
    """Return the query of all nodes of a kind; None if the grammar has no such nodes."""
    kinds = [kind, *(other for other, same in SAME_KIND.items() if same == kind)]
    known = [f"({one})" for one in kinds if language.id_for_node_kind(one, True)]
    known += [f'"{one}"' for one in kinds if one.isalpha() and language.id_for_node_kind(one, False)]
    return tree_sitter.Query(language, " ".join(f"{one} @node" for one in known)) if known else None


@attrs.frozen
class Near:
    """A wider pattern than a rule's: what fits only this one looks like a place. `reason` says what is other."""

    pattern: Pattern
    reason: str


def near_patterns(rule: Rule) -> tuple[Near, ...]:
    """Return wider patterns of a rule, the narrowest first."""
    if len(rule.pattern) != 1 or not isinstance(rule.pattern[0], Branch):
        return ()
    top = rule.pattern[0]
    found: list[Near] = []
    inner = top.children[0] if len(top.children) == 1 else None
    if top.kind == "expression_statement" and isinstance(inner, Branch) and rule.edges.level < 0:
        top = inner
        found.append(Near(top, "it is a part of an expression here, and the edit is a statement"))
    arguments = _with_any_arguments(top, itertools.count())
    if arguments != top:
        found.append(Near(arguments, "its arguments are others than in the example"))
    receivers = _with_any_receiver(arguments, _values(rule), rule)
    if receivers != arguments:
        others = "its receiver is another one" if arguments == top else "its receiver or its arguments are others"
        found.append(Near(receivers, f"{others} than in the example"))
    value = _spread_pattern(rule)
    if value is not None:
        found.append(
            Near(_with_any_receiver(_with_any_arguments(value, itertools.count()), _values(rule), rule), _NOT_BOUND)
        )
    members = _with_any_member(top, rule)
    if members == top:
        members = _with_any_method(top, rule)
    if members != top:
        found.append(Near(members, "its member is another one than in the example"))
    return tuple(near for near in found if weight((near.pattern,)) >= 1 + (near.pattern is not members))


def near_places(rule: Rule, syntax: Syntax) -> Iterator[tuple[Match, str]]:
    """Yield what looks like a place of a rule, each with what is other."""
    seen: set[tuple[int, int]] = set()
    for near in near_patterns(rule):
        for match in matches((near.pattern,), syntax):
            if (match.start, match.end) not in seen:
                seen.add((match.start, match.end))
                yield match, near.reason


def in_macros(rule: Rule, syntax: Syntax) -> Iterator[tuple[int, int]]:
    """Yield the bytes of what looks like a place inside of a macro, whose tokens have no syntax."""
    wanted = _longest_run(rule.pattern)
    if sum(text.isidentifier() for text in wanted) == 0 or len(wanted) < 2:
        return
    waiting = [syntax.root]
    while waiting:
        node = waiting.pop()
        if node.kind == "preproc_arg":
            tokens, parts = _TOKEN.findall(node.text), _TOKEN.findall(" ".join(wanted))
            if any(tokens[index : index + len(parts)] == parts for index in range(len(tokens))):
                yield node.start, node.end
        if node.kind != "token_tree":
            waiting.extend(node.children)
            continue
        leaves = list(node.leaves())
        for index in range(len(leaves) - len(wanted) + 1):
            part = leaves[index : index + len(wanted)]
            if all(leaf.text == text for leaf, text in zip(part, wanted, strict=True)):
                yield part[0].start, part[-1].end


@functools.cache
def other_syntax(rule: Rule) -> re.Pattern[bytes] | None:
    """Return what finds a rule's code in text, whatever its syntax is there; None for a pattern that has variables, or
    fewer than two names."""
    texts = texts_of(rule.pattern)
    is_constant = len(rule.pattern) == 1 and len(texts) == sum(1 for _ in items(rule.pattern))
    if not is_constant or sum(map(str.isidentifier, texts)) < 2:
        return None
    words = r"\s*".join(map(re.escape, texts))
    return re.compile(rf"(?<![\w$])(?<!\w\.)(?<!\w::)(?<!\w->)(?<!\w\\)(?<!\?\.){words}(?!\w)".encode())


def _longest_run(pattern: Sequence[Pattern]) -> list[str]:
    """Return the longest run of tokens of a pattern that is the same in each place."""
    runs: list[list[str]] = [[]]
    for item in items(pattern):
        if isinstance(item, Leaf):
            runs[-1].append(item.text)
        else:
            runs.append([])
    return max(runs, key=lambda run: (sum(text.isidentifier() for text in run), len(run)))


def _with_any_arguments(pattern: Branch, numbers: Iterator[int]) -> Branch:
    """Return a pattern whose calls may have any arguments, where the example says nothing of which ones."""
    children: list[Pattern] = []
    parts = [child for child in pattern.children if not _takes_arguments(pattern, child)]
    names = set(texts_of(parts))
    for child in pattern.children:
        if not isinstance(child, Branch):
            children.append(child)
        elif _takes_arguments(pattern, child) and not _says_arguments(child, names):
            brackets = [one for one in child.children if isinstance(one, Leaf) and not one.named]
            anything = Rest(f"near {next(numbers)}")
            children.append(attrs.evolve(child, children=(*brackets[:1], anything, *brackets[1:])))
        else:
            children.append(_with_any_arguments(child, numbers))
    return attrs.evolve(pattern, children=tuple(children))


def _takes_arguments(owner: Branch, child: Pattern) -> bool:
    if not isinstance(child, Branch):
        return False
    if owner.kind == "annotation":
        return child.kind.endswith("argument_list")
    return is_arguments(child) and is_call(owner)


def _says_arguments(arguments: Branch, callee: set[str]) -> bool:
    """Return whether a list of arguments has some that must be there, or takes any already.

    The call itself, which is an argument of itself in the example, need not be there.
    """
    inside = [one for one in arguments.children if not (isinstance(one, Leaf) and not one.named)]
    if len(inside) == 1 and isinstance(inside[0], Rest) and inside[0].limit is None:
        return True
    names = {one.text for one in items(inside) if isinstance(one, Leaf) and (one.named or one.text.isalpha())}
    return not names <= callee


def _values(rule: Rule) -> Collection[str]:
    """Return the constant receivers of a pattern that are no modules or classes, as far as their names say."""
    names = {name.text for name in rule.names if name.binding != "import" and not name.text[:1].isupper()}
    return names | SELF


def _with_any_receiver(pattern: Branch, values: Collection[str], rule: Rule) -> Branch:
    """Return a pattern whose method may be of any value, if the edit gives it another name."""
    stays = {item.text for item in items(rule.template) if isinstance(item, Leaf) and not isinstance(rule.task, Spread)}
    children = list(pattern.children)
    for index, child in enumerate(children):
        if isinstance(child, Branch):
            children[index] = _with_any_receiver(child, values, rule)
    first = children[0]
    members = [item.text for item in items(children[1:]) if isinstance(item, Leaf) and item.named]
    is_method = is_access(pattern) or is_call(pattern)
    is_value = isinstance(first, Leaf) and first.text in values
    is_value = is_value or (isinstance(first, Branch) and first.kind == "variable_name")  # PHP's $x has two tokens
    if is_method and is_value and members and members[0] not in stays:
        children[0] = Hole("near receiver", never_imported=True)
    return attrs.evolve(pattern, children=tuple(children))


def _with_any_member(pattern: Branch, rule: Rule) -> Branch:
    """Return a pattern of a member access that may have any member, if the edit keeps it."""
    last = pattern.children[-1]
    stays = names_in(rule.template)
    if not is_access(pattern) or not isinstance(last, Leaf) or last.text not in stays:
        return pattern
    return _with_hole(pattern)


def _with_any_method(call: Branch, rule: Rule) -> Branch:
    """Return a pattern of a call that may be of any method of one thing, if only an argument that says much changes."""
    template = rule.template[0] if len(rule.template) == 1 else None
    is_kept = isinstance(template, Branch) and template.children[:-1] == call.children[:-1] != ()
    said = [item for item in items(call.children[-1:]) if isinstance(item, Leaf) and any(map(str.isalnum, item.text))]
    first = next(items((call,)))
    is_thing = isinstance(first, Leaf) and any(name.text == first.text for name in rule.names)
    if not (is_call(call) and is_kept and said and is_thing):
        return call
    inner = call.children[0]
    if isinstance(inner, Branch) and is_access(inner) and len(inner.children) > 1:
        callee: tuple[Pattern, ...] = (_with_hole(inner), *call.children[1:-1])
    else:
        callee = _with_hole(attrs.evolve(call, children=call.children[:-1])).children
    return attrs.evolve(call, children=(*callee, call.children[-1]))


def _with_hole(access: Branch) -> Branch:
    """Return a member access with any member."""
    last = access.children[-1]
    if not isinstance(last, Leaf) or len(access.children) < 2:
        return access
    return attrs.evolve(access, children=(*access.children[:-1], Hole("near member", frozenset({last.kind}))))


def _spread_pattern(rule: Rule) -> Branch | None:
    """Return the value that a rule takes more out of, as a pattern; None if it is no such rule, or a plain value."""
    waiting: list[Pattern] = list(rule.pattern) if isinstance(rule.task, Spread) else []
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Branch):
            continue
        binder = next((at for at, part in enumerate(one.children) if _is_binder(part)), 0)
        if binder and is_binding_kind(one.kind):
            is_first = one.kind == "as_pattern"
            value = next((part for part in one.children[0 if is_first else binder :] if isinstance(part, Branch)), None)
            while value is not None and value.kind == "expression_list" and len(value.children) == 1:
                value = value.children[0] if isinstance(value.children[0], Branch) else None
            return value
        waiting.extend(one.children)
    return None


def _is_binder(pattern: Pattern) -> bool:
    return isinstance(pattern, Leaf) and not pattern.named and pattern.text in BINDERS
