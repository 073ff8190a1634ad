"""The ways in which a masked family makes a fill, by their names on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.fill.commit_rules import CommitRule, by_entropy, by_threshold
from engine.fill.filling import Hole
from engine.fill.interface import Context
from engine.fill.sampler import Proposal, Sampler
from engine.fill.strategy import FillStrategy
from engine.models.masked.canvas import Canvas
from engine.models.masked.expanding import Expanding
from engine.models.masked.fixed import FixedLength

if TYPE_CHECKING:
    from engine.models.masked.model import MaskedModel


def leftmost(proposal: Proposal, least: int) -> list[int]:
    """Commit the first masked position and no other, however many are due."""
    return [0]


def begin(family: MaskedModel, context: Context, hole: Hole, sampler: Sampler, way: FillStrategy) -> Canvas:
    """Return a fill at its start. Raises ModelError for "verify"."""
    rules: dict[str, CommitRule] = {"threshold": by_threshold, "entropy": by_entropy, "left-to-right": leftmost}
    rule = rules.get(way.rule)
    if rule is None:
        raise ModelError(
            f'the rule "{way.rule}" needs a model that also reads left to right, which {family.info.name} does not; '
            f"it has {', '.join(rules)}"
        )
    kind = FixedLength if family.trait.marks.expand is None else Expanding
    return kind(family, context, hole, sampler, rule, way.steps)
