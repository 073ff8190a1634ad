"""Whether a text is a type whose names exist."""

import builtins
import re

import tree_sitter

from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import Language
from lsp_server.slots.queries import matches, text_of

_PARSE_SECONDS = 0.2
_PYTHON_NAMES = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type)) | {"None"}
_SCRIPT_NAMES = frozenset(
    {"Array", "ReadonlyArray", "Promise", "PromiseLike", "Record", "Map", "Set", "WeakMap", "WeakSet", "ReadonlyMap"}
    | {"ReadonlySet", "Partial", "Required", "Readonly", "Pick", "Omit", "Exclude", "Extract", "NonNullable", "Error"}
    | {"ReturnType", "Parameters", "Awaited", "InstanceType", "Iterable", "Iterator", "IterableIterator", "Generator"}
    | {"AsyncIterable", "AsyncIterator", "AsyncGenerator", "Date", "RegExp", "URL", "Uint8Array", "ArrayBuffer"}
)
_PYTHON_NODES = frozenset(
    {"type", "identifier", "attribute", "subscript", "generic_type", "type_parameter", "binary_operator", "union_type"}
    | {"none", "string", "string_start", "string_content", "string_end", "ellipsis", "list", "tuple", "member_type"}
)
_MEANINGLESS = frozenset({"any", "Any", "typing.Any", "object", "unknown", "Object", "Function"})
"""Types that say nothing: a checker is content, a reader is no wiser."""


def names_of_types(snapshot: Snapshot) -> frozenset[str]:
    """Return the names that a type in this text may use."""
    own = {text_of(node, snapshot.source.data) for captures in matches(snapshot, "names") for node in captures["name"]}
    return frozenset(own) | (_PYTHON_NAMES if snapshot.language.id == "python" else _SCRIPT_NAMES)


def leading_type(text: str, language: Language) -> str:
    """Return the start of a fill up to where a type must end: the rest of the parameters or of the function."""
    depth, quote = 0, ""
    line = text.partition("\n")[0]
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif depth == 0 and _ends_type(line, index, language):
            return line[:index].rstrip()
        elif char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and line[index - 1 : index] not in ("=", "-")):
            depth -= 1
    return line.rstrip()


def _ends_type(line: str, index: int, language: Language) -> bool:
    """Return whether a type ends before a character outside of all brackets."""
    char, before = line[index], line[:index].rstrip()
    if char == ">":
        return not before.endswith(("=", "-"))
    if char == "=":
        return line[index + 1 : index + 2] != ">"
    if char == "{":  # the body of a function, unless a type is due
        return bool(before) and not before.endswith(("|", "&", "=>"))
    return char in ",;)]}" or (char == ":" and language.id == "python")


def is_type(text: str, language: Language, names: frozenset[str]) -> bool:
    """Return whether a text is a type that says something, and all its names exist."""
    if not text.strip() or text in _MEANINGLESS or len(text) > 200:
        return False
    python = language.id == "python"
    code = f"x: {text}\n" if python else f"let x: {text};\n"
    data = code.encode("utf-8", "surrogatepass")
    tree = language.parse(data, None, _PARSE_SECONDS)
    if tree is None or tree.root_node.has_error:
        return False
    statements = tree.root_node.named_children
    if len(statements) != 1:
        return False
    declaration = statements[0].named_children[0] if statements[0].named_children else statements[0]
    annotation = declaration.child_by_field_name("type")
    if annotation is None or declaration.child_by_field_name("right") or declaration.child_by_field_name("value"):
        return False
    used = _python_names(annotation, data) if python else _script_names(annotation, data)
    return used is not None and used <= names


def _python_names(annotation: tree_sitter.Node, data: bytes) -> set[str] | None:
    """Return the names of a type, None for an expression that is none."""
    names: set[str] = set()
    waiting = [annotation]
    while waiting:
        node = waiting.pop()
        if node.type not in _PYTHON_NODES:
            return None
        if node.type == "identifier":
            names.add(text_of(node, data))
        elif node.type == "attribute":
            waiting.append(node.named_children[0])
        elif node.type == "string":
            names.update(re.findall(r"(?<![.\w])[^\W\d]\w*", text_of(node, data).strip("\"'")))
        elif node.type != "binary_operator" or text_of(node.child_by_field_name("operator"), data) == "|":
            waiting += node.named_children
        else:
            return None
    return names


def _script_names(annotation: tree_sitter.Node, data: bytes) -> set[str]:
    names: set[str] = set()
    waiting = [annotation]
    while waiting:
        node = waiting.pop()
        in_path = node.parent is not None and node.parent.type == "nested_type_identifier"
        if (node.type == "type_identifier" and not in_path) or (node.type == "identifier" and in_path):
            names.add(text_of(node, data))
        waiting += node.named_children
    return names
