"""Runs the editing machine: so many operations, from a seed; for `make soak` with several editors at a time."""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import attrs
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from hardening.bench import Bench
from hardening.editing import Counts
from hardening.editing_machine import EditingMachine
from hardening.running_engine import engine_of
from hardening.work import Row, Work, told

_STEPS = 200
_SHORT_EXAMPLES = 2
"""Hypothesis begins with the shortest examples."""
_BATCH = 4_000
_MILLION = 1_000_000
_MOST_LOST = 5
_MOST_EDITORS = 8
_SEEDS_APART = 10_000
"""Between two editors: more batches than one does."""


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


@attrs.frozen
class Share:
    """One editor's part: batches with seeds from `seed` on, in its own `folder`, for so many seconds or operations."""

    name: str
    folder: Path
    seed: int
    seconds: float
    operations: int


@attrs.frozen
class Done:
    """What one editor did, and what it lost."""

    counts: Counts
    disasters: int
    lost: list[str]


def soak(work: Work) -> list[Row]:
    """Edit in one editor for each processor: a single one mostly waits for its server and its engine."""
    editors = min(max(os.cpu_count() or 1, 1), _MOST_EDITORS)
    shares = [_share(work, number, editors) for number in range(editors)]
    # The children of a fork would share hypothesis' state.
    with ProcessPoolExecutor(editors, get_context("spawn")) as pool:
        done = list(pool.map(_edit, shares))
    counts = [each.counts for each in done]
    compared = f"{sum(each.echoes for each in counts):,} texts compared"
    silent = f"{sum(each.silent for each in counts)} without a suggestion to compare"
    answers = f"{sum(each.answers for each in counts):,} answers"
    seen = f"{compared}, {silent}, {answers}, {sum(each.disasters for each in done)} disasters, {editors} editors"
    lost = [line for each in done for line in each.lost]
    operations = sum(each.operations for each in counts)
    return [Row("operations of an editor, engines that die meanwhile", operations, lost, seen)]


def _share(work: Work, number: int, editors: int) -> Share:
    folder = work.folder / f"editor-{number}"
    folder.mkdir(mode=0o700)
    name = f"editor {number + 1} of {editors}"
    return Share(name, folder, work.seed + number * _SEEDS_APART, work.left, _MILLION // editors)


def _edit(share: Share) -> Done:
    """Edit in batches, each with a seed of its own. Runs in a process of its own."""
    for name in ("RUNTIME", "DATA", "CONFIG"):
        os.environ[f"MIDSPAN_{name}_DIR"] = str(share.folder)
    bench, until, lost = Bench(share.folder), time.monotonic() + share.seconds, list[str]()
    number = share.seed
    try:
        while time.monotonic() < until and bench.counts.operations < share.operations and len(lost) < _MOST_LOST:
            try:
                run(bench, _BATCH, number)
            except Exception as error:  # A failure of hypothesis itself is one too: it says that something is flaky.
                lost.append(f"seed {number}: {told(error)}")
                print("\n".join([str(error), *getattr(error, "__notes__", [])]), flush=True)
            number += 1
            print(f"{time.strftime('%H:%M:%S')} {share.name}: {bench.counts.operations:,} operations", flush=True)
    finally:
        bench.close()
        if (engine := engine_of(share.folder)) is not None:
            engine.terminate()
    return Done(bench.counts, bench.engine.disasters, lost)
