"""What is around a place: the function whose result an edit returns, the loop that it ends, where a value is used."""

import re
from collections.abc import Iterator, Sequence

from lsp_server.refactor.code.bindings import has_instance, is_scope
from lsp_server.refactor.code.grammar import (
    around,
    is_access,
    is_call,
    is_list,
    is_name,
    receiver_of,
)
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.rules.pattern import Branch, Hole, Pattern
from lsp_server.refactor.rules.rule import Need

_WORDS = {
    "await": ("await", "await_expression"),
    "?": ("try_expression",),
    "return": ("return_statement", "return_expression"),
    "yield": ("yield", "yield_expression", "yield_statement"),
    "break": ("break_statement", "break_expression"),
    "continue": ("continue_statement", "continue_expression"),
}
_FUNCTION = re.compile(r"function|method|lambda|arrow|func_literal|closure|constructor|async_block|init_declaration")
_CLASS = re.compile(r"^(class_definition|class_declaration|class|class_body|struct_item|impl_item)$")
_LOOP = re.compile(r"^(for|while|do|loop|enhanced_for|repeat|foreach)(_\w+)?$|^(for|while|do|loop)_")
_NOTHING = (("None",), ("void",), ("never",), ("NoReturn",), ("unit",), ())
_MAY_BE_NIL = re.compile(r"^(\*|\[ \]|map|func|chan|interface|error$|any$)")
COMPARED = "compared"
_VALUE_USES = frozenset({"text", "formatted", "operand", COMPARED, "receiver", "value"})
_TARGETS = re.compile(r"^(array|object|pair|rest)_pattern$|^(list|tuple)_pattern$")
_LOOPS_OVER = frozenset({"for_in_statement", "for_statement", "range_clause"})
_UNKNOWN = ("?",)
"""The results of a closure that does not say them."""


def needs_of(old: Sequence[Node], new: Sequence[Node], language: str, place: Node | None = None) -> tuple[Need, ...]:
    """Return what an edit of these nodes asks of the function around it, or around another node, `place`."""
    needs: list[Need] = []
    place = place or old[0]
    for word, kinds in _WORDS.items():
        if word == "?" and any(leaf.text == "try!" for node in old for leaf in node.leaves()):
            continue  # it returns too
        before, after = list(_own(old, kinds)), list(_own(new, kinds))
        values, known = (_values(side[0]) if word == "return" and side else () for side in (after, before))
        if len(after) > len(before) or (len(before) == len(after) == 1 and len(known) != len(values)):
            function = function_around(place)
            needs.append(Need(word, _results(function, language) if function is not None else None, values))
    names = [{leaf.text for node in side for leaf in node.leaves()} for side in (old, new)]
    added = sorted((names[1] - names[0]) & traits_of(language).instances)
    return (*needs, *(Need(name) for name in added if has_instance(name, place, language)))


def unmet(needs: Sequence[Need], node: Node, language: str) -> str | None:
    """Return what a place lacks that the edit needs, as a phrase; None if it has all."""
    for need in needs:
        reason = _unmet(need, node, language)
        if reason is not None:
            return f"the edit adds `{need.word}`, and {reason}"
    return None


def function_around(node: Node) -> Node | None:
    """Return the function whose body has a node; None if a class or the file has it."""
    for above in around(node):
        if _CLASS.search(above.kind):
            return None
        if _FUNCTION.search(above.kind) and (is_scope(above) or above.kind == "async_block"):
            return above
    return None


def use_of(node: Node) -> str:
    """Return how the code around a node uses it: "assigned", "updated" or "read"; "" if it stands alone."""
    parent = node.parent
    while parent is not None and parent.kind in ("expression_list", "pattern_list", "parenthesized_expression"):
        node, parent = parent, parent.parent
    if parent is None or parent.kind == "expression_statement":
        return ""
    if parent.kind.startswith(("update_", "inc_", "dec_", "delete_")):
        return "updated"
    if _TARGETS.search(parent.kind) or (parent.kind in _LOOPS_OVER and node.field == "left"):
        return "assigned"
    if "assignment" not in parent.kind or node.field != "left":
        return "read"
    operator = next((child.text for child in parent.children if not child.named and child.text.endswith("=")), "=")
    return "assigned" if operator == "=" else "updated"


