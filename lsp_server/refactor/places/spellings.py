"""Edits that mean the same wherever they fit, so that one example is enough for their widest form."""

import itertools
import re

from lsp_server.refactor.change.libraries import is_whole
from lsp_server.refactor.change.overrides import overrides_nothing
from lsp_server.refactor.code.bindings import Scopes, is_function
from lsp_server.refactor.code.declarations import (
    ASSIGNS,
    Declaration,
    Names,
    class_around,
    class_name,
    inner_parent,
    names_of,
)
from lsp_server.refactor.code.grammar import SELF, is_access, is_call, is_string_content
from lsp_server.refactor.code.member import is_member, last_name
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.places.surroundings import function_around
from lsp_server.refactor.rules.matching import Match
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, items, texts_of, variables
from lsp_server.refactor.rules.rule import Rule, changed_words

_SUPER = ("python", "super(W0self)", "super()")
_FORMS = frozenset({_SUPER, ("php", "isset(W0)?W0:W1", "W0??W1")})
"""Edits that only write the same in a shorter form, as `_form` has them."""
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)
CLOSURES = frozenset({"anonymous_function", "anonymous_function_creation_expression", "arrow_function"})
DEFAULTED = "typed_default_parameter"
_OR_NONE = frozenset({"Optional", "Union", "|"})
_TAKES_NONE = re.compile(r"\b(Any|None|Optional|object)\b")
_READ_BY_C = re.compile(rb"(def|defined)[ (]+__cplusplus")
"""A file that only asks for the version of C++ is none of C."""
_NULL_MACRO = re.compile(r"[A-Z]\w*_NULL(PTR)?")
_OTHER_ACCESS = frozenset({"override", "protected", "internal"})
_PARAMETERS = frozenset({"parameter_declaration", "optional_parameter_declaration", "formal_parameter"})
_TYPES = re.compile(r"(type|template)_argument")
_MEMBER = re.compile(
    r"^((method|function|field|property|constructor|const)_(declaration|definition)|public_field_definition)$"
)
COMPOSED = re.compile(r"^(bounded|union|intersection|optional|nullable|reference|pointer|array|dynamic)_type$")
_OPEN_TYPE = re.compile(r"^(function|constructor|conditional|infer)_type$")
_TYPE_ALONE = re.compile(r"^(class_literal|instanceof_expression)$")


def is_sound(rule: Rule) -> bool:
    """Return whether the widest form means the same at all places that `unsound` does not leave out."""
    gone, come, stays = changed_words(rule)
    if rule.language == "php" and (gone, come) == (set(), {"static"}):
        return getattr(rule.pattern[0], "kind", "") in CLOSURES
    if rule.language == "go" and gone == {"_"}:
        return not come and getattr(rule.pattern[0], "kind", "") == "parameter_declaration"
    if getattr(rule.pattern[0], "kind", "") == DEFAULTED and not gone:
        return not come.isdisjoint(_OR_NONE)
    if rule.language == "python" and "except" in stays:
        return (gone, come) == (set(), {"as"})
    if {*gone, *come} == {traits_of(rule.language).access} and (come or rule.around.position is None):
        return _MEMBER.search(getattr(rule.pattern[0], "kind", "")) is not None
    if is_nullable(rule) or is_undefined(rule) or _form(rule) in _FORMS:
        return True
    if is_null_macro(rule.language, "".join(gone), "".join(come)):
        return True
    signs = list(items(rule.pattern))
    if len(signs) == 2 and getattr(signs[0], "text", "") == "assert" and isinstance(signs[1], Hole):
        return _is_argument(rule, signs[1])  # whatever is asserted is a condition
    if _is_of_receiver(rule) or (_has_words(rule) and is_whole(rule.language)):
        return True
    return (frozenset(gone), frozenset(come)) in traits_of(rule.language).spellings


def is_null_macro(language: str, old: str, new: str) -> bool:
    """Return whether an edit of C++ writes `nullptr` for a macro that stands in for it: `Q_NULLPTR`, `FMT_NULL`."""
    return language == "cpp" and new == "nullptr" and _NULL_MACRO.fullmatch(old) is not None


def is_nullable(rule: Rule) -> bool:
    """Return whether an edit of PHP says of a parameter whose default is `null` that it may be `null`."""
    last = [*items(rule.pattern)][-1]
    return rule.language == "php" and isinstance(last, Hole) and last.kinds == {"null"}


