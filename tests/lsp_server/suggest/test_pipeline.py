"""The pipeline's two pure functions: from a cursor to a request for the engine, and from its answer to texts."""

import attrs
import pytest
from support.marked import at_cursor

from engine.protocol.messages import Candidate, Fill, Filled, Finish, ModelInfo, Snippet, Timings
from lsp_server.hole.hole import NEAR
from lsp_server.settings import GATES, Settings
from lsp_server.suggest.pipeline import Plan, Presented, plan, present

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
        choose_from=1,
        line=2,
    )
    assert (result.hole.prefix, result.hole.suffix) == (result.fill.prefix, result.fill.suffix)
    assert (result.hole.extent, result.hole.cursor_context) == ("lines", "body")
    assert result.settings is settings


def test_the_same_arguments_give_the_same_plan() -> None:
    snapshot, offset = at_cursor(BODY)
    first, second = (plan(snapshot, offset, SMALL, Settings(), path="f.py") for _ in range(2))
    assert first == second


def test_a_fill_ends_once_its_line_can_hardly_be_worth_the_price() -> None:
    least = {word: planned(BODY, Settings(gate=word)).fill.min_line_probability for word in GATES}
    assert 1 > least["quiet"] > least["normal"] > least["eager"] > 0


def test_a_model_that_is_too_sure_of_itself_pays_more_for_what_is_wrong_but_not_before_a_word() -> None:
    doubted, price = attrs.evolve(SMALL, doubt=4.0), GATES["normal"]
    dear = planned(BODY, model=doubted)
    assert dear.settings.gate == attrs.evolve(price, wrong=4 * price.wrong)
    assert dear.fill.min_line_probability > planned(BODY).fill.min_line_probability
    assert planned("x = ¦name\n", model=doubted).settings.gate == price
    assert planned(BODY, Settings(gate=0.0), doubted).settings.gate.hides_nothing


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
    lines = "value = compute(1234567890)\n" * 3000
    fill = planned(lines + "¦\n" + lines, model=model).fill
    assert (fill.prefix == lines) == whole
    assert whole or len(fill.prefix) <= NEAR.prefix


def test_the_users_limit_shortens_the_context() -> None:
    lines = "value = compute(1234567890)\n" * 3000
    fill = planned(lines + "¦\n", Settings(context_tokens=100), LARGE).fill
    assert len(fill.prefix) <= NEAR.prefix


def candidate(*tokens: tuple[str, float], finish: Finish = "complete") -> Candidate:
    texts = [text for text, _ in tokens]
    return Candidate("".join(texts), texts, [probability for _, probability in tokens], finish)


def answer(*candidates: Candidate) -> Filled:
    return Filled(
        id=0,
        candidates=list(candidates),
        steps=3,
        rule="threshold",
        context_tokens=1,
        cached_tokens=0,
        ms=Timings(0, 0, 1, 1),
    )


CALL = candidate(("self", 0.95), (".connect", 0.95), ("(", 0.98), ("host", 0.4), (")", 0.9))


def test_a_confident_fill_is_presented_whole() -> None:
    sure = attrs.evolve(CALL, confidence=[0.95, 0.95, 0.98, 0.9, 0.98])
    (presented,) = present(planned("x = ¦\n", Settings(gate=0.6)), answer(sure))
    assert (presented.text, presented.is_start) == ("self.connect(host)", False)
    assert presented.confidence == pytest.approx(0.95 * 0.95 * 0.98 * 0.9 * 0.98)


def test_a_doubtful_fill_is_presented_up_to_its_doubtful_token() -> None:
    (presented,) = present(planned("x = ¦\n", Settings(gate=0.6)), answer(CALL))
    assert (presented.text, presented.is_start) == ("self.connect", True)
    assert presented.confidence > 0.8, "the confidence is of the start"


def test_nothing_is_presented_that_the_gate_hides() -> None:
    assert present(planned("x = ¦\n", Settings(gate=0.99)), answer(CALL)) == []


def test_a_fill_is_shaped_before_the_gate_judges_it() -> None:
    doubtful_bracket = candidate(("host", 0.9), (")", 0.1))
    presented = present(planned("x = connect(¦)\n", Settings(gate=0.8)), answer(doubtful_bracket))
    assert presented == [Presented("host", is_start=False, confidence=0.9)]


def test_equal_texts_are_presented_once_and_in_the_candidates_order() -> None:
    same_start = candidate(("self", 0.95), (".connect", 0.95), ("(", 0.98), ("port", 0.3), (")", 0.9))
    other = candidate(("open", 0.9), ("()", 0.9))
    presented = present(planned("x = ¦\n", Settings(gate=0.6)), answer(CALL, same_start, other))
    assert [each.text for each in presented] == ["self.connect", "open()"]


def test_with_a_gate_of_zero_every_shaped_fill_is_presented_whole() -> None:
    impossible = candidate(("self", 0.0), (")", 0.0))
    presented = present(planned("x = connect(¦)\n", Settings(gate=0.0, whole_lines=True)), answer(impossible))
    assert presented == [Presented("self", is_start=False, confidence=0.0)]


def test_of_an_unsure_fill_only_a_start_is_presented() -> None:
    unsure = attrs.evolve(CALL, finish="unsure")
    assert [each.is_start for each in present(planned("x = ¦\n", Settings(gate=0.2)), answer(unsure))] == [True]
    assert present(planned("x = ¦\n", Settings(gate=0.2, whole_lines=True)), answer(unsure)) == []


def test_a_fill_that_shaping_leaves_nothing_of_is_not_presented() -> None:
    assert present(planned("x = ¦\n", Settings(gate=0.0)), answer(candidate(("  ", 0.9)), candidate())) == []


def test_presenting_keeps_the_documents_line_ends() -> None:
    lines = candidate(("if a:", 0.9), ("\n    b()", 0.9))
    (presented,) = present(planned("x = 1\r\n¦\r\n", Settings(gate=0.5)), answer(lines))
    assert presented.text == "if a:\r\n    b()"


def test_what_was_written_in_one_step_is_hidden_unless_each_token_is_sure() -> None:
    doubtful, sure = candidate(("return", 0.99), (" a", 0.6)), candidate(("return", 0.99), (" b", 0.93))
    hole = planned(BODY, Settings(gate=0.0))
    hurried = attrs.evolve(answer(doubtful, sure), steps=1, rule="threshold")
    assert [shown.text for shown in present(hole, hurried)] == ["return b"]
    for patient in (attrs.evolve(hurried, steps=2), attrs.evolve(hurried, rule="verify")):
        assert [shown.text for shown in present(hole, patient)] == ["return a", "return b"]
