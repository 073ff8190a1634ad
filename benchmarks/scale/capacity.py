"""How many people a team's server carries: measured, simulated, and the simulation checked against real editors.

`make capacity` runs it on a quiet machine, in ten minutes; `--docs` puts the tables and the plot into docs/team.md.
It measures engines with one and two threads, types with 10 to 50 simulated editors at two replicas, simulates the same,
then simulates 10 to 10,000 people. The check needs ray; `--skip-real` leaves it out.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import os
import tempfile
from typing import Annotated

import attrs
import typer
from rich.console import Console

from benchmarks.common.machine import Machine, this_machine
from benchmarks.scale.capacity_editors import RealFigures, Typed, measured_engine, team_server, type_together
from benchmarks.scale.capacity_simulation import (
    Engine,
    KeyCost,
    Limits,
    Load,
    Outcome,
    people_for,
    replicas_for,
    simulate,
)
from engine.schedule.fill_queue import MAX_BATCH

_ROOT = Path(__file__).resolve().parents[2]
_OUT, _PAGE, _PLOT = _ROOT / "benchmarks" / "out", _ROOT / "docs" / "team.md", _ROOT / "docs" / "capacity.svg"
_BEGIN, _END = "<!-- capacity: begin -->", "<!-- capacity: end -->"
TYPING = 0.35
"""The share of a working hour in which a programmer types."""
LIMITS, GPU_LIMITS = Limits(150.0), Limits(400.0)
PEOPLE = (10, 30, 100, 300, 1000, 3000, 10_000)
_EDITORS = (1, 10, 25, 50)
_LOST_S = 12.0
"""Until a killed replica is there again."""


@attrs.frozen
class Check:
    """Editors that typed at two replicas, and what the simulation says of them."""

    real: RealFigures
    simulated: Outcome


@attrs.frozen
class Planned:
    """Replicas for so many people, and what they get: always, and in the ten seconds after one of them is lost."""

    people: int
    replicas: int
    outcome: Outcome


@attrs.define
class Capacity:
    machine: Machine
    checks: list[Check] = attrs.field(factory=list)
    carried: dict[str, int] = attrs.field(factory=dict)
    planned: dict[str, list[Planned]] = attrs.field(factory=dict)


def main(
    keys: Annotated[int, typer.Option(help="Keys that each simulated editor types.")] = 150,
    editors: Annotated[list[int] | None, typer.Option(help="How many editors type at once.")] = None,
    people: Annotated[list[int] | None, typer.Option(help="How many people to plan for.")] = None,
    seconds: Annotated[float, typer.Option(help="Simulated seconds.")] = 60.0,
    skip_real: Annotated[bool, typer.Option("--skip-real", help="Start no replicas.")] = False,
    docs: Annotated[bool, typer.Option("--docs", help="Put the tables and the plot into docs.")] = False,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
) -> None:
    """Measure and simulate; print the tables, write benchmarks/out/capacity.json and capacity.svg."""
    capacity = Capacity(this_machine())
    console = Console(highlight=False, width=120)
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        one, typed = asyncio.run(measured_engine(model, 1, keys))
        two, _ = asyncio.run(measured_engine(model, 2, keys))
        console.print(_describe(one), _describe(two))
        if not skip_real:
            capacity.checks, way = _check(one, typed, list(editors or _EDITORS), keys, Path(folder), model)
            one, two = attrs.evolve(one, way=way), attrs.evolve(two, way=way)
    engines = [one, two, _gpu()]
    for engine in engines:
        limits = LIMITS if engine is not engines[2] else GPU_LIMITS
        capacity.carried[engine.name] = people_for(engine, 1, TYPING, limits, seconds)
        capacity.planned[engine.name] = [
            _plan(engine, count, capacity.carried[engine.name], limits, seconds) for count in people or PEOPLE
        ]
    text = tables(capacity)
    print(text)
    _OUT.mkdir(parents=True, exist_ok=True)
    (_OUT / "capacity.json").write_text(json.dumps(attrs.asdict(capacity), indent=1) + "\n", "utf-8")
    draw(capacity, _PLOT if docs else _OUT / "capacity.svg")
    if docs:
        old = _PAGE.read_text("utf-8")
        before, after = old[: old.index(_BEGIN)], old[old.index(_END) :]
        _PAGE.write_text(f"{before}{_BEGIN}\n\n![replicas over people](capacity.svg)\n\n{text}\n{after}", "utf-8")


def _check(
    one: Engine, typed: list[Typed], editors: list[int], keys: int, folder: Path, model: str
) -> tuple[list[Check], float]:
    """Return what real editors got beside what the simulation says. The first count, one, gives the way's time."""
    most = max(editors)
    everybody = [typed[number % len(typed)] for number in range(most)]
    checks: list[Check] = []
    way = 0.0
    with team_server(model, 2, most, folder) as port:
        for count in sorted(editors):
            real = asyncio.run(type_together(port, everybody[:count], keys))
            if not checks:
                way = max(0.0, real.ms.p50 - simulate(one, Load(1), 2).ms.p50)
            checks.append(Check(real, simulate(attrs.evolve(one.beside(real.taken), way=way), Load(count), 2)))
    return checks, way


