"""An editor that does anything: a minute of what `make soak` does for half an hour."""

from pathlib import Path

import pytest

from hardening.bench import Bench
from hardening.long_editing import run

_OPERATIONS = 8_000


@pytest.mark.slow
@pytest.mark.timeout(600)  # A failure is shrunk for some minutes.
def test_whatever_an_editor_does_and_the_engine_suffers_the_server_lives_and_has_the_editors_text(home: Path) -> None:
    bench = Bench(home)
    try:
        run(bench, _OPERATIONS, 20261122)
    finally:
        bench.close()
    assert bench.counts.echoes > 200 + 10 * bench.counts.silent, "too few texts were compared"
    assert bench.counts.items > 50, "too few suggestions were checked"
