"""A discrete-event simulation of people who type, and of the engines that answer them, on measured figures.

An engine steps all its holes together: each step is a pass, in which a hole's context is read further, or its canvas is
denoised. A key cancels the fill of the key before it. All times are milliseconds.
"""

import bisect
import itertools
import random
from collections import OrderedDict
from collections.abc import Generator

import attrs
import simpy

from benchmarks.common.statistic import Percentiles
from engine.schedule.fill_queue import HURRIED_ON_CPU

_COLD_MS = 10_000.0
"""Simulated time in which contexts are read for the first time, and nothing counts."""
_VIRTUAL_NODES = 100
"""Places of one replica on Ray's ring."""


@attrs.frozen
class KeyCost:
    """A key of recorded typing: the pause until the next one, and what its fill took on an idle engine of one's own."""

    pause: float
    read: float
    steps: int
    step: float

    @property
    def total(self) -> float:
        return self.read + self.steps * self.step


@attrs.frozen
class Engine:
    """What an engine was measured at.

    `factors` says how many times as long a step over so many holes takes. `cold` is what reading a whole context takes,
    `kept` how many people's contexts it keeps, `way` what is between client and engine, `together` how many fills
    are under way at most.
    """

    name: str
    keys: list[KeyCost]
    factors: dict[int, float]
    cold: float
    kept: int
    way: float = 0.0
    together: int = HURRIED_ON_CPU

    def beside(self, taken: float) -> "Engine":
        """Return this engine where other processes take a share of its processor."""
        longer = 1 / (1 - min(taken, 0.9))
        keys = [attrs.evolve(key, read=key.read * longer, step=key.step * longer) for key in self.keys]
        return attrs.evolve(self, keys=keys, cold=self.cold * longer)

    def factor(self, holes: int) -> float:
        known = sorted(self.factors)
        at = bisect.bisect_left(known, holes)
        if at == 0 or at == len(known):
            return self.factors[known[min(at, len(known) - 1)]]
        low, high = known[at - 1], known[at]
        share = (holes - low) / (high - low)
        return self.factors[low] + share * (self.factors[high] - self.factors[low])


@attrs.frozen
class Load:
    """People at their editors. `typing` is the share of the time in which they type, in bursts of `burst` ms."""

    people: int
    typing: float = 1.0
    burst: float = 20_000.0


@attrs.frozen
class Outcome:
    """Milliseconds of the answered requests; shares of all requests; `loss` are those of the time after a loss."""

    requests: int
    ms: Percentiles
    answered: float
    busy: float
    loss: Percentiles


@attrs.define(eq=False)
class _Job:
    person: int
    read: float
    steps: int
    step: float
    asked: float
    done: simpy.Event
    cancelled: bool = False


class _Replica:
    """Runs passes over the fills under way; the newest waiting one joins them (engine/schedule/fill_queue.py)."""

    def __init__(self, environment: simpy.Environment, engine: Engine, piece: float) -> None:
        self._environment, self._engine, self._piece = environment, engine, piece
        self._jobs: list[_Job] = []
        self._under_way: list[_Job] = []
        self._wake = environment.event()
        self._contexts: OrderedDict[int, float] = OrderedDict()
        """What is left to read of people's contexts. A cancelled fill keeps what it has read."""
        self.alive = True
        self.busy = 0.0
        environment.process(self._run())

    def submit(self, job: _Job) -> None:
        self._contexts.setdefault(job.person, self._engine.cold)
        self._contexts.move_to_end(job.person)
        if len(self._contexts) > self._engine.kept:
            self._contexts.popitem(last=False)
        self._jobs.append(job)
        if not self._wake.triggered:
            self._wake.succeed()

    def _left(self, job: _Job) -> float:
        return job.read + self._contexts.get(job.person, 0.0)

    def _read(self, job: _Job) -> None:
        left = self._contexts.get(job.person, 0.0)
        if left > 0:
            self._contexts[job.person] = max(0.0, left - self._piece)
        job.read = max(0.0, job.read - max(0.0, self._piece - left))

    def lose(self) -> list[_Job]:
        """End; return what was under way."""
        self.alive, jobs, self._jobs = False, self._jobs, []
        self._contexts.clear()
        return jobs

    def start(self) -> None:
        self.alive = True

    def _joined(self) -> list[_Job]:
        """Return the fills of the next step."""
        under_way = [job for job in self._under_way if job in self._jobs]
        waiting = [job for job in self._jobs if job not in under_way]
        return under_way + waiting[::-1][: self._engine.together - len(under_way)]

    def _run(self) -> Generator[simpy.Event, None, None]:
        while True:
            self._jobs = [job for job in self._jobs if not job.cancelled]
            if not self._jobs:
                self._wake = self._environment.event()
                yield self._wake
                continue
            batch = self._under_way = self._joined()
            reading = [job for job in batch if self._left(job) > 0]
            writing = [job for job in batch if job not in reading]
            took = sum(min(self._left(job), self._piece) for job in reading)
            if writing:
                took += max(job.step for job in writing) * self._engine.factor(len(writing))
            yield self._environment.timeout(took)
            self.busy += took
            for job in reading:
                self._read(job)
            for job in writing:
                job.steps -= 1
                if job.steps <= 0 and not job.cancelled and job in self._jobs:
                    self._jobs.remove(job)
                    job.done.succeed()


