"""Finds the slots of a text: stubs, missing annotations, and missing docstrings in files that have some."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs
import tree_sitter

from engine.reading import read_text
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.hole.hole import indent_of, indent_unit
from lsp_server.refactor.search import Target, is_generated
from lsp_server.slots.annotations import annotates, find_annotations, find_bare_annotations
from lsp_server.slots.slot import Slot, SlotKind, is_inside, matches, text_of

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


_TODO = re.compile(r"\b(todo|fixme|xxx|hack|implement|implemented)\b", re.IGNORECASE)
_BARE = frozenset(
    {"todo", "fixme", "xxx", "implement", "implemented", "not", "yet", "me", "this", "here", "your", "code", "please"}
    | {"auto", "generated", "method", "stub", "noqa"}
)
"""Words that only say that something is to be done."""
_LEVELS = 4


def find_stubs(snapshot: Snapshot) -> list[Slot]:
    """Return the stubs of a text: bodies that only say that they are to be written, and empty ones."""
    if snapshot.path.endswith(".pyi"):
        return []
    found = matches(snapshot, "stubs")
    exempt = [node for captures in found for node in captures.get("exempt", ())]
    exempt_empty = exempt + [node for captures in found for node in captures.get("exempt.empty", ())]
    slots: dict[int, Slot] = {}
    for captures in found:
        for body in captures.get("body", ()):
            if not is_inside(body, exempt) and (slot := _stub(snapshot, body, captures["stub"][0])) is not None:
                slots[body.start_byte] = slot
        for body in captures.get("empty", ()):
            if not is_inside(body, exempt_empty) and (slot := _empty(snapshot, body)) is not None:
                slots[body.start_byte] = slot
        for node in captures.get("expression", ()):
            if not is_inside(node, exempt):
                offset = snapshot.source.offset_of_byte
                start, end = offset(node.start_byte), offset(node.end_byte)
                slots[node.start_byte] = Slot(
                    start, end, "", "", "expression", f"the value of {_name(node, snapshot.source.data)}"
                )
    return [slots[byte] for byte in sorted(slots)]


def _stub(snapshot: Snapshot, body: tree_sitter.Node, stub: tree_sitter.Node) -> Slot | None:
    node, comments = stub, list[tree_sitter.Node]()
    while node.id != body.id:
        parent = node.parent
        if parent is None:
            return None
        for other in parent.named_children:
            if other.type in snapshot.language.comments:
                comments.append(other)
            elif other.id != node.id and not _is_docstring(snapshot, other, parent):
                return None
        node = parent
    start, end = stub.start_byte, stub.end_byte
    own, data = snapshot.source.lines.at_byte, snapshot.source.data
    if snapshot.language.indentation_is_syntax and body.parent is not None:
        comments += [other for other in body.parent.named_children if other.type in snapshot.language.comments]
    for comment in sorted(comments, key=lambda comment: -comment.start_byte):
        if own(comment.start_byte) == own(end) and comment.start_byte >= end:
            end = comment.end_byte
        elif (
            comment.end_byte <= start
            and _is_bare(comment, data)
            and own(comment.start_byte) > _header_line(snapshot, body)
        ):
            start = comment.start_byte
    return _slot(snapshot, body, start, end)


def _empty(snapshot: Snapshot, body: tree_sitter.Node) -> Slot | None:
    if any(child.type not in snapshot.language.comments for child in body.named_children):
        return None
    comments = body.named_children
    if comments and not any(_TODO.search(text_of(comment, snapshot.source.data)) for comment in comments):
        return None
    kept = [comment for comment in comments if not _is_bare(comment, snapshot.source.data)]
    source = snapshot.source
    if not kept:
        return _slot(snapshot, body, body.start_byte + 1, body.end_byte - 1)
    last = source.offset_of_byte(kept[-1].end_byte)
    line = source.line_text(source.lines.at_byte(kept[-1].start_byte))
    rest = source.text[last : source.line_end(source.lines.at(last))]
    if not line.strip().startswith(("//", "/*", "*")) or rest.strip():
        return None
    return Slot(last, last, "\n" + indent_of(line), "", "body", f"the body of {_name(body, snapshot.source.data)}")


def _slot(snapshot: Snapshot, body: tree_sitter.Node, first: int, last: int) -> Slot:
    """Return the slot of the bytes from `first` to `last`. A body on its header's line gets lines of its own."""
    source = snapshot.source
    start, end = source.offset_of_byte(first), source.offset_of_byte(last)
    title = f"the body of {_name(body, snapshot.source.data)}"
    line, last_line = source.lines.at(start), source.lines.at(end)
    before, after = source.text[source.lines.start(line) : start], source.text[end : source.line_end(last_line)]
    if not before.strip() and not after.strip():
        return Slot(start, end, "", "", "body", title)
    header = _header(snapshot, body)
    inner = header + indent_unit(snapshot, start)
    if snapshot.language.indentation_is_syntax:
        colon = source.offset_of_byte(body.prev_sibling.end_byte if body.prev_sibling else body.start_byte)
        if source.lines.at(colon) == line:
            start = colon
        return Slot(start, end, "\n" + inner, "", "body", title)
    inside = source.offset_of_byte(body.start_byte + 1), source.offset_of_byte(body.end_byte - 1)
    return Slot(*inside, "\n" + inner, "\n" + header, "body", title)


