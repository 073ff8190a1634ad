"""Drafts of a masked family: masks between what is written and the suffix."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import attrs

from engine.models.masked.model import MaskedModel
from engine.models.masked.rows import MaskedPass
from engine.models.masked.surrounding_cache import SurroundingCache
from engine.models.qwen_fim.drafter import ROOM, Unfinished


@attrs.define
class _DraftState:
    """A hole's sides, how many characters of what is written are in them, and how often they were looked at."""

    sides: SurroundingCache
    written: int
    drafts: int = 0


class MaskedDrafter:
    """Implements drafter.Drafter. The sides are read for a hole's first draft and every few drafts after it; the others
    cost the rows of what was written since, and of the draft.

    A draft has as many masks as are asked for, and the suffix behind them: whether so many tokens are missing is not
    found out first, as it is where such a family fills a hole by itself.
    """

    def __init__(self, model: MaskedModel) -> None:
        self.name, self.tokenizer = model.info.name, model.tokenizer
        self._model, self._traits = model, model.traits
        self._ends = {model.end, *model.traits.special.padding, model.traits.special.expand}
        self._places: WeakKeyDictionary[Unfinished, _DraftState] = WeakKeyDictionary()

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        drafts = []
        for result in self._model.run([self._pass(hole) for hole in holes]):
            tokens = result.predictions.tokens[:, 0].tolist()
            end = next((at for at, token in enumerate(tokens) if token in self._ends), len(tokens))
            drafts.append(tokens[:end])
        return drafts

    def _pass(self, hole: Unfinished) -> MaskedPass:
        place, written = self._place(hole)
        middle = [*written, *[self._traits.special.mask] * hole.length]
        rows = [place.sides.row_of(at, self._traits.shifted) for at in range(len(written), len(middle))]
        reads_sides = place.drafts % self._traits.refresh_steps == 0
        place.drafts += 1
        return MaskedPass(place.sides, [middle], rows, reads_sides)

    def _place(self, hole: Unfinished) -> tuple[_DraftState, list[int]]:
        """Return a hole's place with the tokens written in it; once it is full, they become part of the prefix."""
        place = self._places.get(hole)
        if place is not None:
            written = self.tokenizer.encode(hole.text[place.written :], add_special_tokens=False).ids
            if len(written) + hole.length <= ROOM:
                return place, written
        sides = self._traits.surroundings(self._model.lay_out(hole.moved), ROOM)
        place = self._places[hole] = _DraftState(sides, len(hole.text))
        return place, []

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._model.texts_of(tokens)