def simulate(
    engine: Engine, load: Load, replicas: int, seconds: float = 60.0, seed: int = 1, lost_s: float = 0.0
) -> Outcome:
    """Let people type for so long, after ten seconds that do not count.

    With `lost_s` the first replica is lost in the middle, for so many seconds.
    """
    return _Run(engine, load, replicas, seconds * 1000 + _COLD_MS, seed, lost_s * 1000).outcome()


class _Run:
    def __init__(self, engine: Engine, load: Load, replicas: int, ends: float, seed: int, lost: float) -> None:
        self._environment = simpy.Environment()
        self._engine, self._load, self._ends, self._lost = engine, load, ends, lost
        self._random = random.Random(seed)
        piece = max(engine.cold / 12, 1.0)  # a context of 768 tokens is read 64 at a time
        self._replicas = [_Replica(self._environment, engine, piece) for _ in range(replicas)]
        self._ring = sorted(
            (self._random.random(), number) for number in range(replicas) for _ in range(_VIRTUAL_NODES)
        )
        self._ms: list[tuple[float, float]] = []
        self._asked = 0
        for person in range(load.people):
            self._environment.process(self._type(person))
        if lost:
            self._environment.process(self._lose())

    def outcome(self) -> Outcome:
        self._environment.run(until=self._ends)
        # The share of all the time, with the seconds that do not count.
        busy = sum(replica.busy for replica in self._replicas) / (len(self._replicas) * self._ends)
        after = [ms for at, ms in self._ms if self._lost and self._ends / 2 <= at < self._ends / 2 + 10_000]
        times = [ms for _, ms in self._ms]
        return Outcome(
            self._asked, Percentiles.of(times), len(times) / max(1, self._asked), busy, Percentiles.of(after)
        )

    def _replica(self, place: float) -> _Replica:
        """Return the next living replica on the ring."""
        at = bisect.bisect(self._ring, (place, -1))
        for _, number in itertools.chain(self._ring[at:], self._ring[:at]):
            if self._replicas[number].alive:
                return self._replicas[number]
        raise RuntimeError("no replica is left")

    def _type(self, person: int) -> Generator[simpy.Event, None, None]:
        random_ = random.Random(self._random.random())
        place = random_.random()
        keys = self._engine.keys
        at = random_.randrange(len(keys))
        if self._load.typing < 1:
            yield self._environment.timeout(random_.random() * 2 * self._load.burst / self._load.typing)
        while True:
            ends = self._environment.now + random_.expovariate(1 / self._load.burst)
            while self._environment.now < ends:
                key = keys[at % len(keys)]
                at += 1
                job = self._ask(person, place, key)
                yield self._environment.timeout(key.pause)
                if not job.done.triggered:
                    job.cancelled = True
            idle = self._load.burst * (1 / self._load.typing - 1)
            if idle > 0:
                yield self._environment.timeout(random_.expovariate(1 / idle))

    def _ask(self, person: int, place: float, key: KeyCost) -> _Job:
        now = self._environment.now
        job = _Job(person, key.read, max(1, key.steps), key.step, now, self._environment.event())
        job.done.callbacks.append(lambda _: self._note(job))
        self._asked += now >= _COLD_MS
        self._replica(place).submit(job)
        return job

    def _note(self, job: _Job) -> None:
        if job.asked < _COLD_MS:
            return
        self._ms.append((job.asked, self._environment.now - job.asked + self._engine.way))

    def _lose(self) -> Generator[simpy.Event, None, None]:
        yield self._environment.timeout(self._ends / 2)
        lost = self._replicas[0]
        for job in lost.lose() if len(self._replicas) > 1 else []:
            if not job.cancelled:  # the HTTP server sends it once more
                self._replica(self._random.random()).submit(job)
        yield self._environment.timeout(self._lost)
        lost.start()


@attrs.frozen
class Limits:
    """What people are promised: the 95th percentile in ms, and the answers, as a share of those that one alone gets."""

    most_ms: float
    least_answered: float = 0.9

    def holds(self, found: Outcome, alone: Outcome) -> bool:
        return found.ms.p95 <= self.most_ms and found.answered >= self.least_answered * alone.answered


def replicas_for(engine: Engine, load: Load, limits: Limits, seconds: float, first: int = 1) -> int:
    """Return how many replicas keep the limits; 0 if even twice as many as people do not.

    first: the number that is tried first. Simulating far too few replicas takes longest.
    """
    alone = simulate(engine, Load(1), 1, seconds)
    low, high = 1, first

    def is_enough(count: int) -> bool:
        # Replicas share nothing, so some of many, with their part of the people, say what all do.
        share = min(1.0, 12 / count)
        part = attrs.evolve(load, people=max(1, round(load.people * share)))
        return limits.holds(simulate(engine, part, max(1, round(count * share)), seconds), alone)

    while not is_enough(high):
        low, high = high + 1, 2 * high
        if high > 2 * load.people:
            return 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return high


def people_for(engine: Engine, replicas: int, typing: float, limits: Limits, seconds: float) -> int:
    """Return how many people so many replicas carry within the limits."""
    alone = simulate(engine, Load(1), 1, seconds)
    low, high = 0, 1

    def is_carried(people: int) -> bool:
        return limits.holds(simulate(engine, Load(people, typing), replicas, seconds), alone)

    while is_carried(high) and high < 4096:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_carried(middle) else (low, middle)
    return low
