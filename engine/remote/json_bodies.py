"""JSON as remote servers write and read it: attrs classes out, attrs classes in, and nothing taken on trust."""

import json
from collections.abc import Collection
from typing import TypeVar

import attrs

from engine.protocol.strict_converter import strict_converter

_Answer = TypeVar("_Answer")


def write_json(request: attrs.AttrsInstance, without: Collection[str] = ()) -> str:
    """Return a request as JSON; fields that are None, and those named in `without`, are left out."""
    fields = attrs.asdict(request).items()
    return json.dumps({name: value for name, value in fields if value is not None and name not in without})


def read_json(body: bytes, kind: type[_Answer]) -> _Answer | None:
    """Return the answer in `body`; None when it is no JSON, or not of this kind. Unknown fields are ignored."""
    try:
        return _converter.structure(json.loads(body), kind)
    except Exception:  # json and cattrs let through whatever the text provokes: ValueError, RecursionError, KeyError
        return None


_converter = strict_converter()
