"""The plan: from a cursor to the fill that the engine is asked for, as a pure function."""

import attrs
import pytest
from marked import at_cursor

from engine.protocol.messages import Fill, ModelInfo, Snippet
from lsp_server.hole.context_budget import NEAR
from lsp_server.settings import Settings
from lsp_server.suggest.plan import Plan, plan

SMALL = ModelInfo("small", "embedded", "Apache-2.0", 1, 384, 32, "absorbing", "cpu", "float32")
LARGE = attrs.evolve(SMALL, name="large", context_tokens=262_144)
BODY = "def f(a):\n    ¦\n\nprint(f(1))\n"


def planned(marked: str, settings: Settings | None = None, model: ModelInfo = SMALL) -> Plan:
    snapshot, offset = at_cursor(marked)
    return plan(snapshot, offset, model, settings or Settings(), path="shop/f.py")


def test_the_fill_is_the_hole_and_the_settings() -> None:
    settings = Settings(budget_ms=300, max_tokens=20, gate=0.7, rule="entropy")
    result = planned(BODY, settings)
    assert result.fill == Fill(
        id=0,
        prefix="def f(a):\n    ",
        suffix="\n\nprint(f(1))\n",
        path="shop/f.py",
        language="python",
        extent="lines",
        budget_ms=300.0,
        max_tokens=20,
        min_line_probability=0.7,
        rule="entropy",
    )
    assert (result.hole.prefix, result.hole.suffix) == (result.fill.prefix, result.fill.suffix)
    assert (result.hole.extent, result.hole.cursor_context) == ("lines", "body")
    assert result.settings is settings


def test_the_same_arguments_give_the_same_plan() -> None:
    snapshot, offset = at_cursor(BODY)
    first, second = (plan(snapshot, offset, SMALL, Settings(), path="f.py") for _ in range(2))
    assert first == second


def test_without_a_gate_no_fill_ends_early() -> None:
    assert planned(BODY, Settings(gate=0.0)).fill.min_line_probability == 0.0


def test_code_above_comes_before_the_documents_own_text() -> None:
    snapshot, offset = at_cursor("x = ¦\n")
    result = plan(snapshot, offset, SMALL, Settings(), path="a.py", code_above="import os\n\n")
    assert result.fill.prefix == "import os\n\nx = "
    assert result.hole.line_before == "x = "


def test_snippets_and_candidates_are_passed_on() -> None:
    snapshot, offset = at_cursor(BODY)
    snippet = Snippet("b.py", "b = 1\n")
    result = plan(snapshot, offset, SMALL, Settings(), path="a.py", snippets=(snippet,), candidates=3)
    assert result.fill.snippets == [snippet]
    assert result.fill.candidates == 3


@pytest.mark.parametrize(("model", "whole"), [(SMALL, False), (LARGE, True)])
def test_a_model_gets_as_much_text_as_its_context_has_room_for(model: ModelInfo, whole: bool) -> None:
    lines = "value = compute(1234567890)\n" * 1000
    fill = planned(lines + "¦\n" + lines, model=model).fill
    assert (fill.prefix == lines) == whole
    assert whole or len(fill.prefix) <= NEAR.prefix


def test_the_users_limit_shortens_the_context() -> None:
    lines = "value = compute(1234567890)\n" * 1000
    fill = planned(lines + "¦\n", Settings(context_tokens=100), LARGE).fill
    assert len(fill.prefix) <= NEAR.prefix
