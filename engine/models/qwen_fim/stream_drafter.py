"""Drafts of the embedded model: one canvas after its own causal context."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import attrs

from engine.fill.stream import StreamPass
from engine.models.embedded.model import EmbeddedModel
from engine.models.qwen_fim.drafter import Unfinished
from engine.schedule.job import ContextCache

_CACHE_BYTES = 64 * 1024 * 1024


@attrs.frozen
class _Stream:
    """A hole's tokens up to <middle> and after it, and how many characters of the written text they hold."""

    tokens: list[int]
    written: int


class StreamDrafter:
    """Implements drafter.Drafter. Contexts go back to the cache after each draft. The next draft of the hole, or of the
    next keystroke, finds all but the last few tokens there."""

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
        tokens = [*layout.context, self._model.middle, *self._encode(layout.typed)]
        self._streams[hole] = _Stream(tokens, len(hole.text))
        return tokens

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._model.texts_of(tokens)
