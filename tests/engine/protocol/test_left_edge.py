"""The left edge of a long text: it keeps the text within the room, and moves seldom."""

from hypothesis import given
from hypothesis import strategies as st

from engine.protocol.messages import left_edge


def test_a_text_that_fits_is_kept_whole() -> None:
    assert left_edge(100, 100, 25) == 0
    assert left_edge(0, 0, 25) == 0


def test_a_text_that_grows_moves_its_edge_once_a_stride() -> None:
    assert {left_edge(length, 100, 25) for length in range(101, 126)} == {25}
    assert left_edge(126, 100, 25) == 50


def test_a_stride_below_one_counts_as_one() -> None:
    assert left_edge(103, 100, 0) == 3


@given(st.integers(0, 10_000), st.integers(0, 1000), st.integers(1, 500))
def test_the_text_fits_and_at_most_a_stride_of_room_stays_free(length: int, room: int, stride: int) -> None:
    edge = left_edge(length, room, stride)
    assert length - edge <= room
    assert edge == 0 or length - edge > room - stride
    assert edge % stride == 0
