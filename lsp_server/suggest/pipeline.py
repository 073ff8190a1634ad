"""The pipeline: `plan` turns a cursor into a request for the engine, and `present` its answer into texts to show."""

from collections.abc import Sequence

import attrs

from engine.protocol.messages import Candidate, Fill, Filled, ModelInfo, Origin, Snippet
from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Hole, context_budget_of, cut_hole
from lsp_server.settings import Settings
from lsp_server.suggest.gate import Presented, gated
from lsp_server.suggest.shape import shape

_LONGEST = 30
"""Characters. Few suggestions that are right are longer, so what only these would be worth is not waited for."""


SURE = 0.9
"""The confidence from which the rule "threshold" commits tokens together."""


@attrs.frozen
class Plan:
    """A hole in `snapshot`, the request for the engine, and the settings that decide how its answer is presented."""

    snapshot: Snapshot
    hole: Hole
    fill: Fill
    settings: Settings


def plan(
    snapshot: Snapshot,
    offset: int,
    model: ModelInfo,
    settings: Settings,
    *,
    path: str,
    code_above: str = "",
    snippets: Sequence[Snippet] = (),
    candidates: int = 1,
    workspace: str = "",
) -> Plan:
    """Cut the hole at `offset`, with as much text around it as the model reads, and return the plan to fill it.

    `path` is the path that the model sees. `code_above` comes before the document's own text (the notebook cells above
    a cell), and `snippets` come from other files. The fill may look up the memory of `workspace`. The engine may end
    the fill early, once its first line can hardly be worth the price any more; with a gate of 0 every fill runs to its
    end and passes.
    """
    hole = cut_hole(snapshot, offset, context_budget_of(model, settings.context_tokens), code_above)
    fill = Fill(
        id=0,
        prefix=hole.prefix,
        suffix=hole.suffix,
        path=path,
        language=snapshot.language.id,
        snippets=list(snippets),
        extent=hole.extent,
        budget_ms=float(settings.budget_ms),
        max_tokens=settings.max_tokens,
        min_line_probability=settings.gate.least_probability(_LONGEST),
        rule=settings.rule,
        candidates=candidates,
        workspace=workspace,
        memory=settings.memory,
        line=1 + snapshot.source.lines.at(offset),
    )
    return Plan(snapshot, hole, fill, settings)


def present(plan: Plan, filled: Filled) -> list[Presented]:
    """Shape the candidates of `filled`, hide what is not worth its price, and return what remains, best first.

    Equal texts are returned once. With a gate of 0, each candidate is returned whole, unless shaping removes all of it.
    What a model that denoises wrote in one step is hidden unless it is sure of each token: they were chosen apart.
    """
    presented: dict[str, Presented] = {}
    at_once = filled.steps <= 1 and filled.rule in ("threshold", "entropy")
    for candidate in filled.candidates:
        if at_once and len(candidate.tokens) > 1 and min(candidate.confidence) < SURE:
            continue
        shaped = shape(candidate.text, plan.hole, plan.snapshot, plan.settings.max_lines)
        result = gated(candidate, shaped, plan.hole, plan.snapshot.language, plan.settings) if shaped else None
        if result is not None:
            origins = _shown_origins(candidate, result.text)
            presented.setdefault(result.text, attrs.evolve(result, source=candidate.source, origins=origins))
    return list(presented.values())


def _shown_origins(candidate: Candidate, shown: str) -> list[Origin]:
    """Return the origins that reach into the shown text. Shaping may have cut it and changed its indentation."""
    shown = shown.strip()
    start = max(candidate.text.find(shown.partition("\n")[0].rstrip()), 0)
    end = start + len(shown)
    return [each for each in candidate.origins if each.start < end and each.start + len(each.text) > start]
