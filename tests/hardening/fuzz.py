"""Feeds the targets with what hypothesis makes, and keeps what breaks one in the corpus."""

import hashlib
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from hardening.fuzz_targets import Target, targets
from hardening.fuzzed_bytes import CORPUS
from hardening.language_server import Broken
from hardening.work import Row, Work, told

_BATCH = 200


def fuzz(target: Target, examples: int, number: int, corpus: Path) -> None:
    """Feed a target with so many inputs from a seed. Raises Broken with the shrunk one, which goes into
    `corpus`."""
    failing: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def feed(data: bytes) -> None:
        try:
            target.feed(data)
        except Broken:
            failing.append(data)
            raise

    try:
        feed()
    except Exception:
        if failing:
            keep(target, failing[-1], corpus)
        raise


def keep(target: Target, data: bytes, corpus: Path) -> None:
    """Put an input into the corpus; the tests feed all of it."""
    folder = corpus / target.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"found-{hashlib.sha256(data).hexdigest()[:10]}").write_bytes(data)


def soak(work: Work) -> list[Row]:
    """Feed each target in turn, in batches with a seed each, until the time is over."""
    found = targets(work.folder)
    fed, lost = {each.name: 0 for each in found}, {each.name: list[str]() for each in found}
    batch = 0
    try:
        while work.left > 0:
            for target in found:
                number = work.seed + batch
                try:
                    fuzz(target, _BATCH, number, CORPUS)
                except Exception as error:
                    lost[target.name].append(told(error))
                fed[target.name] += _BATCH
            batch += 1
            work.say(f"{sum(fed.values()):,} inputs")
    finally:
        for target in found:
            target.close()
    return [Row(f"fuzzed {name}", times, sorted(set(lost[name]))[:3]) for name, times in fed.items()]
