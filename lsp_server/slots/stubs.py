"""Finds stubs: bodies that only say that they are to be written, and empty ones."""

import re

import tree_sitter

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import indent_of, indent_unit
from lsp_server.slots.slot import Slot, is_inside, matches, text_of

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