def is_undefined(rule: Rule) -> bool:
    """Return whether an edit of TypeScript says of a member that may be missing that it may be undefined, as it may."""
    gone, come, stays = changed_words(rule)
    return "?" in stays and not gone and come == {"|", "undefined"}


def _form(rule: Rule) -> tuple[str, str, str]:
    """Return the language of a rule, and its two sides as code without white space."""
    sides = (rule.pattern, rule.template)
    old, new = ("".join(getattr(one, "text", getattr(one, "name", "")) for one in items(side)) for side in sides)
    return rule.language, old, new


def _other_super(rule: Rule, node: Node) -> str | None:
    """Return a reason if `super()` of Python is not what a place has: another class, or no method of it."""
    if rule.language != _SUPER[0] or _form(rule) != _SUPER:
        return None
    first, second = node.children[-1].parts
    function, owner = function_around(node), class_around(node)
    parameters = function.child("parameters") if function is not None and function_around(function) is None else None
    own = next((leaf for leaf in parameters.leaves() if leaf.named), None) if parameters is not None else None
    is_inner = any(one.kind in _COMPREHENSIONS for one in node.ancestors())
    if owner is None or own is None or is_inner or (class_name(owner), own.text) != (first.text, second.text):
        return "`super()` would be another one here"
    return None


def _is_argument(rule: Rule, hole: Hole) -> bool:
    """Return whether a variable is a whole argument of the template, so that none of its code binds otherwise there."""
    texts = [getattr(one, "text", "") for one in items(rule.template)]
    names = [getattr(one, "name", "") for one in items(rule.template)]
    at = names.index(hole.name) if hole.name in names else 0
    return 0 < at < len(texts) - 1 and texts[at - 1] in ("(", ",") and texts[at + 1] in (")", ",")


def _is_of_receiver(rule: Rule) -> bool:
    """Return whether an edit replaces a receiver whose code says what it is, so that each member of it is meant.

    `self.client` is one, and a class that stays (`Store::` becomes `Store::get()->`); a module says less.
    """
    branches = [side.children for side in rule.branches if len(side.children) > 2]
    ends = {tuple(getattr(one, "name", "") for one in children[2:]) for children in branches}
    if len(branches) < 2 or len(ends) > 1 or variables(branches[0][:1]):
        return False
    old, new = (texts_of(children[:1]) for children in branches)
    is_class = len(old) == 1 and old[0][:1].isupper() and old[0] in new[:1] and new[-2:] == ["(", ")"]
    is_path = "::" in new and new[-len(old) :] == old
    is_field = len(old) > 2 and old[0] in SELF and new[: len(old)] != old
    return old != new and (is_class or is_path or is_field)


def unsound(rule: Rule, match: Match, scopes: Scopes) -> str | None:
    """Return a reason if another keyword would mean another thing at a place, or a type gets arguments twice."""
    gone, come, _ = changed_words(rule)
    node = match.nodes[0]
    if reason := _other_default(rule, node) or _other_member(rule, node) or _other_super(rule, node):
        return reason
    if rule.around.in_annotation and _has_arguments(rule, match.nodes[0]):
        return "it has arguments of its own here"
    if rule.language == "go" and isinstance(rule.pattern[0], Leaf) and _is_key(match.nodes[0]):
        return "it is the name of a field here"
    if traits_of(rule.language).is_script and come & {"const", "let"} and gone & {"let", "var"}:
        word = "var" if "var" in gone else "let"
        return _other_variable(word, "const" if "const" in come else "let", match.nodes[0], names_of(scopes.syntax))
    if come & {"const", "final"} and (name := _set_parameter(match.nodes[0], names_of(scopes.syntax))):
        return f"`{name}` is set again here"
    if "static" in come and rule.language == "php" and match.nodes[0].kind in CLOSURES:
        return "`$this` is used here" if any(leaf.text == "this" for leaf in match.nodes[0].leaves()) else None
    if gone == {"_"} and rule.language == "go":
        is_only = len([*inner_parent(match.nodes[0]).parts]) == 1 and len([*match.nodes[0].parts]) == 2
        return None if is_only else "the other parameters have names"
    if ("public" in gone and traits_of(rule.language).hides) or "private" in come:
        return _overriding(match.nodes[0])
    if reason := _only_a_name(rule, match.nodes[0]):
        return reason
    if _has_words(rule) and (reason := _other_function(come, match, scopes)):
        return reason
    if come == {"override"} and rule.language == "cpp":
        return overrides_nothing(match.nodes[0])
    if is_null_macro(rule.language, "".join(gone), "".join(come)) and _is_asked(match.nodes[0]):
        return "the preprocessor asks for it here"
    if come & {"nullptr", "std"} and (scopes.syntax.language.id == "c" or _READ_BY_C.search(scopes.syntax.data)):
        return f"C, which has no `{min(come & {'nullptr', 'std'})}`, reads this file too"
    return None


