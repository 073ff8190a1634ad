"""Directly before a word: what fits between both sides is shown, the likeliest of several guesses."""

import attrs
import pytest
from support.marked import at_cursor, hole_at, opened

from engine.protocol.messages import Candidate, Filled, ModelInfo, Timings
from lsp_server.settings import GATES, Settings
from lsp_server.suggest.insertion import GUESSES, ODDS, Agreement, Insertion, likeliest
from lsp_server.suggest.pipeline import Plan, plan, present, weigh

MODEL = ModelInfo("small", "embedded", "Apache-2.0", 1, 768, 32, "absorbing", "cpu", "float32")
ARGUMENT, CALL = "self.f(name, ¦x)\n", "f(¦input))\n"


def candidate(*tokens: str, sure: float = 0.5, finish: str = "complete") -> Candidate:
    return Candidate("".join(tokens), list(tokens), [sure] * len(tokens), finish)  # type: ignore[arg-type]


def planned(marked: str, settings: Settings | None = None, candidates: int = 1) -> Plan:
    snapshot, offset = at_cursor(marked)
    return plan(snapshot, offset, MODEL, settings or Settings(), path="a.py", candidates=candidates)


def found(fill: Candidate, marked: str = ARGUMENT, language: str = "python") -> tuple[str, Agreement] | None:
    insertion = likeliest(fill, hole_at(marked, language), opened("", language).language)
    return None if insertion is None else (insertion.text, insertion.agreement)


def texts(plan: Plan, *fills: Candidate) -> list[str]:
    return [each.text for each in present(plan, Filled(0, list(fills), 2, "default", 100, 0, Timings(0, 1, 0, 1)))]


def test_it_ends_where_the_fill_goes_on_with_the_word_or_ended() -> None:
    assert found(candidate("first", ", ", "x", ")")) == ("first, ", "goes on")
    assert found(candidate("first", ", ", "x", ")", " + other")) == ("first, ", "goes on")
    assert found(candidate("first", ", ", "x", ", y)")) == ("first, ", "same word")
    assert found(candidate("first", ", ", "second", ", ", sure=0.9)) == ("first, second, ", "ended")
    assert found(candidate("strings", ".Trim", "Space("), CALL) == ("strings.TrimSpace(", "ended")
    assert found(candidate("return "), "    ¦call()\n") == ("return ", "ended")


def test_else_it_ends_with_what_separates_it_from_the_word() -> None:
    assert found(candidate("first", ", ", "sec", finish="unsure")) == ("first, ", "none")
    assert found(candidate("first", ", ", "\n")) == ("first, ", "none"), "the line ended, and not before the word"
    for text in ("each", "first + ", "x = "):
        assert found(candidate(text, finish="unsure")) is None


def test_a_comma_is_followed_by_a_space_unless_the_line_does_without() -> None:
    assert found(candidate("first", ",")) == ("first, ", "ended")
    assert found(candidate("first", ","), "f(a,¦x)\n") == ("first,", "ended")


def test_a_word_cannot_follow_a_name_or_a_whole_expression() -> None:
    for text in ("optional", "value = other", "connect(host)", 'x = "text"', "# ", "value  # "):
        assert found(candidate(text), "    ¦call()\n") is None


def test_brackets_stay_in_pairs() -> None:
    assert found(candidate("connect", "(", "other", ", ")) is None, "the bracket would go round the word"
    assert found(candidate("first", "), ")) is None, "the bracket closes another"
    assert found(candidate("strings", ".Trim", "Space("), "f(¦input)\n") is None
    assert found(candidate("range", "("), "for i in ¦n):\n") == ("range(", "ended")


def test_a_very_long_line_is_looked_at_near_the_cursor_only() -> None:
    long = "a(" * 100_000
    assert found(candidate("first", ", ", "x", ")"), f"{long}name, ¦x){')' * 100_000}\n") == ("first, ", "goes on")
    assert found(candidate("x, " * 10_000)) is not None


