"""Drafts of a masked model: masks between the written text and the suffix."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import attrs

from engine.models.masked.model import MaskedModel
from engine.models.masked.rows import MaskedPass
from engine.models.masked.surrounding_cache import SurroundingCache
from engine.models.qwen_fim.drafter import ROOM, Unfinished


@attrs.define
class _DraftState:
    """The surroundings of a hole, how many characters of the written text are in them, and the drafts made so far."""

    surroundings: SurroundingCache
    written: int
    drafts: int = 0


class MaskedDrafter:
    """Implements drafter.Drafter. The surroundings are read for a hole's first draft, and again every few drafts. The
    other drafts cost the rows of the text written since, and of the draft.

    A draft has as many masks as were asked for, with the suffix after them. It does not find out first how many tokens
    are missing, as a fill of such a model does.
    """

    def __init__(self, model: MaskedModel) -> None:
        self.name, self.tokenizer = model.info.name, model.tokenizer
        self._model, self._traits = model, model.traits
        self._ends = {model.end, *model.traits.special.padding, model.traits.special.expand}
        self._states: WeakKeyDictionary[Unfinished, _DraftState] = WeakKeyDictionary()

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        drafts = []
        for result in self._model.run([self._pass(hole) for hole in holes]):
            tokens = result.predictions.tokens[:, 0].tolist()
            end = next((at for at, token in enumerate(tokens) if token in self._ends), len(tokens))
            drafts.append(tokens[:end])
        return drafts

    def _pass(self, hole: Unfinished) -> MaskedPass:
        state, written = self._state(hole)
        middle = [*written, *[self._traits.special.mask] * hole.length]
        rows = [state.surroundings.row_of(at, self._traits.shifted) for at in range(len(written), len(middle))]
        reads_surrounding = state.drafts % self._traits.refresh_steps == 0
        state.drafts += 1
        return MaskedPass(state.surroundings, [middle], rows, reads_surrounding)

    def _state(self, hole: Unfinished) -> tuple[_DraftState, list[int]]:
        """Return a hole's state with the tokens written since. Once these fill the room, they become part of the
        prefix."""
        state = self._states.get(hole)
        if state is not None:
            written = self.tokenizer.encode(hole.text[state.written :], add_special_tokens=False).ids
            if len(written) + hole.length <= ROOM:
                return state, written
        surroundings = self._traits.surroundings(self._model.lay_out(hole.moved), ROOM)
        state = self._states[hole] = _DraftState(surroundings, len(hole.text))
        return state, []

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._model.texts_of(tokens)
