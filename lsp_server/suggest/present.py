"""The second half of the pipeline: from the engine's answer to the texts that are worth showing."""

from engine.protocol.messages import Filled
from lsp_server.suggest.gate import Presented, gated
from lsp_server.suggest.plan import Plan
from lsp_server.suggest.shape import shape


def present(plan: Plan, filled: Filled) -> list[Presented]:
    """Shape the candidates of `filled`, hide what the gate does not believe, and return what remains, best first.

    Equal texts are returned once. With a gate of 0 every candidate that shaping leaves something of is returned whole.
    """
    presented: dict[str, Presented] = {}
    for candidate in filled.candidates:
        shaped = shape(candidate.text, plan.hole, plan.snapshot, plan.settings.max_lines)
        result = gated(candidate, shaped, plan.hole, plan.snapshot.language, plan.settings) if shaped else None
        if result is not None:
            presented.setdefault(result.text, result)
    return list(presented.values())
