"""Finds the parameters and functions without annotations."""

from collections.abc import Sequence

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.slots.functions import Function, Parameter, functions
from lsp_server.slots.known_types import Known, KnownTypes
from lsp_server.slots.slot import Slot

_PYTHON_RECEIVERS = frozenset({"self", "cls", "mcs"})


def find_annotations(snapshot: Snapshot) -> list[Slot]:
    """Return the missing annotations of a text. `known` is set where the file itself says the type."""
    found = functions(snapshot)
    return _slots(snapshot, found, KnownTypes(found, snapshot.language.id, snapshot.source.data))


def find_bare_annotations(snapshot: Snapshot) -> list[Slot]:
    """Return the missing annotations of a text, without a look at what the file says of them: that takes longer."""
    return _slots(snapshot, functions(snapshot), None)


def _slots(snapshot: Snapshot, found: Sequence[Function], known: KnownTypes | None) -> list[Slot]:
    if snapshot.path.endswith(".pyi"):
        return []
    in_style = any(map(_has_annotation, found))
    slots: list[Slot] = []
    for function in found:
        if function.node.has_error:  # what it returns may be in the part that does not parse
            continue
        if function.takes_types:
            slots += [_of_parameter(snapshot, each, known) for each in function.parameters if _lacks_type(each)]
        if function.takes_return and function.returns is None:
            slots.append(_of_return(snapshot, function, known))
    return slots if in_style else [attrs.evolve(slot, in_style=False) for slot in slots]


def annotates(snapshot: Snapshot) -> bool:
    """Return whether the functions of a text have annotations."""
    return any(map(_has_annotation, functions(snapshot)))


def _has_annotation(function: Function) -> bool:
    return function.returns is not None or any(each.type is not None for each in function.parameters)


def _lacks_type(parameter: Parameter) -> bool:
    return parameter.type is None and parameter.name not in _PYTHON_RECEIVERS


def _of_parameter(snapshot: Snapshot, parameter: Parameter, known: KnownTypes | None) -> Slot:
    offset = snapshot.source.offset_of_byte
    start = end = offset(parameter.node.end_byte)
    if snapshot.text.startswith("?", end):
        start = end = end + 1
    after = ""
    if snapshot.language.id == "python" and parameter.value is not None:
        end, after = offset(parameter.value.start_byte), " = "
    type_ = known.of_parameter(parameter) if known is not None else None
    title = f"the type of `{parameter.stars}{parameter.name}`"
    return _slot(start, end, ": ", after, title, type_)


def _of_return(snapshot: Snapshot, function: Function, known: KnownTypes | None) -> Slot:
    end = snapshot.source.offset_of_byte(function.head.end_byte)
    type_ = known.of_return(function) if known is not None else None
    before = " -> " if snapshot.language.id == "python" else ": "
    title = f"what `{function.name}` returns"
    return _slot(end, end, before, "", title, type_)


def _slot(start: int, end: int, before: str, after: str, title: str, known: Known | None) -> Slot:
    if known is None:
        return Slot(start, end, before, after, "type", title)
    return Slot(start, end, before, after, "type", title, known.type, known.why, known.is_sure)
