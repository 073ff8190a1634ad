"""Runs the editing machine: so many operations, from a seed."""

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from hardening.bench import Bench
from hardening.editing_machine import EditingMachine
from hardening.running_engine import engine_of
from hardening.work import Row, Work, told

_STEPS = 200
_SHORT_EXAMPLES = 2
"""Hypothesis begins with the shortest examples."""
_BATCH = 4_000
_MILLION = 1_000_000
_MOST_LOST = 5


def run(bench: Bench, operations: int, number: int) -> None:
    """Do about so many operations with the seed `number`. Raises the shrunk failure, with the steps that lead to it."""
    machine = type("Machine", (EditingMachine,), {"bench": bench})
    chosen = settings(
        max_examples=operations // _STEPS + _SHORT_EXAMPLES,
        stateful_step_count=_STEPS,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    seed(number)(machine)
    run_state_machine_as_test(machine, settings=chosen)


def soak(work: Work) -> list[Row]:
    """Edit in batches, each with a seed of its own, until the time is over."""
    bench, lost, batch = Bench(work.folder), list[str](), 0
    try:
        while work.left > 0 and bench.counts.operations < _MILLION and len(lost) < _MOST_LOST:
            number = work.seed + batch
            try:
                run(bench, _BATCH, number)
            except Exception as error:  # A failure of hypothesis itself is one too: it says that something is flaky.
                lost.append(f"seed {number}: {told(error)}")
                work.say("\n".join([str(error), *getattr(error, "__notes__", [])]))
            batch += 1
            work.say(f"{bench.counts.operations:,} operations")
    finally:
        bench.close()
        if (engine := engine_of(work.folder)) is not None:
            engine.terminate()
    counts = bench.counts
    compared = f"{counts.echoes:,} texts compared, {counts.silent} without a suggestion to compare"
    seen = f"{compared}, {counts.answers:,} answers, {bench.engine.disasters} disasters"
    return [Row("operations of an editor, engines that die meanwhile", counts.operations, lost, seen)]
