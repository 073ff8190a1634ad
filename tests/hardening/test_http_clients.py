"""A quarter of a minute of HTTP clients with all habits: no client costs another one its answer, and nothing stays."""

from pathlib import Path

import pytest

from hardening import http_clients
from hardening.work import Work


@pytest.mark.slow
def test_clients_of_all_habits_cost_no_other_client_its_answer(home: Path, tmp_path: Path) -> None:
    rows = http_clients.soak(Work(tmp_path, seed=30, seconds=15, share=0.01, say=lambda _: None))
    assert [line for row in rows for line in row.lost] == []
    assert rows[0].times > 20
