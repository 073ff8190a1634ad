"""Methods of C++ that override another one: `virtual void f();` became `void f() override;`, and so do the others."""

from lsp_server.refactor.difference import Change
from lsp_server.refactor.pattern import Branch, Hole, Leaf, Pattern, Tail
from lsp_server.refactor.rule import Rule
from lsp_server.refactor.syntax import Node

_VIRTUAL, _OVERRIDE = Leaf("virtual", "virtual", named=False), Leaf("override", "override", named=False, gap=" ")
_HEADER = Tail("WT", " ", " ")
_BODY = Hole("W1", frozenset({"compound_statement", "default_method_clause"}), gap=" ")
_WIDE = "only `virtual` is as in the example"
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
        tail = "" if last else ";"
        rules.append(Rule(language, pattern, template, tail=tail, template_tail=tail, path=path, wide=_WIDE))
    return tuple(rules)


def overrides_known(rule: Rule, node: Node) -> bool:
    """Return whether the rule of a method that overrides another is at one that does: a base in the file has it."""
    if rule.wide != _WIDE:
        return False
    own = next((one for one in node.ancestors() if one.kind in _CLASSES), None)
    clause = next((one for one in own.children if one.kind == "base_class_clause"), None) if own is not None else None
    bases = {leaf.text for leaf in clause.leaves() if leaf.named} if clause is not None else set()
    *_, root = node.ancestors()
    for other in root.walk():
        name = other.child("name") if other.kind in _CLASSES else None
        body = other.child("body") if name is not None and name.text in bases else None
        for member in body.children if body is not None else ():
            if _method(member) == _method(node) and any(
                leaf.text in ("virtual", "override") for leaf in member.leaves()
            ):
                return True
    return False


def _method(member: Node) -> str:
    """Return the name of the method that a member declares; "~" for a destructor, "" for what is none."""
    function = next((one for one in member.walk() if one.kind == "function_declarator"), None)
    name = function.child("declarator") if function is not None else None
    return "" if name is None else "~" if name.kind == "destructor_name" else name.text


def overrides_nothing(node: Node) -> str | None:
    """Return a reason if a method overrides no other one, as far as its class says, or says already that it does."""
    around = next((one for one in node.ancestors() if one.kind in _CLASSES), None)
    if around is None or not any(child.kind == "base_class_clause" for child in around.children):
        return "its class has no base, whose method it could override"
    header = [leaf.text for child in node.children if child.field != "body" for leaf in child.leaves()]
    if sum(child.field == "declarator" for child in node.children) > 1:
        return "it declares several methods"
    said = next((word for word in ("override", "final") if word in header), "")
    return (
        f"it is `{said}` already" if said else "it has no body to override with" if header[-2:] == ["=", "0"] else None
    )
