"""Methods of C++ that override another one: `virtual void f();` became `void f() override;`, and so do the others."""

from weakref import WeakKeyDictionary

from lsp_server.refactor.change.difference import Change
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Tail
from lsp_server.refactor.rules.rule import Edges, Rule

_VIRTUAL, _OVERRIDE = Leaf("virtual", "virtual", named=False), Leaf("override", "override", named=False, gap=" ")
_HEADER = Tail("WT", " ", " ")
_BODY = Hole("W1", frozenset({"compound_statement", "default_method_clause"}), gap=" ")
_WIDE = "only `virtual` is as in the example"
_VIRTUALS = frozenset({"virtual", "override"})
_METHODS: "WeakKeyDictionary[Syntax, dict[str, set[str]]]" = WeakKeyDictionary()
_CLASSES = frozenset({"class_specifier", "struct_specifier"})


def override_rules(change: Change, language: str, path: str) -> tuple[Rule, ...]:
    """Return the rules of a method that says now that it overrides another one; none if the edit does more."""
    if language != "cpp" or len(change.before) != 1 or len(change.after) != 1:
        return ()
    old, new = ([leaf.text for leaf in side[0].leaves()] for side in (change.before, change.after))
    if old[:1] != ["virtual"] or new.count("override") != 1 or [one for one in new if one != "override"] != old[1:]:
        return ()
    rules: list[Rule] = []
    for kind in ("function_definition", "field_declaration", "declaration"):
        last = [_BODY] if kind == "function_definition" else []
        sides: list[tuple[Pattern, ...]] = [(_VIRTUAL, _HEADER, *last), (_HEADER, _OVERRIDE, *last)]
        pattern, template = ((Branch(kind, side),) for side in sides)
        edges = Edges() if last else Edges(tail=";", template_tail=";")
        rules.append(Rule(language, pattern, template, edges=edges, path=path, wide=_WIDE))
    return tuple(rules)


def overrides_known(rule: Rule, node: Node, syntax: Syntax) -> bool:
    """Return whether the rule of a method that overrides another is at one that does: a base in the file has it."""
    if rule.wide != _WIDE:
        return False
    clause, method, methods = _bases(node), _method(node), _virtual_methods(syntax)
    return clause is not None and any(method in methods.get(leaf.text, ()) for leaf in clause.leaves() if leaf.named)


def _bases(node: Node) -> Node | None:
    """Return the clause that names the bases of the class around a node."""
    around = next((one for one in node.ancestors() if one.kind in _CLASSES), None)
    children = around.children if around is not None else []
    return next((one for one in children if one.kind == "base_class_clause"), None)


def _virtual_methods(syntax: Syntax) -> dict[str, set[str]]:
    """Return the names of the virtual methods that the classes of a file declare, by the class."""
    known = _METHODS.get(syntax)
    if known is None:
        known = _METHODS[syntax] = {}
        for one in syntax.root.walk():
            name, body = (one.child("name"), one.child("body")) if one.kind in _CLASSES else (None, None)
            if name is not None and body is not None:
                virtual = (each for each in body.children if _VIRTUALS & {leaf.text for leaf in each.leaves()})
                known.setdefault(name.text, set()).update(filter(None, map(_method, virtual)))
    return known


def _method(member: Node) -> str:
    """Return the name of the method that a member declares; "~" for a destructor, "" for what is none."""
    function = next((one for one in member.walk() if one.kind == "function_declarator"), None)
    name = function.child("declarator") if function is not None else None
    return "" if name is None else "~" if name.kind == "destructor_name" else name.text


def overrides_nothing(node: Node) -> str | None:
    """Return a reason if a method overrides no other one, as far as its class says, or says already that it does."""
    if _bases(node) is None:
        return "its class has no base, whose method it could override"
    header = [leaf.text for child in node.children if child.field != "body" for leaf in child.leaves()]
    if sum(child.field == "declarator" for child in node.children) > 1:
        return "it declares several methods"
    for word in ("override", "final"):
        if word in header:
            return f"it is `{word}` already"
    return "it has no body to override with" if header[-2:] == ["=", "0"] else None
