"""What lies beside a range, found without a look at all."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.refactor.file_edit import Span
from lsp_server.refactor.ranges import Ranges

_RANGE = st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(_RANGE, max_size=12), _RANGE)
def test_it_finds_what_a_look_at_all_finds(ranges: Sequence[tuple[int, int]], near: tuple[int, int]) -> None:
    spans = [Span(start, end, line) for line, (start, end) in enumerate(ranges)]
    kept = Ranges[Span]()
    for span in spans:
        kept.add(span)
    expected = [span for span in spans if span.start <= near[1] and near[0] <= span.end]
    assert kept.touching(*near) == sorted(expected, key=lambda span: span.start)
