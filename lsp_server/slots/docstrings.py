"""Finds missing docstrings, in files that have some."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import attrs
import tree_sitter

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import indent_of
from lsp_server.slots.slot import Slot, is_inside, matches, text_of

_QUOTES = ('"""', "'''")


@attrs.frozen(eq=False)
class DocTarget:
    """A function, class or type. `doc` is the text from its docstring's start to `place`, "" if it has none.

    `place` is where a docstring would end: a byte. `group` names those that one would document alike.
    """

    name: str
    node: tree_sitter.Node
    place: int
    start: int
    doc: str
    group: str


def find_docstrings(snapshot: Snapshot) -> list[Slot]:
    """Return the missing docstrings of a text that has some. Those are in style whose like are mostly documented."""
    targets = doc_targets(snapshot)
    documented = [target for target in targets if target.doc]
    if not documented or snapshot.path.endswith(".pyi"):
        return []
    all_of, with_doc = Counter(each.group for each in targets), Counter(each.group for each in documented)
    wrap = _wrapping(snapshot, documented)
    slots: list[Slot] = []
    for target in targets:
        if target.doc or _on_header_line(snapshot, target):
            continue
        place = snapshot.source.offset_of_byte(target.place)
        indent = indent_of(snapshot.source.line_text(snapshot.source.lines.at(place)))
        before, after = wrap(target.name, indent)
        in_style = 2 * with_doc[target.group] >= all_of[target.group]
        title = f"the docstring of `{target.name}`"
        slots.append(Slot(place, place, before, after, "docstring", title, in_style=in_style))
    return slots


def doc_targets(snapshot: Snapshot) -> list[DocTarget]:
    """Return what can have a docstring, in the order of the text."""
    found = matches(snapshot, "docstrings")
    exempt = [node for captures in found for node in captures.get("exempt", ())]
    of = _python_target if snapshot.language.id == "python" else _comment_target
    targets: dict[int, DocTarget] = {}
    for captures in found:
        for node in captures.get("target", ()):
            first = captures.get("first", [node])[0]
            if not is_inside(first, exempt):
                targets[node.start_byte] = of(snapshot, node, text_of(captures["name"][0], snapshot.source.data), first)
    return [targets[byte] for byte in sorted(targets)]


def summary(doc: str) -> str:
    """Return the first line of a docstring or doc comment, without its marks."""
    for line in doc.split("\n"):
        content = line.strip().strip("/*").strip().removeprefix('r"""').strip("\"'").strip()
        if content:
            return content
    return ""


def _python_target(snapshot: Snapshot, node: tree_sitter.Node, name: str, first: tree_sitter.Node) -> DocTarget:
    body = first.parent
    assert body is not None
    is_doc = first.type == "expression_statement" and [child.type for child in first.children] == ["string"]
    following = first.next_named_sibling if is_doc else first
    place = following.start_byte if following is not None else first.end_byte
    doc = snapshot.source.data[first.start_byte : place].decode("utf-8", "replace") if is_doc else ""
    return DocTarget(name, node, place, first.start_byte, doc, _python_group(node, name))


def _python_group(node: tree_sitter.Node, name: str) -> str:
    owner = node.parent
    while owner is not None and owner.type in ("decorated_definition", "block"):
        owner = owner.parent
    place = "method" if owner is not None and owner.type == "class_definition" else "top"
    if owner is not None and owner.type == "function_definition":
        place = "nested"
    if name.startswith("__"):
        return f"{place} dunder"
    return f"{'class' if node.type == 'class_definition' else place}{' private' if name.startswith('_') else ''}"


def _comment_target(snapshot: Snapshot, node: tree_sitter.Node, name: str, _: tree_sitter.Node) -> DocTarget:
    outer = node.parent if node.parent is not None and node.parent.type == "export_statement" else node
    at = outer
    while (before := at.prev_named_sibling) is not None and before.type == "decorator":
        at = before
    start = at.start_byte
    while (before := at.prev_sibling) is not None and _is_doc(snapshot, before, at):
        at, start = before, before.start_byte
    place = outer.start_byte if start != outer.start_byte and at.type != "decorator" else start
    doc = snapshot.source.data[start:place].decode("utf-8", "replace") if at.type in snapshot.language.comments else ""
    public = name[:1].isupper() if snapshot.language.id == "go" else outer is not node
    return DocTarget(name, node, place, start, doc, f"{node.type}{' public' if public else ''}")


def _is_doc(snapshot: Snapshot, node: tree_sitter.Node, below: tree_sitter.Node) -> bool:
    if node.type not in snapshot.language.comments or node.end_point.row + 1 < below.start_point.row:
        return False
    return snapshot.language.id == "go" or (
        text_of(node, snapshot.source.data).startswith("/**") and below.type != node.type
    )


def _on_header_line(snapshot: Snapshot, target: DocTarget) -> bool:
    """Return whether the place of a docstring is on a line with other code."""
    source = snapshot.source
    place = source.offset_of_byte(target.place)
    return bool(source.text[source.lines.start(source.lines.at(place)) : place].strip())


def _wrapping(snapshot: Snapshot, documented: Sequence[DocTarget]) -> Callable[[str, str], tuple[str, str]]:
    """Return what gives the text before and after a docstring in the file's own style, for a name and indentation."""
    if snapshot.language.id == "go":
        return lambda name, indent: (f"// {name} ", f"\n{indent}")
    if snapshot.language.id != "python":
        if _most(target.doc.strip().count("\n") > 0 for target in documented):
            return lambda _, indent: (f"/**\n{indent} * ", f"\n{indent} */\n{indent}")
        return lambda _, indent: ("/** ", f" */\n{indent}")
    quotes = next((each for each in _QUOTES if _most(each in target.doc[:5] for target in documented)), '"""')
    apart = _most(target.doc.lstrip("rR").removeprefix(quotes).startswith("\n") for target in documented)
    if apart:
        return lambda _, indent: (f"{quotes}\n{indent}", f"\n{indent}{quotes}\n{indent}")
    return lambda _, indent: (quotes, f"{quotes}\n{indent}")


def _most(answers: Iterable[bool]) -> bool:
    each = list(answers)
    return 2 * sum(each) > len(each)
