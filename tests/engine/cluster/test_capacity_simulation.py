"""The simulation of benchmarks/scale/capacity.py, where its answers can be computed by hand."""

import attrs
import pytest

pytest.importorskip("simpy", reason="simpy is not installed; `make setup` installs it")

from benchmarks.scale.capacity_simulation import Engine, KeyCost, Limits, Load, people_for, replicas_for, simulate

_KEY = KeyCost(pause=200.0, read=0.0, steps=4, step=5.0)
_ENGINE = Engine("by hand", [_KEY], factors={1: 1.0, 16: 4.0}, cold=0.0, kept=1000, way=3.0, together=16)


def test_one_person_waits_for_the_steps_and_the_way() -> None:
    found = simulate(_ENGINE, Load(1), replicas=1, seconds=20)
    assert found.ms.p50 == found.ms.p95 == 4 * 5.0 + 3.0
    assert found.answered > 0.98
    assert found.busy == pytest.approx(4 * 5.0 / 200.0, rel=0.05)


def test_a_key_cancels_the_fill_before_it() -> None:
    slow = attrs.evolve(_ENGINE, keys=[attrs.evolve(_KEY, steps=50)])
    found = simulate(slow, Load(1), replicas=1, seconds=20)
    assert found.answered < 0.02, found
    assert found.busy > 0.4


def test_a_person_whose_context_is_gone_has_it_read_again() -> None:
    cold = attrs.evolve(_ENGINE, cold=120.0)
    kept = simulate(cold, Load(4), replicas=1, seconds=40)
    dropped = simulate(attrs.evolve(cold, kept=1), Load(4), replicas=1, seconds=40)
    assert kept.ms.p50 < 60
    assert dropped.ms.p95 > kept.ms.p95 + 60
    assert dropped.busy > kept.busy + 0.3


def test_more_people_need_more_replicas_and_more_replicas_carry_more_people() -> None:
    few, many = (replicas_for(_ENGINE, Load(people), Limits(40.0), 10) for people in (5, 60))
    assert few == 1
    assert many > 2
    assert people_for(_ENGINE, 1, 1.0, Limits(40.0), 10) < people_for(_ENGINE, 2, 1.0, Limits(40.0), 10)


def test_a_lost_replica_costs_its_people_one_slow_answer() -> None:
    cold = attrs.evolve(_ENGINE, cold=100.0)
    whole = simulate(cold, Load(20), replicas=4, seconds=60)
    lost = simulate(cold, Load(20), replicas=4, seconds=60, lost_s=10)
    assert lost.answered > whole.answered - 0.02
    assert lost.loss.count > 0
    assert lost.loss.p99 >= whole.ms.p99