def value_use_of(node: Node) -> str:
    """Return what a value is for: a part of a "text", "formatted" there, an "operand", a "receiver", or any "value".

    An operand may be COMPARED by the type that it is of.
    """
    parent = node.parent
    if parent is None:
        return "value"
    if parent.kind in ("interpolation", "template_substitution", "interpolated_expression"):
        is_plain = all(child is node or child.text in ("{", "}", "${", "#{") for child in parent.children)
        return "text" if is_plain else "formatted"
    if receiver_of(parent) is node or (parent.kind.startswith(("subscript", "index")) and parent.children[0] is node):
        return "receiver"
    if parent.kind.startswith(("binary", "comparison", "equality")) and parent.children[1].text in ("==", "!="):
        return COMPARED
    is_operator = parent.kind.startswith(("binary", "unary", "comparison")) or "augmented" in parent.kind
    return "operand" if is_operator else "value"


def uses_of(old: Sequence[Node], new: Sequence[Node], pattern: Sequence[Pattern]) -> frozenset[str]:
    """Return the uses that a place may have, from the example's; none where it does not matter.

    A member of any object may be another thing where it is assigned to. What an edit makes of a member must not be
    assigned to unless it is a member too. A value that loses the call around it may be of another type than an operator
    or a member needs: `str(x)` is `x` in an f-string.
    """
    if len(old) != 1 or len(new) != 1 or len(pattern) != 1:
        return frozenset()
    if is_call(old[0]) and any(same(inner, new[0]) for inner in old[0].walk()):
        return frozenset({value_use_of(old[0])})
    if not is_access(old[0]):
        return frozenset()
    stays_assignable = is_access(new[0]) and all(leaf.text != "?." for leaf in new[0].leaves())
    if not stays_assignable:
        return frozenset({use_of(old[0])} & {"read", ""}) or frozenset({"read", ""})
    first = pattern[0].children[0] if isinstance(pattern[0], Branch) else None
    use = use_of(old[0])
    return frozenset({use}) if use and isinstance(first, Hole) else frozenset()


def other_use(uses: frozenset[str], node: Node) -> str | None:
    """Return a reason if a place is used otherwise than the example."""
    here = value_use_of(node) if uses & _VALUE_USES else use_of(node)
    if not uses or here in uses or (here == COMPARED and "operand" in uses):
        return None
    said = {"assigned": "assigned to", "updated": "updated", "": "read"}
    said |= {
        "text": "a part of a string",
        "formatted": "formatted",
        "operand": "an operand",
        COMPARED: "compared",
        "receiver": "a receiver",
        "value": "a value",
    }
    said["read"] = "read"
    is_here = said[here] if here else "a statement of its own"
    return f"it is {is_here} here, and {' or '.join(sorted({said[use] for use in uses}))} in the example"


def _own(tops: Sequence[Node], kinds: tuple[str, ...]) -> Iterator[Node]:
    """Yield the nodes of some kinds that are not inside of a function of these trees."""
    waiting = list(tops)
    while waiting:
        node = waiting.pop()
        # The keyword `yield` has the name of its expression.
        if node.kind in kinds and (node.children or node.kind.endswith(("statement", "expression"))):
            yield node
        if not (_FUNCTION.search(node.kind) and is_scope(node)):
            waiting.extend(reversed(node.children))


def _values(statement: Node) -> tuple[str, ...]:
    """Return the values of a return statement as code."""
    values = statement.parts
    if len(values) == 1 and values[0].kind == "expression_list":
        values = values[0].parts
    return tuple(map(_code, values))


def _code(node: Node) -> str:
    if not node.children:
        return node.text
    parts: list[str] = []
    for child, following in zip(node.children, (*node.children[1:], None), strict=True):
        # Commas are no nodes: they are where two elements of a list meet.
        is_before_comma = is_list(node) and child.named and following is not None and following.named
        parts.append(_code(child) + (" ," if is_before_comma else ""))
    return " ".join(parts)