def _other_default(rule: Rule, node: Node) -> str | None:
    """Return a reason if a parameter whose default is None needs no other type, or cannot have it."""
    gone, come, _ = changed_words(rule)
    if gone or not come & _OR_NONE or getattr(rule.pattern[0], "kind", "") != DEFAULTED:
        return None
    tokens = node.children[2].tokens
    if _TAKES_NONE.search(tokens):
        return "it may be None already"
    return "a text is no type for `|`" if "|" in come and tokens[-1:] in ("'", '"') else None


def _is_asked(node: Node) -> bool:
    """Return whether a line of the preprocessor defines a macro, or asks whether there is one."""
    pairs = zip((node, *node.ancestors()), node.ancestors(), strict=False)
    return any(one.kind.startswith("preproc_") and below.field in ("name", "condition") for below, one in pairs)


def _other_member(rule: Rule, node: Node) -> str | None:
    """Return a reason if a member is otherwise visible than one without a modifier, or may be `null` or undefined."""
    gone, come, _ = changed_words(rule)
    if is_undefined(rule) and (kind := node.child("type")) is not None:
        if _OPEN_TYPE.search(kind.children[-1].kind):
            return "its type would need parentheses"
        is_done = not {"undefined", "any", "unknown"}.isdisjoint(kind.children[-1].tokens.split("|"))
        return "it may be undefined already" if is_done else None
    if is_nullable(rule):
        return "its type has `null` already" if node.children[0].tokens.lower() in ("mixed", "null") else None
    if {*gone, *come} != {traits_of(rule.language).access}:
        return None
    header = (leaf.text for child in node.children if "modifier" in child.kind for leaf in child.leaves())
    return next((f"it is `{word}` here" for word in header if word in _OTHER_ACCESS), None)


def _only_a_name(rule: Rule, node: Node) -> str | None:
    """Return a reason if a type gets arguments, or becomes several ones, where only its name can be."""
    above = node.parent
    if above is not None and (is_access(above) or _TYPE_ALONE.search(above.kind)) and _gets_arguments(rule):
        return "a type with arguments cannot be here"
    is_composed = above is not None and is_access(above) and _is_no_name(rule)
    return "only the name of a type can be here" if is_composed else None


def _has_arguments(rule: Rule, node: Node) -> bool:
    """Return whether an edit gives arguments to a type of Python that has some: `List` of `List[str]`."""
    new, above = rule.template[0] if len(rule.template) == 1 else None, node.parent
    is_given = isinstance(new, Branch) and new.kind == "subscript" and new.children[:1] == rule.pattern
    return is_given and above is not None and above.kind == "subscript" and above.children[0] is node


def _is_key(node: Node) -> bool:
    """Return whether a name of Go is that of a field in a literal, and no key of a map."""
    if node.parent is None or node.parent.kind != "literal_element" or not is_member(node):
        return False
    literal = next((above for above in node.ancestors() if above.kind == "composite_literal"), None)
    kind = literal.child("type") if literal is not None else None
    return kind is not None and kind.kind in ("type_identifier", "qualified_type", "generic_type")


def _gets_arguments(rule: Rule) -> bool:
    """Return whether an edit makes the name of a type one with arguments: `Reply` becomes `Call<Reply>`."""
    new = rule.template[0] if len(rule.template) == 1 else None
    parts = new.children if isinstance(new, Branch) and isinstance(rule.pattern[0], Leaf) else ()
    return any(isinstance(part, Branch) and _TYPES.search(part.kind) for part in parts)


def _is_no_name(rule: Rule) -> bool:
    """Return whether an edit makes the name of a type several ones, or a reference: `Buf` becomes `Buf + Send`."""
    is_name_before = len(rule.pattern) == len(rule.template) == 1 and isinstance(rule.pattern[0], Leaf)
    return is_name_before and COMPOSED.search(getattr(rule.template[0], "kind", "")) is not None


def _has_words(rule: Rule) -> bool:
    return any(isinstance(item, Hole) and item.words for item in items(rule.pattern))


