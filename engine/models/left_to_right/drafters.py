"""Drafters: the embedded model drafts on a canvas after its own causal context, a masked model before the suffix."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import attrs

from engine.fill.stream import StreamPass
from engine.models.embedded.model import EmbeddedModel
from engine.models.left_to_right.drafting import ROOM, Unfinished
from engine.models.masked.model import MaskedModel
from engine.models.masked.rows import MaskedPass, SurroundingCache
from engine.schedule.caches import ContextCache

_CACHE_BYTES = 64 * 1024 * 1024


@attrs.frozen
class _Stream:
    """A hole's tokens up to <middle> and after it, and how many characters of the written text they hold."""

    tokens: list[int]
    written: int


class StreamDrafter:
    """Implements drafting.Drafter.

    Contexts go back to the cache after each draft. The next draft of the hole, or of the next keystroke, finds all but
    the last few tokens there.
    """

    def __init__(self, model: EmbeddedModel) -> None:
        self.name, self.tokenizer = model.info.name, model.tokenizer
        self.cache = ContextCache(model, _CACHE_BYTES)
        self._model = model
        self._streams: WeakKeyDictionary[Unfinished, _Stream] = WeakKeyDictionary()

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        passes = [self._pass(hole) for hole in holes]
        drafts = []
        for item, result in zip(passes, self._model.run(passes), strict=True):
            self.cache.give_back(item.context)
            tokens = result.predictions.tokens[:, 0].tolist()
            end = tokens.index(self._model.end) if self._model.end in tokens else len(tokens)
            drafts.append(tokens[:end])
        return drafts

    def _pass(self, hole: Unfinished) -> StreamPass:
        tokens = self._tokens(hole)
        context = self.cache.take(tokens[:-1])  # the anchor's row makes the first prediction, so it is always read
        unread = tokens[len(context.tokens) :]
        anchor = len(unread) - 1
        return StreamPass(context, unread, [self._model.mask] * (hole.length - 1), range(anchor, anchor + hole.length))

    def _tokens(self, hole: Unfinished) -> list[int]:
        """Return all tokens before the draft. Once they fill the window, the written text becomes part of the
        prefix."""
        stream = self._streams.get(hole)
        if stream is not None:
            tokens = [*stream.tokens, *self._encode(hole.text[stream.written :])]
            if len(tokens) + hole.length <= self._model.info.context_tokens:
                return tokens
        layout = self._model.lay_out(hole.moved)
        tokens = [*layout.context, layout.anchor, *self._encode(layout.typed)]
        self._streams[hole] = _Stream(tokens, len(hole.text))
        return tokens

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._model.texts_of(tokens)


@attrs.define
class _DraftState:
    """The surroundings of a hole, how many characters of the written text are in them, and the drafts made so far."""

    surroundings: SurroundingCache
    written: int
    drafts: int = 0


class MaskedDrafter:
    """Implements drafting.Drafter. The surroundings are read for a hole's first draft, and again every few drafts. The
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
