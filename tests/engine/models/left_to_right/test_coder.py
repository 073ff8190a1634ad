"""Qwen2.5-Coder 0.5B with its own weights: known good fills in five languages, through the kernel.

The weights come from `make coder`; without them these tests are skipped.
"""

import attrs
import pytest
from support.coder import loaded_coder
from support.fill_tasks import run_to_end, started
from support.kernel_passes import skip_without
from support.known_fills import KNOWN, Known

from engine.fill.interface import FillStrategy
from engine.protocol.messages import Candidate, Fill, RuleName
from engine.schedule.scheduler import Scheduler


def written(known: Known, rule: RuleName) -> Candidate:
    model, fill = loaded_coder(), known.fill(rule)
    return run_to_end(model, started(model, fill, FillStrategy(rule))).answer()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known.language}: {known.what}")
def test_a_hole_is_filled_as_it_is_known_to_be(known: Known) -> None:
    skip_without("plain")
    plain = written(known, "left-to-right")
    assert plain.text == known.written
    assert plain.finish == "complete"
    assert "".join(plain.tokens) == plain.text
    assert written(known, "verify").text == known.written


@pytest.mark.timeout(600)
async def test_through_the_scheduler_the_best_of_four_is_chosen_and_a_key_reads_nothing_but_itself() -> None:
    skip_without("plain")
    scheduler = Scheduler(loaded_coder())
    await scheduler.start()
    try:
        hole = Fill(
            id=1,
            prefix="class Stack:\n    def __init__(self):\n        self.items = []\n\n"
            "    def push(self, item):\n        ",
            suffix="\n\n    def pop(self):\n        return self.items.pop()\n",
            extent="lines",
            language="python",
            max_tokens=48,
            budget_ms=120_000.0,
        )
        filled = await scheduler.submit(hole, None).result
        assert filled.chosen_from == 4
        assert filled.candidates[0].text.startswith("self.items.append(item)")
        assert "def pop" not in filled.candidates[0].text
        for typed in ("s", "se", "self", "self."):
            typing = attrs.evolve(hole, prefix=hole.prefix + typed, extent="line", max_tokens=2, choose_from=1)
            filled = await scheduler.submit(typing, None).result
            assert filled.context_tokens - filled.cached_tokens <= 2
    finally:
        await scheduler.stop()
