"""Why a fill is shown or kept back: what shaping cut, what the gate said, and the number that decided."""

from engine.protocol.confidence import first_line_confidence
from engine.protocol.editor_messages import Verdict
from engine.protocol.messages import Filled
from lsp_server.suggest.gate import gated
from lsp_server.suggest.pipeline import Plan
from lsp_server.suggest.shape import shape

_LEAST_WORTH = -99.0
"""Keys. A text below the setting's least probability is worth minus infinity, which JSON cannot say."""


def judge(plan: Plan, filled: Filled) -> Verdict:
    """Return what `plan.settings` would show of the first candidate, and why."""
    candidate, price = filled.candidates[0], plan.settings.gate
    shaped = shape(candidate.text, plan.hole, plan.snapshot, plan.settings.max_lines) or ""
    presented = gated(candidate, shaped, plan.hole, plan.snapshot.language, plan.settings) if shaped else None
    judged = presented.text if presented is not None else shaped
    confidence = presented.confidence if presented is not None else first_line_confidence(candidate, shaped)
    characters = len(judged.strip().partition("\n")[0].rstrip())
    return Verdict(
        written=candidate.text,
        shaped=shaped,
        shown=presented.text if presented is not None else "",
        is_start=presented is not None and presented.is_start,
        confidence=confidence,
        needed=price.least_probability(characters),
        worth=max(_LEAST_WORTH, price.worth(confidence, characters)),
    )
