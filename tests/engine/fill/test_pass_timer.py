"""What a pass is expected to cost."""

from engine.fill.draft_planner import PassTimer


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
