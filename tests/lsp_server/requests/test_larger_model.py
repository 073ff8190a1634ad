"""A larger model in an editor: offered when it was measured, installed while the old one answers, changed over."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.hub_server import Hub
from support.ladder_hub import PATIENT, RUNGS, ladder_hub
from support.lsp_editor import Editor, eventually, shown

from engine.library.ladder import slow_here
from engine.library.store import chosen_model
from lsp_server.requests.ladder import TRIAL_FILLS, too_slow


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with ladder_hub(tmp_path) as hub:
        yield hub


@pytest_asyncio.fixture
async def offered(hub: Hub, editor: Editor) -> AsyncIterator[Editor]:
    """An editor with the embedded model, to which a larger one is offered."""
    await editor.start(PATIENT)
    await editor.open_ready("def add(a, b):\n    return |\n", language="python")
    report = await editor.command("midspan.status", "offer")
    assert report["offer"]["model"] in RUNGS
    assert "(measured here)" in report["offer"]["text"]
    assert editor.statuses[-1].offer.sizeBytes == report["offer"]["sizeBytes"]
    yield editor


async def model_of(editor: Editor) -> Any:
    return (await editor.command("midspan.status"))["engine"]["model"]["name"]


async def test_a_model_is_installed_while_the_old_one_answers_and_then_takes_its_place(
    offered: Editor, hub: Hub
) -> None:
    old = await model_of(offered)
    begun = await offered.command("midspan.installModel")
    with contextlib.suppress(JsonRpcException):
        await offered.command("midspan.installModel")  # a second one is refused, or the first is over
    await shown(offered)
    await eventually(lambda: any("answers from now on" in line for line in offered.warnings()))
    assert chosen_model().model == begun["model"]
    assert await model_of(offered) != old
    assert offered.statuses[-1].offer is None
    await shown(offered)
    assert (await offered.command("midspan.status"))["state"] in ("ready", "busy")


async def test_a_model_whose_engine_does_not_start_leaves_all_as_it_was(offered: Editor, hub: Hub) -> None:
    old = await model_of(offered)
    for repository in hub.repositories.values():
        repository.files = {name: b"GGUF" + bytes(100) for name in repository.files}
    await offered.command("midspan.installModel")
    await eventually(lambda: any("the embedded model goes on" in line for line in offered.warnings()))
    assert chosen_model().model == "embedded"
    assert await model_of(offered) == old


async def test_one_who_asks_twice_while_the_machine_is_measured_gets_one_model(hub: Hub, editor: Editor) -> None:
    await editor.start(PATIENT)
    first, second = (asyncio.create_task(editor.command("midspan.installModel")) for _ in range(2))
    with pytest.raises(JsonRpcException, match="being installed already"):
        await second
    assert (await first)["model"] in RUNGS


@pytest.mark.parametrize("wrong", ["damaged", "gated", "gone"])
async def test_a_pull_that_fails_is_one_line(offered: Editor, hub: Hub, wrong: str) -> None:
    for repository in hub.repositories.values():
        repository.damaged = set(repository.files) if wrong == "damaged" else set()
        repository.gated = wrong == "gated"
    if wrong == "gone":
        hub.repositories.clear()
    await offered.command("midspan.installModel")
    await eventually(lambda: any("the embedded model goes on" in line for line in offered.warnings()))
    (line,) = [line for line in offered.warnings() if "the embedded model goes on" in line]
    assert {"damaged": "arrived damaged", "gated": "is gated", "gone": "that you may see"}[wrong] in line
    assert chosen_model().model == "embedded"


async def test_the_progress_bar_cancels_a_pull(offered: Editor, hub: Hub) -> None:
    for repository in hub.repositories.values():
        repository.stalls = dict.fromkeys(repository.files, 10)
    await offered.command("midspan.installModel")
    await eventually(hub.stalled.is_set)
    bars: dict[Any, list[Any]] = offered.client.progress_reports  # values, not the messages that pytest-lsp annotates
    (token,) = [token for token, reports in bars.items() if "Installing" in (reports[0].title or "")]
    offered.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    await eventually(lambda: bars[token][-1].kind == "end")
    assert chosen_model().model == "embedded"


async def test_nothing_is_offered_to_a_user_whose_settings_name_a_model(hub: Hub, editor: Editor) -> None:
    await editor.start({**PATIENT, "model": "embedded"})
    await editor.open_ready("|\n")
    assert (await editor.command("midspan.status", "offer"))["offer"] is None
    with pytest.raises(JsonRpcException, match="there is no larger model to install"):
        await editor.command("midspan.installModel")


def test_a_model_is_judged_by_the_median_of_its_fills() -> None:
    times = [100.0] * (TRIAL_FILLS // 2) + [900.0] * (TRIAL_FILLS // 2)
    line = too_slow(times, 500, "embedded", RUNGS[0])
    assert "takes 900 ms here, and midspan.budgetMs is 500: the embedded model answers again" in line
    assert f"midspan models use {RUNGS[0]}" in line
    assert too_slow([100.0, *times[:-1]], 500, "embedded", RUNGS[0]) == ""


async def test_a_model_that_is_too_slow_here_gives_its_place_back(hub: Hub, editor: Editor) -> None:
    slow = {**PATIENT, "maxTokens": 512}
    await editor.start(slow, pull=slow)
    await editor.open_ready("def add(a, b):\n    return |\n", language="python")
    old = await model_of(editor)
    await editor.command("midspan.installModel")
    await eventually(lambda: any("answers from now on" in line for line in editor.warnings()))
    # Its fills end at the budget, and the way from the editor and back comes on top of that.
    editor.client.set_configuration({**slow, "budgetMs": 20}, section="midspan")
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    while not any("the embedded model answers again" in line for line in editor.warnings()):
        editor.type("a")
        await shown(editor)
    (line,) = [line for line in editor.warnings() if "answers again" in line]
    assert "to use it all the same run `midspan models use qwen-coder-" in line
    assert chosen_model().model == "embedded"
    assert await model_of(editor) == old
    assert (await editor.command("midspan.status", "offer"))["offer"] is None  # not again in this session
    (slow_one,) = slow_here()
    assert slow_one in RUNGS
