"""`midspan+URL`: a user's own engine asks `midspan serve` of a team, which keeps its users apart."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
from http_service import PREFIX, SUFFIX, HttpService, http_service
from support.engine_process import end, poll

from engine.client.address import runtime_paths_of
from engine.client.connection import EngineClient, EngineFailure
from engine.client.launcher import EngineOptions, connect_or_start
from engine.http.team import scope_of
from engine.protocol.framing import pack, unpack_all
from engine.protocol.memory_messages import Forget, Learn, MemoryStatus, MemoryStatusRequest
from engine.protocol.messages import Fill, Filled, Message, Shutdown

_ANN, _BOB = "ann-" + "a" * 32, "bob-" + "b" * 32
_SECRET = "zanzibar_flotilla_of_ann = compute_the_secret_number(41, 'only ann knows it')\n" * 4
_HOLE = Fill(id=1, prefix=PREFIX, suffix=SUFFIX, max_tokens=8, budget_ms=60_000)


@pytest.fixture(scope="module")
def team(running: EngineOptions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    """A service for two people."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(f"ann {_ANN}\nbob {_BOB}\n")
    file.chmod(0o600)
    with http_service(Path(running.model), "--token-file", str(file), "--rate", "0", "--log") as service:
        yield service


@asynccontextmanager
async def _engine_of(team: HttpService, token: str, folder: Path) -> AsyncIterator[EngineClient]:
    """The engine of a person, on a machine of their own, which asks the team."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_RUNTIME_DIR", str(folder))
        patch.setenv("MIDSPAN_API_KEY", token)
        options = EngineOptions(model=f"midspan+{team.url}", threads=1)
        client = await connect_or_start(options, "test")
        try:
            yield client
        finally:
            await client.close()
            await asyncio.to_thread(end, runtime_paths_of(options.model))


def _raw(team: HttpService, path: str, *messages: Message, token: str) -> tuple[int, list[Message]]:
    """Send frames as an attacker would: with any fields."""
    body = b"".join(pack(message) for message in messages)
    answer = team.client().post(path, content=body, headers={"authorization": f"Bearer {token}"})
    return answer.status_code, list(unpack_all(answer.content)) if answer.status_code == 200 else []


async def test_a_fill_over_the_team_is_the_engines_own_with_its_confidence(
    team: HttpService, running: EngineOptions, tmp_path: Path
) -> None:
    direct = await connect_or_start(running, "test")
    expected = await direct.fill(_HOLE)
    await direct.close()
    async with _engine_of(team, _ANN, tmp_path) as client:
        filled = await client.fill(_HOLE)
        assert client.welcome.model.server == team.url.removeprefix("http://")
    assert filled.candidates == expected.candidates
    assert filled.steps == expected.steps
    assert filled.ms.total >= expected.ms.denoise > 0


async def test_the_memory_of_a_workspace_goes_along_without_its_place(team: HttpService, tmp_path: Path) -> None:
    async with _engine_of(team, _ANN, tmp_path) as client:
        for number in range(40):
            await client.learn(Learn("/home/ann/project", f"part{number}.py", f"{_SECRET}# {number}\n"))
        status = await client.memory_status("/home/ann/project")
        assert (status.workspace, status.files) == ("/home/ann/project", 40)
        explained = attrs.evolve(
            _HOLE, prefix="zanzibar_flotilla_of_ann = ", suffix="", workspace="/home/ann/project", explain=True
        )
        origins = (await client.fill(explained)).candidates[0].origins
        assert origins, "the memory has no part in the fill"
        await client.forget(Forget("/home/ann/project", keep=["part1.py"]))
        assert (await client.memory_status("/home/ann/project")).files == 1
    assert "/home/ann" not in "".join(team.lines)


async def test_a_cancelled_fill_ends_in_the_teams_engine(slow_team: HttpService, tmp_path: Path) -> None:
    bearer = {"authorization": f"Bearer {_ANN}"}
    async with _engine_of(slow_team, _ANN, tmp_path) as client:
        long = Fill(id=1, prefix="x = ", suffix="", max_tokens=2048, extent="lines", budget_ms=60_000)
        filling = asyncio.create_task(client.fill(long))
        await asyncio.to_thread(poll, lambda: slow_team.metric("engine_fills_active", **bearer) == 1)
        filling.cancel()
        await asyncio.to_thread(poll, lambda: slow_team.metric("engine_fills_active", **bearer) == 0)
        assert slow_team.metric("engine_fills_total", **bearer) == 0, "the fill ran to its end"


@pytest.fixture
def slow_team(slow_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        with http_service(slow_model, "--rate", "0", MIDSPAN_SERVE_TOKEN=_ANN) as service:
            yield service
        end(runtime_paths_of(str(slow_model)))


async def test_a_wrong_token_is_told_and_nothing_else(team: HttpService, tmp_path: Path) -> None:
    async with _engine_of(team, "x" * 40, tmp_path) as client:
        with pytest.raises(EngineFailure, match="does not accept the key"):
            await client.fill(_HOLE)
        await client.learn(Learn("/w", "a.py", _SECRET))
        assert (await client.memory_status("/w")).files == 0


def test_an_attacker_with_a_token_finds_nothing_of_another_user(team: HttpService) -> None:
    learned = [Learn("project", f"part{number}.py", f"{_SECRET}# {number}\n", id=number) for number in range(8)]
    assert _raw(team, "/midspan/memory", *learned, token=_ANN)[0] == 200
    hole = Fill(id=1, prefix="zanzibar_flotilla_of_ann = ", suffix="", max_tokens=24, budget_ms=60_000, explain=True)
    of_ann = _fill(team, attrs.evolve(hole, workspace="project", path="x.py"), _ANN)
    assert of_ann.candidates[0].origins
    scope = team_scope("ann")
    for name in (
        "project",
        f"{scope}:project",
        f":{scope}:project",
        f"{scope}:project\0",
        "../project",
        scope,
        ":project",
    ):
        stolen = _fill(team, attrs.evolve(hole, workspace=name, path="part1.py", scope=scope), _BOB)
        assert not stolen.candidates[0].origins, name
        assert "compute_the_secret" not in stolen.candidates[0].text
        _, answers = _raw(team, "/midspan/memory", MemoryStatusRequest(name), token=_BOB)
        assert isinstance(answers[0], MemoryStatus)
        assert answers[0].files == 0, name
        assert _raw(team, "/midspan/memory", Forget(name), token=_BOB)[0] == 200
    assert _raw(team, "/midspan/memory", MemoryStatusRequest(""), token=_BOB)[0] == 400
    _, answers = _raw(team, "/midspan/memory", MemoryStatusRequest("project"), token=_ANN)
    assert isinstance(answers[0], MemoryStatus)
    assert answers[0].files == 8, "another user had it forgotten"


def test_how_fast_a_text_is_read_tells_no_other_user_of_it(team: HttpService) -> None:
    hole = Fill(id=1, prefix=_SECRET * 6 + "x = ", suffix="", max_tokens=4, budget_ms=60_000)
    _fill(team, hole, _ANN)
    assert _fill(team, hole, _ANN).cached_tokens > 0
    assert _fill(team, attrs.evolve(hole, scope=team_scope("ann")), _BOB).cached_tokens == 0
    bearer = {"authorization": f"Bearer {_BOB}"}
    body = {"input_prefix": hole.prefix, "n_predict": 4, "t_max_predict_ms": 60_000}
    assert team.post("/infill", body, **bearer).json()["timings"]["cache_n"] <= _fill(team, hole, _BOB).cached_tokens


def team_scope(owner: str) -> str:
    return scope_of(owner)


def _fill(team: HttpService, fill: Fill, token: str) -> Filled:
    status, answers = _raw(team, "/midspan/fill", fill, token=token)
    assert status == 200
    assert isinstance(answers[0], Filled)
    return answers[0]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/midspan/fill", b""),
        ("/midspan/fill", b"\0\0"),
        ("/midspan/fill", b"\xff\xff\xff\xff"),
        ("/midspan/fill", pack(_HOLE)[:-3]),
        ("/midspan/fill", pack(_HOLE) * 2),
        ("/midspan/fill", pack(Shutdown())),
        ("/midspan/fill", pack(attrs.evolve(_HOLE, max_tokens=10**6))),
        ("/midspan/memory", pack(_HOLE)),
        ("/midspan/memory", pack(Learn("", "a.py", "x"))),
        ("/midspan/memory", pack(Learn("w", "", "x"))),
        ("/midspan/memory", pack(Learn("w", "a.py", "x")) * 33),
        ("/midspan/memory", pack(Learn("w", "a.py", "x")) + pack(Learn("v", "a.py", "x"))),
    ],
)
def test_a_bad_frame_is_one_clear_error(team: HttpService, path: str, body: bytes) -> None:
    answer = team.client().post(path, content=body, headers={"authorization": f"Bearer {_ANN}"})
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]["message"]


async def test_another_memory_is_taught_again_in_the_background(
    team: HttpService, running: EngineOptions, tmp_path: Path
) -> None:
    async with _engine_of(team, _ANN, tmp_path) as client:
        for number in range(3):
            await client.learn(Learn("/again", f"part{number}.py", f"{_SECRET}# {number}\n"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MIDSPAN_RUNTIME_DIR", str(runtime_paths_of(running.model).directory))
            theirs = await connect_or_start(running, "test")
        await theirs.shutdown()
        await theirs.close()
        hole = attrs.evolve(_HOLE, workspace="/again")
        begun = time.monotonic()
        while (await client.memory_status("/again")).files != 3:
            assert time.monotonic() < begun + 60
            await client.fill(hole)
