"""Decides which fill of a slot is offered: it must be code of the right kind, and the model must be sure of it."""

import builtins
import re

import attrs
import tree_sitter

from engine.protocol.confidence import confidence_between, start_confidence
from engine.protocol.messages import Candidate, Filled
from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import Language
from lsp_server.slots.docstrings import doc_targets, summary
from lsp_server.slots.slot import Shape, Slot, matches, text_of
from lsp_server.suggest.pipeline import Plan, present

UNSURE = "the model is not sure enough"
_STUB = re.compile(
    r"pass|\.\.\.|raise NotImplementedError.*|(todo|unimplemented)!.*|return;?|;|[{}\s]*"
    r"|(panic!?|throw new \w*)\s?\(.*\b(todo|unimplemented|implement(ed)?)\b.*|throw new (NotImpl|Unimpl)\w*.*",
    re.DOTALL | re.IGNORECASE,
)
_SENTENCE = re.compile(r"[A-Z`a-z][^\"'\\\\]*[\w.)`]")
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


# By the fills of held-out packages (benchmarks/quality): of the types from 0.9 on 19 of 21 were what had been there,
# of those from 0.5 to 0.9 half; of the bodies from 0.5 on 9 of 12.
_SURE: dict[Shape, float] = {"type": 0.9, "body": 0.8, "expression": 0.8, "docstring": 0.8}
"""How sure the model must be for a fill to be offered."""
DOUBTFUL = 0.5
"""How sure it must be for a fill to be asked about."""


@attrs.frozen
class Verdict:
    """The text for a slot, with how it came about; or "" and why there is none."""

    text: str
    reason: str
    doubtful: bool = False


class Judge:
    """Judges the fills of one text."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._language = snapshot.language
        self._names = names_of_types(snapshot)
        self._summaries = {summary(target.doc) for target in doc_targets(snapshot) if target.doc}

    def verdict(self, slot: Slot, plan: Plan, filled: Filled) -> Verdict:
        """Return what to do with the best candidate."""
        candidate = filled.candidates[0]
        text, confidence = self.read(slot, plan, filled)
        if not text:
            return Verdict("", "the model wrote nothing that fits" if candidate.text.strip() else UNSURE)
        if confidence < DOUBTFUL:
            return Verdict("", UNSURE)
        reason = f"the model is {confidence:.0%} sure".replace("%", " %")
        return Verdict(text, reason, doubtful=confidence < _SURE[slot.shape])

    def read(self, slot: Slot, plan: Plan, filled: Filled) -> tuple[str, float]:
        """Return the text that the best candidate has for a slot, "" for none that fits, and how sure the model is."""
        candidate = filled.candidates[0]
        if slot.shape == "type":
            return self._type(candidate)
        if slot.shape == "docstring":
            return self._docstring(candidate)
        presented = present(plan, filled)
        text = presented[0].text.strip() if presented else ""
        if candidate.finish != "complete" or _STUB.fullmatch(text):
            return "", 0.0
        return text, text_confidence(candidate, text)

    def _type(self, candidate: Candidate) -> tuple[str, float]:
        text = leading_type(candidate.text.lstrip(), self._language).strip()
        if not is_type(text, self._language, self._names):
            return "", 0.0
        start = candidate.text.find(text)
        confidence = start_confidence(candidate, start, start + len(text))
        if start + len(text) == len(candidate.text.rstrip()):
            confidence *= candidate.end_confidence
        return text, confidence

    def _docstring(self, candidate: Candidate) -> tuple[str, float]:
        text = re.split("\n|\"{3}|'{3}|\\*/", candidate.text.strip(), maxsplit=1)[0].strip()
        if not _SENTENCE.fullmatch(text) or len(text.split()) < 2 or text in self._summaries:
            return "", 0.0
        # A sentence has many right wordings, so what counts is how sure the model is of a token on average.
        return text, text_confidence(candidate, text) ** (1 / max(len(candidate.tokens), 1))


def text_confidence(candidate: Candidate, text: str) -> float:
    """Return how likely the whole of `text` is right: the product over its lines, and that it ends there."""
    position, confidence = 0, 1.0
    for line in filter(None, map(str.strip, text.split("\n"))):
        start = candidate.text.find(line, position)
        if start < 0:
            return confidence_between(candidate, 0, len(candidate.text)) * candidate.end_confidence
        confidence *= confidence_between(candidate, start, start + len(line))
        position = start + len(line)
    return confidence * (candidate.end_confidence if not candidate.text[position:].strip() else 1.0)


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