def _header(snapshot: Snapshot, body: tree_sitter.Node) -> str:
    """Return the indentation of the function whose body this is."""
    return indent_of(snapshot.source.line_text(_header_line(snapshot, body)))


def _header_line(snapshot: Snapshot, body: tree_sitter.Node) -> int:
    return snapshot.source.lines.at_byte(body.parent.start_byte if body.parent is not None else body.start_byte)


def _is_bare(comment: tree_sitter.Node, data: bytes) -> bool:
    """Return whether a comment only says that something is to be done, and not what."""
    return all(word in _BARE for word in re.findall(r"\w+", text_of(comment, data).lower()))


def _is_docstring(snapshot: Snapshot, node: tree_sitter.Node, parent: tree_sitter.Node) -> bool:
    if not snapshot.language.indentation_is_syntax or node.type != "expression_statement":
        return False
    first = next((child for child in parent.named_children if child.type not in snapshot.language.comments), None)
    return first is not None and first.id == node.id and [child.type for child in node.children] == ["string"]


def _name(node: tree_sitter.Node, data: bytes) -> str:
    """Return the name of the function around a node, in back quotes."""
    at: tree_sitter.Node | None = node.parent
    for _ in range(_LEVELS):
        name = at.child_by_field_name("name") if at is not None else None
        if name is not None and (text := text_of(name, data)) not in ("get", "set"):
            return f"`{text}`"
        at = at.parent if at is not None else None
    return "this function"


_MAY_ANNOTATE = re.compile(r"->|\)\s*:\s*\w|[(,]\s*\w+\??\s*:\s*\w")
_SIBLINGS = 20
"""Files of a folder that are looked at for annotations."""

_FINDERS: dict[SlotKind, Callable[[Snapshot], Sequence[Slot]]] = {
    "stubs": find_stubs,
    "annotations": find_annotations,
    "docstrings": find_docstrings,
}


def find_slots(snapshot: Snapshot, kind: SlotKind) -> Sequence[Slot]:
    """Return the slots of a text, in their order; none without a grammar, or in a language without queries."""
    try:
        return _FINDERS[kind](snapshot)
    except RecursionError:  # generated code can be nested deeper than Python's stack
        return []


def find_bare_slots(snapshot: Snapshot, kind: SlotKind) -> Sequence[Slot]:
    """Return the slots of a text as `find_slots` does, but without what the file says of them: to count them."""
    return find_bare_annotations(snapshot) if kind == "annotations" else find_slots(snapshot, kind)


def touching(snapshot: Snapshot, slots: Sequence[Slot], lines: range) -> list[Slot]:
    """Return the slots on these lines. A body and a docstring are also touched by the line above them."""
    of = snapshot.source.lines.at
    found: list[Slot] = []
    for slot in slots:
        first = of(slot.start) - (slot.shape in ("body", "docstring"))
        if first <= lines[-1] and lines[0] <= of(slot.end):
            found.append(slot)
    return found


def in_style(snapshot: Snapshot, slots: Sequence[Slot], kind: SlotKind) -> list[Slot]:
    """Return the slots that the file wants filled: it has annotations, or its folder has; it has such docstrings.

    Reads the disk, so call it in a thread.
    """
    if kind == "annotations" and slots and not slots[0].in_style and _folder_annotates(snapshot):
        return list(slots)
    return [slot for slot in slots if slot.in_style]


def closed_snapshot(full: str, text: str) -> Snapshot:
    """Return the parsed text of a file that is not open."""
    documents, uri = Documents(), Path(full).as_uri()
    documents.open(uri, "", 0, text)
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def read_slots(target: Target, kind: SlotKind) -> tuple[Snapshot, list[Slot]] | None:
    """Return a file of a language with such slots, parsed, and the slots that it wants filled.

    None for a generated file, and for one that cannot be read. Reads the disk.
    """
    text = target.text if target.text is not None else read_text(target.folder, target.path)
    if text is None or is_generated(text):
        return None
    snapshot = closed_snapshot(target.full, text)
    return snapshot, in_style(snapshot, find_slots(snapshot, kind), kind)


def _folder_annotates(snapshot: Snapshot) -> bool:
    folder, extensions = Path(snapshot.path).parent, snapshot.language.extensions
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix in extensions)[:_SIBLINGS]
    except OSError:
        return False
    real = str(folder.resolve())
    for name in names:
        text = read_text(real, name)
        if text is not None and _MAY_ANNOTATE.search(text) and annotates(closed_snapshot(str(Path(real, name)), text)):
            return True
    return False