def _results(function: Node, language: str) -> tuple[str, ...] | None:
    """Return the result types that a function says; None if its language does not ask for them, and it has none."""
    result = next((child for child in function.children if child.field in ("return_type", "result")), None)
    if result is None and traits_of(language).type_first:
        result = next((child for child in function.children if child.field in ("type", "returns")), None)
    if result is not None and language == "go" and result.kind == "parameter_list":
        return tuple(_go_results(result))
    if result is not None:
        text = _code(result).removeprefix(": ").removeprefix("-> ")
        return () if text in ("void", "( )") else (text,)
    if not traits_of(language).says_results:
        return None
    is_closure = re.search(r"lambda|closure|async_block", function.kind) is not None
    return _UNKNOWN if is_closure else ()


def _go_results(result: Node) -> Iterator[str]:
    for one in result.children:
        if one.named:
            names = [child for child in one.children if child.field == "name" and is_name(child)]
            for _ in names or (one,):
                yield _code(one.children[-1] if one.children else one)


def _unmet(need: Need, node: Node, language: str) -> str | None:
    if need.word in traits_of(language).instances:
        return None if has_instance(need.word, node, language) else "there is none here"
    if need.word in ("break", "continue"):
        return None if _is_in_loop(node) else "there is no loop here"
    function = function_around(node)
    if function is None:
        return "there is no function here"
    if need.word == "await":
        return None if _is_async(function) else "the function here is not async"
    if need.word == "yield":
        is_generator = any(True for _ in _own(function.children, _WORDS["yield"]))
        return None if is_generator or need.results is None else "the function here yields nothing"
    here = _results(function, language)
    if need.word == "?":
        return _unmet_question(need, here or ())
    return _unmet_return(need, here, language)


def _unmet_question(need: Need, here: tuple[str, ...]) -> str | None:
    if here == _UNKNOWN:
        return "the closure here does not say what it returns"
    said = here[0] if here else "nothing"
    example = need.results[0] if need.results else ""
    known = {"Result", "Option"} if not example or example == "?" else {_head(example)}
    if _head(said) not in known:
        return f"the function here returns {_short(said)}"
    errors = [text.rpartition(" , ")[2].removesuffix(" >") for text in (said, example) if " , " in text]
    if len(errors) == 2 and errors[0] != errors[1] and "dyn" not in errors[0]:
        return f"the function here returns {_short(said)}"
    return None


def _head(text: str) -> str:
    """Return the name of a Rust type without its path and arguments."""
    return text.partition(" <")[0].rpartition(":: ")[2].rpartition("::")[2].strip()


def _unmet_return(need: Need, here: tuple[str, ...] | None, language: str) -> str | None:
    if not traits_of(language).says_results:
        lacks = bool(need.values) and here in _NOTHING and here != need.results
        return f"the function here returns {here[0]}" if lacks and here else None
    example = need.results
    assert here is not None
    if here == _UNKNOWN and example != _UNKNOWN:
        return "the closure here does not say what it returns"
    if not need.values and (not here or language == "go"):
        return None
    if (language == "go" and len(here) != len(need.values)) or bool(here) != bool(need.values):
        return f"the function here returns {_short(', '.join(here)) or 'nothing'}"
    if example is None or here == example:
        return None
    pairs = zip(here, example, need.values, strict=False)
    if language == "go" and all(
        one == other or (value == "nil" and _MAY_BE_NIL.search(one)) for one, other, value in pairs
    ):
        return None
    return f"the function here returns {_short(', '.join(here))}"


def _short(text: str) -> str:
    """Return a type as people write it."""
    return re.sub(r" ?(::|[<>&*()\[\].]) ?", r"\1", text).replace(" ,", ",")


def _is_async(function: Node) -> bool:
    if function.kind == "async_block":
        return True
    before = [child for child in function.children if child.field not in ("body", "parameters", "name")]
    return any(leaf.text == "async" for child in before for leaf in child.leaves())


def _is_in_loop(node: Node) -> bool:
    function = function_around(node)
    for above in node.ancestors():
        if above is function:
            return False
        if _LOOP.search(above.kind) and above.named:
            return True
    return False
