"""Requests that belong to one fill run beside each other, and none goes on when another has failed."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def together(coroutines: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Return what all of them return, in order. Raises the first exception, with the others cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except* Exception as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
