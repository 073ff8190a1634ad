"""The link to a real engine process: it starts the engine when needed, shares it, and starts it again when it dies."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import attrs
import psutil
import pytest
from support.lsp_editor import engine_home, eventually

from engine.client import launcher
from engine.client.launcher import EngineOptions
from engine.errors import EngineUnavailable
from engine.library.store import choose
from engine.protocol.messages import Fill
from lsp_server.engine_link import link as link_module
from lsp_server.engine_link.link import FIRST_DELAY_S, LONGEST_DELAY_S, EngineLink
from lsp_server.engine_link.status import StatusBoard
from lsp_server.wire import StatusParams

HOLE = Fill(id=0, prefix="total = ", suffix="\n", budget_ms=2000)
LONG = attrs.evolve(HOLE, rule="left-to-right", extent="lines", max_tokens=2000, budget_ms=8000)


@attrs.define
class Bar:
    """In place of the editor's progress bar."""

    messages: list[str] = attrs.field(factory=list)

    def report(self, message: str) -> None:
        self.messages.append(message)


@attrs.define
class Linked:
    """A link, and the states and messages that it showed."""

    link: EngineLink
    shown: list[StatusParams]
    bar: Bar

    @property
    def states(self) -> list[str]:
        return [params.state for params in self.shown]


@pytest.fixture(scope="module")
def options(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineOptions]:
    with engine_home(tmp_path_factory.mktemp("runtime"), tiny_model):
        yield EngineOptions(model=str(tiny_model), threads=1)


def new_link() -> Linked:
    shown: list[StatusParams] = []
    bar = Bar()
    return Linked(EngineLink(StatusBoard(shown.append), lambda: nullcontext(bar)), shown, bar)


@pytest.mark.slow
async def test_nothing_starts_before_the_settings_are_known(options: EngineOptions) -> None:
    linked = new_link()

    assert linked.link.ready() is None
    assert linked.states == []

    linked.link.configure(options)
    await eventually(linked.link.ready)
    await linked.link.close()


async def test_the_first_request_starts_the_engine_and_does_not_wait(options: EngineOptions) -> None:
    linked = new_link()
    linked.link.configure(options)

    assert linked.link.ready() is None
    await eventually(linked.link.ready)

    assert linked.states[0] == "starting"
    assert linked.states[-1] == "ready"
    assert linked.bar.messages
    await linked.link.close()


async def test_several_links_share_one_engine(options: EngineOptions) -> None:
    first, second = new_link(), new_link()
    first.link.configure(options)
    second.link.configure(options)

    clients = await first.link.client(), await second.link.client()

    assert clients[0].welcome.pid == clients[1].welcome.pid
    await first.link.close()
    await second.link.close()


async def test_the_link_is_busy_while_it_fills(options: EngineOptions) -> None:
    linked = new_link()
    linked.link.configure(options)
    client = await linked.link.client()

    filled = await linked.link.fill(client, HOLE)

    assert filled.candidates
    assert linked.states[-2:] == ["busy", "ready"]
    await linked.link.close()


@pytest.mark.slow
async def test_a_killed_engine_is_started_again_for_the_next_request(options: EngineOptions) -> None:
    linked = new_link()
    linked.link.configure(options)
    before = (await linked.link.client()).welcome.pid

    psutil.Process(before).kill()
    await eventually(lambda: linked.states[-1] == "error")
    assert linked.link.ready() is None
    await eventually(linked.link.ready)

    after = await linked.link.client()
    assert after.welcome.pid != before
    assert linked.link.delay_s == 2 * FIRST_DELAY_S
    await linked.link.fill(after, HOLE)
    assert linked.link.delay_s == FIRST_DELAY_S
    await linked.link.close()


async def test_an_engine_that_stops_by_itself_is_no_error(options: EngineOptions) -> None:
    linked = new_link()
    linked.link.configure(options)
    client = await linked.link.client()

    await client.shutdown()
    await eventually(lambda: linked.states[-1] == "idle")
    await linked.link.close()


