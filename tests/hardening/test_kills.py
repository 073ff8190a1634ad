"""A client whose engine, disk or folder goes at any moment: it says so in one line, and the next session works."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.client.launcher import EngineOptions
from hardening.kills import FAULTS, Fault, Place, points_of, small_disk, strike

pytestmark = pytest.mark.slow
_FILLING = "ask"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(folder))
    place = Place(folder, EngineOptions(model="embedded", threads=1))
    yield place
    place.end()


def test_an_engine_may_be_killed_at_every_await_point_of_a_client(place: Place) -> None:
    points = points_of(place)
    assert len(points) >= 7, "a session waits in at least seven places"
    assert all(strike(place, FAULTS[0], point) for point in points)


@pytest.mark.parametrize("fault", FAULTS[1:], ids=lambda fault: fault.name)
def test_a_fill_may_be_struck_by_anything(place: Place, fault: Fault) -> None:
    with small_disk(place.folder) as disk:
        if fault.name == "the disk is full" and disk is None:
            pytest.skip("only root on Linux can mount a small disk")
        (point,) = [each for each in points_of(place) if each.place.endswith(f" {_FILLING}")]
        assert strike(place, fault, point)
        place.end()
