"""Presenting: from the engine's answer to the texts on the screen, as a pure function."""

import attrs
import pytest
from marked import at_cursor

from engine.protocol.messages import Candidate, Filled, Finish, ModelInfo, Timings
from lsp_server.settings import Settings
from lsp_server.suggest.gate import Presented
from lsp_server.suggest.plan import Plan, plan
from lsp_server.suggest.present import present

MODEL = ModelInfo("small", "embedded", "Apache-2.0", 1, 384, 32, "absorbing", "cpu", "float32")


def planned(marked: str, settings: Settings) -> Plan:
    snapshot, offset = at_cursor(marked)
    return plan(snapshot, offset, MODEL, settings, path="a.py", candidates=3)


def candidate(*tokens: tuple[str, float], finish: Finish = "complete") -> Candidate:
    texts = [text for text, _ in tokens]
    return Candidate("".join(texts), texts, [probability for _, probability in tokens], finish)


def answer(*candidates: Candidate) -> Filled:
    return Filled(
        id=0,
        candidates=list(candidates),
        steps=1,
        rule="threshold",
        context_tokens=1,
        cached_tokens=0,
        ms=Timings(0, 0, 1, 1),
    )


CALL = candidate(("self", 0.95), (".connect", 0.95), ("(", 0.9), ("host", 0.4), (")", 0.9))


def test_a_confident_fill_is_presented_whole() -> None:
    (presented,) = present(planned("x = ¦\n", Settings(gate=0.2)), answer(CALL))
    assert (presented.text, presented.is_start) == ("self.connect(host)", False)
    assert presented.confidence == pytest.approx(0.95 * 0.95 * 0.9 * 0.4 * 0.9)


def test_a_doubtful_fill_is_presented_up_to_its_doubtful_token() -> None:
    (presented,) = present(planned("x = ¦\n", Settings(gate=0.6)), answer(CALL))
    assert (presented.text, presented.is_start) == ("self.connect(", True)
    assert presented.confidence < 0.6, "the confidence is of the whole line"


def test_nothing_is_presented_that_the_gate_hides() -> None:
    assert present(planned("x = ¦\n", Settings(gate=0.99)), answer(CALL)) == []


def test_a_fill_is_shaped_before_the_gate_judges_it() -> None:
    doubtful_bracket = candidate(("host", 0.9), (")", 0.1))
    presented = present(planned("x = connect(¦)\n", Settings(gate=0.8)), answer(doubtful_bracket))
    assert presented == [Presented("host", is_start=False, confidence=0.9)]


def test_equal_texts_are_presented_once_and_in_the_candidates_order() -> None:
    same_start = candidate(("self", 0.95), (".connect", 0.95), ("(", 0.9), ("port", 0.3), (")", 0.9))
    other = candidate(("open", 0.9), ("()", 0.9))
    presented = present(planned("x = ¦\n", Settings(gate=0.6)), answer(CALL, same_start, other))
    assert [each.text for each in presented] == ["self.connect(", "open()"]


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