def _other_function(come: set[str], match: Match, scopes: Scopes) -> str | None:
    """Return a reason if a name of a library is another function in a file."""
    called = next(one.nodes[0] for one in match.bounds if isinstance(one.item, Hole) and one.item.words)
    binding = scopes.binding(called.text, called)
    if binding.kind == "import" and come.isdisjoint(re.findall(r"\w+", binding.source)):
        return f"`{called.text}` is another import here"
    is_own = binding.kind != "import" and names_of(scopes.syntax).resolved(called) is not None
    return f"`{called.text}` is a function of its own here" if is_own else None


def _is_set_again(one: Declaration, names: Names) -> bool:
    """Return whether a variable or a parameter may be assigned to beside its declaration."""
    for leaf in names.leaves(one.leaf.text):
        if leaf is one.leaf or not one.scope.start <= leaf.start < one.scope.end or not _is_set(leaf):
            continue
        found = names.resolved(leaf)
        if found is None or not any(above is one.scope for above in found.scope.ancestors()):
            return True  # what is called before the declaration may assign to it too
    return False


def _is_set(leaf: Node) -> bool:
    """Return whether something is assigned to a name: directly, in a pattern, or by a loop."""
    node = leaf
    for above in leaf.ancestors():
        if is_access(above) or is_call(above) or "subscript" in above.kind:
            return False
        if above.kind == "update_expression":
            return True
        if above.kind == "for_in_statement" or (ASSIGNS.search(above.kind) and above.kind != "assignment_pattern"):
            return node.field == "left"
        node = above
    return False


def _set_parameter(node: Node, names: Names) -> str:
    """Return the parameter around a node, or that it is, to which its function assigns; "" if there is none."""
    around = next((one for one in (node, *node.ancestors()) if one.kind in _PARAMETERS), None)
    name = last_name(around.child("declarator") or around.child("name")) if around is not None else None
    declared = names.declared(name.text).get(name.start) if name is not None else None
    return declared.leaf.text if declared is not None and _is_set_again(declared, names) else ""


def _overriding(node: Node) -> str | None:
    """Return a reason if a node is the header of a method that overrides another one: it must be as visible."""
    method = next((one for one in (node, *node.ancestors()) if one.kind.startswith("method_")), None)
    header = [child for child in method.children if child.field != "body"] if method is not None else []
    words = {leaf.text.lower() for child in header for leaf in child.leaves()}
    return "it overrides a method, which is as visible as before" if "override" in words else None


def _other_variable(word: str, new: str, top: Node, names: Names) -> str | None:
    """Return a reason if a `let` or `var` of JavaScript that becomes another keyword would be another variable."""
    is_constant = new == "const"
    for holder in (inner_parent(top), *top.walk()):
        if not any(child.text == word for child in holder.children):
            continue
        for one in [child for child in holder.children if child.kind == "variable_declarator"] or [holder]:
            if one is not holder and one.child("value") is None and (is_constant or _is_in_loop(holder)):
                return "it has no value here"
            name = one.child("name") or one.child("left")
            for leaf in name.leaves() if name is not None else ():
                known = names.declared(leaf.text).get(leaf.start)
                if is_constant and (_is_set_again(known, names) if known is not None else leaf.kind == "identifier"):
                    return f"`{leaf.text}` is set again here"
                if word == "var" and known is not None and _leaves_its_block(known, one, names):
                    return f"`{leaf.text}` is used outside of its block, or before it is set"
    return None


def _is_in_loop(node: Node) -> bool:
    around = itertools.takewhile(lambda one: not is_function(one), node.ancestors())
    return any(one.kind.startswith(("for_", "while_", "do_")) for one in around)


def _leaves_its_block(known: Declaration, declarator: Node, names: Names) -> bool:
    """Return whether code beside the rest of its block knows a `var`, or another `var` of its function is the same."""
    function = next((one for one in known.leaf.ancestors() if is_function(one)), names.syntax.root)
    declared = names.declared(known.leaf.text)
    for leaf in names.leaves(known.leaf.text):
        is_around = function.start <= leaf.start < function.end
        if leaf is known.leaf or not is_around or is_member(leaf) or is_string_content(leaf):
            continue
        is_inside = known.scope.start <= leaf.start < known.scope.end
        is_own = next((one for one in leaf.ancestors() if is_function(one)), names.syntax.root) is function
        if leaf.start in declared:
            other = declared[leaf.start]
            if is_own and (is_inside or known.leaf.start in range(other.scope.start, other.scope.end)):
                return True
        elif is_inside and (leaf.start > declarator.end or (leaf.start > declarator.start and not is_own)):
            continue
        elif (found := names.resolved(leaf)) is None or found.leaf is known.leaf or found.scope.start <= function.start:
            return True
    return False
