"""Why an answer of an engine is not shown: also of one that stopped before it wrote anything."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.marked import at_cursor

from engine.protocol.messages import Candidate, Filled, Finish, ModelInfo, RuleName, Timings
from lsp_server.settings import GATES, Settings
from lsp_server.suggest.pipeline import Plan, plan, present
from lsp_server.suggest.silence import Silence

MODEL = ModelInfo("small", "embedded", "Apache-2.0", 1, 384, 32, "absorbing", "cpu", "float32")
UNSURE = re.compile(r"unsure: \"[^\"]*\"? ?.* is (\d+) % sure, and is shown from (\d+) % on")


def planned(marked: str, **settings: object) -> Plan:
    snapshot, offset = at_cursor(marked)
    return plan(snapshot, offset, MODEL, Settings(**settings), path="f.py")  # type: ignore[arg-type]


def filled(
    tokens: list[str], confidence: list[float], finish: Finish = "complete", rule: RuleName = "default", steps: int = 3
) -> Filled:
    candidate = Candidate("".join(tokens), tokens, confidence, finish)
    return Filled(1, [candidate], steps, rule, 10, 0, Timings(0, 0, 0, 0))


def line(one: Plan, answer: Filled) -> str:
    assert present(one, answer) == []
    return Silence("answered", plan=one, filled=answer).line


@pytest.mark.parametrize(
    ("finish", "said"),
    [
        ("complete", "the model would write nothing here"),
        ("unsure", "unsure: no word that could come next is likely enough to go on from"),
        ("deadline", "out of time: the model wrote nothing yet; its 500 ms were over before it ended"),
    ],
)
def test_where_no_text_came_it_says_by_what_the_fill_ended(finish: Finish, said: str) -> None:
    assert line(planned("x = ¦\n"), filled([], [], finish)) == said


def test_a_text_that_ran_out_of_time_says_so_too() -> None:
    said = line(planned("x = ¦\n", gate=0.9), filled(["first_name"], [0.5], "deadline"))
    assert said.startswith('unsure: "first_name" is 50 % sure, and is shown from 90 % on; its 500 ms were over')


def test_a_gate_that_only_the_sure_pass_is_named_and_no_length() -> None:
    said = line(planned("x = ¦\n", gate=1), filled(["first_name"], [0.5]))
    assert said == 'unsure: "first_name" is 50 % sure, and is shown from 100 % on'


def test_tokens_that_were_chosen_at_once_are_a_guess() -> None:
    said = line(planned("x = ¦\n", gate=0.5), filled(["first", "_name"], [0.95, 0.7], rule="threshold", steps=1))
    assert said == 'unsure: "first_name" was written in one step, and a part of it is a guess'


@pytest.mark.parametrize(
    ("answer", "is_held_back"),
    [
        (filled(["first_name"], [0.5]), True),
        (filled([], [], "unsure"), False),
        (filled(["  "], [0.5]), False),
        (filled(["first", "_name"], [0.6, 0.5], rule="threshold", steps=1), False),
    ],
)
def test_held_back_is_only_what_the_gate_hides(answer: Filled, is_held_back: bool) -> None:
    one = planned("x = ¦\n", gate=0.9)
    assert present(one, answer) == []
    assert Silence("answered", plan=one, filled=answer).is_held_back == is_held_back
    assert not Silence("dismissed", "first_name").is_held_back


BETWEEN = "class Box:\n    def open(self):\n        self.lid = None\n¦\n    def close(self):\n        pass\n"
BELOW = filled(["\n", "    def", " lock", "(self):"], [0.99, 0.99, 0.99, 0.99])


def test_what_comes_only_below_an_empty_line_is_not_shown_a_line_too_early() -> None:
    assert line(planned(BETWEEN), BELOW) == 'the model leaves this line empty, and writes "def lock(self):" below it'
    assert [each.text for each in present(planned(BETWEEN, gate=0), BELOW)] == ["    def lock(self):"], "asked for"
    after_return = planned(BETWEEN.replace("¦", "\n¦"))
    at_once = filled(["    def", " lock", "(self):"], [0.99, 0.99, 0.99])
    assert [each.text for each in present(after_return, at_once)] == ["    def lock(self):"]


def test_an_empty_line_at_the_start_of_a_body_leads_to_its_first_line_only() -> None:
    body = planned("def lock(self):\n    ¦\n")
    answer = filled(["\n", "    ", "return", " self.lid"], [0.99, 0.99, 0.99, 0.99])
    assert [each.text for each in present(body, answer)] == ["return self.lid"]


def test_what_fits_nowhere_before_a_word_says_so() -> None:
    said = line(planned("total = ¦count\n"), filled(["x = 1"], [0.99]))
    assert said == '"x = 1" would not fit directly before this word'


@given(
    st.lists(
        st.tuples(st.sampled_from(["name", "(", "a", ", ", "b)", ".call", " + 1"]), st.floats(0.01, 1)), max_size=6
    ),
    st.sampled_from([*GATES, 0.3, 0.8, 1]),
    st.sampled_from(["complete", "unsure", "deadline", "canvas full"]),
)
@example([(".call", 1.0)], "quiet", "complete")
def test_nothing_that_is_hidden_is_said_to_be_sure_enough(
    tokens: list[tuple[str, float]], gate: str | float, finish: Finish
) -> None:
    one, answer = planned("x = ¦\n", gate=gate), filled([text for text, _ in tokens], [p for _, p in tokens], finish)
    if present(one, answer):
        return
    said = Silence("answered", plan=one, filled=answer).line
    assert said
    assert " inf keys" not in said
    if numbers := UNSURE.match(said):
        assert int(numbers[1]) < int(numbers[2])
