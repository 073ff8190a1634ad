"""Why nothing is shown: a value that is made where that is decided, and becomes a line only when the user asks.

So a key press costs no more, and the line is true: it reads the decision, and weighs the same answer by the same price.
"""

from typing import Literal, get_args

import attrs

from engine.protocol.confidence import FREE
from engine.protocol.messages import Candidate, Filled, Finish
from engine.protocol.origin_lines import quoted
from lsp_server.suggest.pipeline import Plan, begins_below, is_hasty, present, weigh
from lsp_server.suggest.restraint import Refusal

Cause = Literal["waits", "gone", "only asked", "away", "failed", "dismissed here", "menu", "pauses", "answered"]
_LINES: dict[Cause | Refusal, str] = {
    "waits": "the engine has not answered yet",
    "gone": "the last request ended before its answer: the text or the cursor changed, or insert mode ended",
    "only asked": "suggestions come only when you ask: {}",
    "away": "the engine is away. {}",
    "failed": "{}",
    "dismissed here": "you dismissed a suggestion here; others come when the text here changes, or when you ask",
    "menu": "the completion menu has an entry selected, and no suggestion goes on after that entry",
    "pauses": "{} comes once you stop typing for a moment",
    "formats": "{} would change the formatting only",
    "deleted": "you just deleted {} here",
    "dismissed": "you dismissed {} here",
    "ignored": "{} was shown here twice, and you typed something else",
}
_QUOTED = ("pauses", *get_args(Refusal))
"""The causes whose detail is a text."""
_EMPTY: dict[Finish, str] = {
    "deadline": "out of time: the model wrote nothing yet",
    "unsure": "unsure: no word that could come next is likely enough to go on from",
}
_PROSE = {
    "gitcommit": "a commit message",
    "git-commit": "a commit message",
    "plaintext": "plain text",
    "text": "plain text",
}


@attrs.frozen
class Silence:
    """Why the last request of a document showed nothing.

    `detail` is a sentence that belongs to the cause, or the text that was refused. With "answered"
    the engine's answer `filled` was not worth its price, or nothing was left of it. `is_dearer` says that the price on
    this line was raised.
    """

    cause: Cause | Refusal
    detail: str = ""
    plan: Plan | None = None
    filled: Filled | None = None
    is_dearer: bool = False

    @property
    def line(self) -> str:
        """One line for the user."""
        if self.plan is not None and self.filled is not None:
            return _why_hidden(self.plan, self.filled, self.is_dearer)
        return _LINES[self.cause].format(quoted(self.detail) if self.cause in _QUOTED else self.detail)

    @property
    def is_held_back(self) -> bool:
        """Whether the gate alone hides the answer: without a price there is a text to show."""
        if self.plan is None or self.filled is None:
            return False
        free = attrs.evolve(self.plan, settings=attrs.evolve(self.plan.settings, gate=FREE))
        return bool(present(free, self.filled))


def _why_hidden(plan: Plan, filled: Filled, is_dearer: bool) -> str:
    """Return why nothing of an answer is shown."""
    judged = [(candidate, weigh(candidate, plan)) for candidate in filled.candidates]
    candidate, weighed = max(judged, key=lambda pair: pair[1].worth)
    written, text, end = quoted(candidate.text), quoted(weighed.shaped), _circumstances(candidate, plan)
    if not candidate.text.strip():
        return _EMPTY.get(candidate.finish, "the model would write nothing here") + end
    if weighed.shown is not None and is_hasty(candidate, filled):
        return f"unsure: {written} was written in one step, and a part of it is a guess{end}"
    if not weighed.shaped:
        before_word = plan.hole.is_before_word
        where = " directly before this word" if before_word else ": it is there already, or would break the syntax"
        return f"{written} would not fit{where}{end}"
    if begins_below(candidate, plan.hole):
        return f"the model leaves this line empty, and writes {text} below it{end}"
    worth, needed = weighed.worth, weighed.needed
    if worth > 0:
        return f"{text} stops where no suggestion may end{end}"
    if is_dearer:
        end = f"; you typed something else than was shown on this line, so it needs more{end}"
    price = attrs.evolve(weighed.price, least=None)
    if price.least_probability(weighed.characters) >= 1:
        lost = abs(price.worth(weighed.confidence, weighed.characters))
        costs = f"it costs {lost:.1f} keys more to read than it saves"
        return f"too short to be worth a glance: {text} is {_percent(weighed.confidence)} sure; {costs}{end}"
    sure = f"{text} is {_percent(weighed.confidence, needed)} sure, and is shown from {_percent(needed)} on"
    return f"unsure: {sure}{end}"


def _circumstances(candidate: Candidate, plan: Plan) -> str:
    """Return what else speaks against an answer, as the end of a line."""
    end, language = "", plan.snapshot.language
    if candidate.finish == "deadline":
        end = f"; its {plan.fill.budget_ms:.0f} ms were over before it ended"
    if language.grammar is None:
        end += f"; this is {_PROSE.get(language.id, language.id)}, and the model is made for code"
    return end


def _percent(probability: float, needed: float = 2.0) -> str:
    """Return a probability in percent, never rounded up to the one that was needed."""
    rounded = round(100 * probability)
    return f"{rounded if probability >= needed else min(rounded, max(round(100 * needed) - 1, 0))} %"
