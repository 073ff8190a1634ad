"""What the requests of all dialects share: their JSON bodies, and how several of them run at once."""

import asyncio
import json
from collections.abc import Collection, Coroutine, Iterable
from typing import Any, TypeVar

import attrs

from engine.protocol.strict_converter import strict_converter

_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")
_converter = strict_converter()


def write_json(request: attrs.AttrsInstance, omitted: Collection[str] = ()) -> str:
    """Return a request as JSON, without the fields that are None or named in `omitted`."""
    fields = attrs.asdict(request).items()
    return json.dumps({name: value for name, value in fields if value is not None and name not in omitted})


def read_json(body: bytes, answer_class: type[_Answer]) -> _Answer | None:
    """Return the answer in `body`; None when it is not JSON or has another shape. Unknown fields are ignored."""
    try:
        return _converter.structure(json.loads(body), answer_class)
    except Exception:  # json and cattrs raise what a bad body provokes: ValueError, RecursionError, KeyError
        return None


async def run_together(coroutines: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Run the requests of one fill at once and return their results in order.

    Raises the first exception after cancelling the other requests.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except* Exception as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