def _plan(engine: Engine, people: int, carried: int, limits: Limits, seconds: float) -> Planned:
    """carried: how many people one replica carries. Many replicas even out who types when, and carry more each."""
    load = Load(people, TYPING)
    replicas = replicas_for(engine, load, limits, seconds, first=max(1, people // (4 * max(1, carried))))
    if not replicas:
        return Planned(people, 0, simulate(engine, Load(1, TYPING), 1, 1.0))
    # Twelve of many replicas say what all do; each of them carries its part.
    share = min(1.0, 12 / replicas)
    part = attrs.evolve(load, people=max(1, round(people * share)))
    lost = _LOST_S if replicas > 1 else 0.0
    return Planned(people, replicas, simulate(engine, part, max(1, round(replicas * share)), seconds, lost_s=lost))


def _gpu() -> Engine:
    """DiffusionGemma in fp8 on an H200 at the floors of docs/gpu.md, until it is measured: eight steps of 6.4 ms."""
    keys = [KeyCost(200.0, 1.0, 8, 6.4)]
    name = "H200, DiffusionGemma in fp8 at its floor"
    return Engine(name, keys, {1: 1.0, 8: 1.5, 16: 2.0}, 17.0, 100, 5.0, together=MAX_BATCH)


def _describe(engine: Engine) -> str:
    mean = sum(key.total for key in engine.keys) / len(engine.keys)
    factors = ", ".join(f"{count}: {factor:.2f}" for count, factor in engine.factors.items())
    return f"{engine.name}: {mean:.1f} ms a key, cold {engine.cold:.0f} ms, keeps {engine.kept} contexts; {factors}\n"


def tables(capacity: Capacity) -> str:
    """Return the tables as Markdown."""
    lines = [f"Measured on {capacity.machine.processor}, {capacity.machine.cores} cores.", ""]
    if capacity.checks:
        lines += [
            "Editors that all type at once, at two replicas; clients and server take their part of the same cores. In",
            "brackets the simulation, which is told that part:",
            "",
            "| editors | requests | part | p50, ms | p95, ms | answered | errors |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for check in capacity.checks:
            real, other = check.real, check.simulated
            lines.append(
                f"| {real.editors} | {real.requests:,} | {real.taken:.0%} | {real.ms.p50:.0f} ({other.ms.p50:.0f}) | "
                f"{real.ms.p95:.0f} ({other.ms.p95:.0f}) | {real.answered:.0%} ({other.answered:.0%}) | {real.failed} |"
            )
        lines.append("")
    for name, carried in capacity.carried.items():
        lines += [
            f"**{name}**: one replica carries {carried} people, simulated.",
            "",
            "| people | replicas | p50, p95 ms | answered | after a loss, p95 ms |",
            "| --- | --- | --- | --- | --- |",
        ]
        for plan in capacity.planned[name]:
            outcome = plan.outcome
            loss = f"{outcome.loss.p95:.0f}" if plan.replicas > 1 else "all wait for its start"
            if plan.replicas:
                lines.append(
                    f"| {plan.people:,} | {plan.replicas} | {outcome.ms.p50:.0f}, {outcome.ms.p95:.0f} | "
                    f"{outcome.answered:.0%} | {loss} |"
                )
        lines.append("")
    return "\n".join(lines)


def draw(capacity: Capacity, file: Path) -> None:
    """Draw replicas over people, for each kind of engine."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "midspan"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, plans in capacity.planned.items():
        known = [plan for plan in plans if plan.replicas]
        axes.loglog([plan.people for plan in known], [plan.replicas for plan in known], marker="o", label=name)
    axes.set_xlabel("people")
    axes.set_ylabel("replicas")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    typer.run(main)