def test_agreement_and_a_closed_bracket_count_beside_the_models_probability() -> None:
    agreements: list[Agreement] = ["goes on", "same word", "ended", "none"]
    odds = [Insertion("first, ", each, False, 0.5).confidence for each in agreements]
    assert odds == sorted(odds, reverse=True)
    assert Insertion("f(", "ended", True, 0.5).confidence > Insertion("f(", "ended", False, 0.5).confidence
    assert Insertion("f(", "ended", True, 0.9).confidence > Insertion("f(", "ended", True, 0.5).confidence
    assert 0 < Insertion("f(", "none", False, 0.0).confidence < 0.01


def test_a_doubted_models_insertion_is_shown_if_the_model_is_sure_of_it() -> None:
    doubted, (snapshot, offset) = attrs.evolve(MODEL, doubt=4.0), at_cursor(ARGUMENT)
    dear = plan(snapshot, offset, doubted, Settings(), path="a.py")
    assert texts(dear, candidate("first, ", "second, ", sure=0.9)) == ["first, "]
    assert texts(planned(ARGUMENT), candidate("first, ", "x)", sure=0.3)) == ["first, "]
    assert texts(dear, candidate("first, ", "x)", sure=0.3)) == [], "that the line goes on so says nothing here"


def test_several_guesses_are_asked_for_and_the_likeliest_is_shown() -> None:
    guesses = candidate("other"), candidate("b, ", sure=0.6), candidate("first, ", "x)", sure=0.6)
    snapshot, offset = at_cursor(ARGUMENT)
    served = attrs.evolve(MODEL, family="openai", server="localhost:8080")
    assert planned(ARGUMENT).fill.candidates == GUESSES
    assert plan(snapshot, offset, served, Settings(), path="a.py").fill.candidates == 1, "each is a request there"
    assert texts(planned(ARGUMENT), *guesses) == ["first, "]
    assert texts(planned(ARGUMENT, candidates=3), *guesses)[0] == "first, "


@pytest.mark.parametrize("gate", GATES)
def test_the_gate_decides(gate: str) -> None:
    settings = Settings(gate=gate)
    least = settings.gate.least_probability(ODDS.counted)
    for sure in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
        insertion = likeliest(candidate("first, ", "x)", sure=sure), hole_at(ARGUMENT), opened("").language)
        assert insertion is not None
        shown = texts(planned(ARGUMENT, settings), candidate("first, ", "x)", sure=sure))
        assert shown == (["first, "] if insertion.confidence > least else [])


def test_only_whole_lines_means_no_start_here_either() -> None:
    start = candidate("first(", "second", sure=0.97, finish="unsure")
    assert texts(planned(CALL, Settings(gate="eager")), start) == ["first("]
    assert texts(planned(CALL, Settings(gate="eager", whole_lines=True)), start) == []


def test_a_gate_of_zero_shows_what_fits_however_unlikely_or_the_whole_fill() -> None:
    free = planned(ARGUMENT, Settings(gate=0.0))
    assert free.fill.candidates == 1
    assert texts(free, candidate("first, ", "x)", sure=0.01)) == ["first, "]
    assert texts(free, candidate("first", sure=0.1)) == ["first"]
    assert texts(free, candidate("first, ", "sec", sure=0.1, finish="unsure")) == ["first, sec"]


def test_what_breaks_the_syntax_is_not_shown() -> None:
    broken, eager = candidate("def ", "x", sure=0.99), planned("y = f(¦x)\n", Settings(gate="eager"))
    assert weigh(broken, eager).shown is None
    assert texts(eager, attrs.evolve(broken, text="a, ", tokens=["a, "])) == ["a, "]


def test_the_odds_of_an_insertion_that_is_not_shown_are_its_own_not_the_models() -> None:
    unlikely = candidate("first, ", "other", sure=0.05)
    insertion, weighed = likeliest(unlikely, hole_at(ARGUMENT), opened("").language), weigh(unlikely, planned(ARGUMENT))
    assert insertion is not None
    assert weighed.shown is None
    assert (weighed.shaped, weighed.confidence, weighed.characters) == ("first, ", insertion.confidence, ODDS.counted)
