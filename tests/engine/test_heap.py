"""The heap's free memory goes back to the system."""

import psutil
import pytest

from engine.heap import give_back


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