@pytest.mark.slow
async def test_a_restart_gives_another_engine(options: EngineOptions) -> None:
    linked = new_link()
    linked.link.configure(options)
    before = (await linked.link.client()).welcome.pid

    after = await linked.link.restart()

    assert after.welcome.pid != before
    assert linked.states[-1] == "ready"
    await linked.link.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process is suspended there")
async def test_a_suspended_engine_is_noticed_and_a_restart_ends_it(
    options: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((link_module, "SILENT_S"), (link_module, "ANSWER_S"), (launcher, "ANSWER_S")):
        monkeypatch.setattr(module, name, 0.5)
    linked = new_link()
    linked.link.configure(options)
    client = await linked.link.client()
    os.kill(client.welcome.pid, signal.SIGSTOP)

    with pytest.raises(EngineUnavailable):
        await linked.link.fill(client, HOLE)

    assert linked.states[-1] == "error"
    assert f"process {client.welcome.pid}) does not answer" in linked.shown[-1].message
    after = await linked.link.restart()
    assert after.welcome.pid != client.welcome.pid
    assert (await linked.link.fill(after, HOLE)).candidates
    await linked.link.close()


@pytest.mark.slow
async def test_an_engine_that_cannot_start_gives_the_reason_and_is_retried_with_delays(
    options: EngineOptions, tmp_path: Path
) -> None:
    linked = new_link()
    linked.link.configure(attrs.evolve(options, model=str(tmp_path / "no-such-model")))

    with pytest.raises(EngineUnavailable) as refusal:
        await linked.link.client()
    assert "no-such-model" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert linked.states[-1] == "error"
    assert linked.shown[-1].message == str(refusal.value)

    tries = linked.states.count("error")
    assert linked.link.ready() is None
    assert linked.states.count("error") == tries, "it was retried without a delay"
    assert linked.link.delay_s == 2 * FIRST_DELAY_S
    await eventually(lambda: linked.link.ready() or linked.link.delay_s == 4 * FIRST_DELAY_S)
    assert linked.link.delay_s <= LONGEST_DELAY_S
    await linked.link.close()


@pytest.mark.slow
async def test_other_options_connect_to_another_engine(options: EngineOptions, tmp_path: Path) -> None:
    linked = new_link()
    linked.link.configure(attrs.evolve(options, model=str(tmp_path / "no-such-model")))
    with pytest.raises(EngineUnavailable):
        await linked.link.client()

    linked.link.configure(options)

    assert (await linked.link.client()).welcome.model.name
    await linked.link.close()


async def test_one_who_waits_for_an_engine_that_is_refused_meanwhile_is_told_why(options: EngineOptions) -> None:
    linked = new_link()
    linked.link.configure(options)
    waiting = asyncio.create_task(linked.link.client())
    await asyncio.sleep(0)  # it waits now, and no engine can have answered yet

    linked.link.refuse("nobody confirmed this server")

    with pytest.raises(EngineUnavailable, match="nobody confirmed"):
        await waiting
    await linked.link.close()


@pytest.mark.slow
async def test_a_fill_of_the_engine_before_leaves_the_new_one_s_name_on_the_board(
    tiny_model: Path, slow_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path))
    new = Path(shutil.copytree(tiny_model, tmp_path / "new"))
    config = new / "config.json"
    config.write_text(config.read_text().replace('"tiny"', '"new"'))
    with engine_home(tmp_path / "runtime", slow_model), engine_home(tmp_path / "runtime", new):
        choose(str(slow_model))
        linked = new_link()
        linked.link.configure(EngineOptions(threads=1))
        filling = asyncio.create_task(linked.link.fill(await linked.link.client(), LONG))
        choose(str(new))
        before = await linked.link.change_over()
        assert before is not None
        assert not filling.done()
        await filling

        assert linked.shown[-1].model == "new"
        await before.close()
        await linked.link.close()
