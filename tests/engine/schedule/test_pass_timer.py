"""What a pass is expected to cost; and the heap's free memory goes back to the system."""

import psutil
import pytest

from engine.fill.draft_planner import PassTimer
from engine.heap import give_back


def test_a_pass_during_which_the_process_was_stopped_does_not_make_the_next_fills_too_late() -> None:
    timer = PassTimer()
    timer.record(16, 5.0)
    timer.record(16, 60_000.0)
    assert timer.expect(16) < 10.0


def test_a_machine_that_becomes_slow_is_noticed_within_some_passes() -> None:
    timer = PassTimer()
    for milliseconds in [5.0] + 30 * [100.0]:
        timer.record(16, milliseconds)
    assert timer.expect(16) > 90.0


def test_a_cold_first_pass_does_not_make_the_next_fills_too_late() -> None:
    timer = PassTimer()
    timer.record(16, 600.0)
    timer.record(16, 5.0)
    assert timer.expect(16) == 5.0


def test_what_was_freed_between_objects_that_stay_is_given_back() -> None:
    if not give_back():
        pytest.skip("this C library gives memory back by itself")
    blocks = [b"%d" % number * 20_000 for number in range(10_000, 12_000)]
    kept = blocks[-1]
    del blocks
    before = psutil.Process().memory_info().rss
    give_back()
    assert before - psutil.Process().memory_info().rss > 100e6
    assert len(kept) == 100_000
