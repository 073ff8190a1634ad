"""What all left-to-right models do alike: they tokenize, read context, name their tokens, and have two rules."""

from functools import cached_property

import attrs
import numpy as np
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.fill.interface import Context
from engine.fill.sampler import Predictions
from engine.fill.stream import StreamPass
from engine.models.embedded.layout import CompatibleTokens
from engine.models.stock.token_bytes import LineTokens, OfTokenBytes, TokenBytes, parts_of
from engine.protocol.messages import ModelInfo, RuleName

_RULES: tuple[RuleName, ...] = ("verify", "left-to-right")


class LeftToRightBase(OfTokenBytes):
    """The part of fill.stream.StreamModel that needs no network. Each of the tokens `ends` is taken for the first."""

    def __init__(
        self, info: ModelInfo, tokenizer: Tokenizer, token_bytes: TokenBytes, ends: tuple[int, ...], threads: int
    ) -> None:
        self.info, self.tokenizer, self.threads, self._token_bytes = info, tokenizer, threads, token_bytes
        self._lines, self._parts_of = LineTokens(self._encode_alone), parts_of(tokenizer)
        self.end, self._ends = ends[0], np.array(ends, np.int64)

    def _check(self, rule: RuleName) -> None:
        """Raise ModelError for a strategy that these models do not have."""
        if rule not in ("default", *_RULES):
            raise ModelError(
                f'the rule "{rule}" needs a model that denoises, which {self.info.name} does not; '
                f"it has {', '.join(_RULES)}"
            )

    def _encode(self, text: str) -> list[int]:
        """Return the tokens of a text. Those of its lines are remembered: each key has all of a file tokenized."""
        if "\r" in text:  # it may share a token with the newline
            return self._encode_alone(text)
        return [token for part in self._parts_of(text) for token in self._lines.of(part)]

    def _encode_alone(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def _with_one_end(self, predictions: Predictions) -> Predictions:
        """Return predictions in which each token that ends a fill is `end`."""
        ended = np.isin(predictions.tokens, self._ends)
        return attrs.evolve(predictions, tokens=np.where(ended, self.end, predictions.tokens))

    @cached_property
    def _compatible(self) -> CompatibleTokens:
        return CompatibleTokens(self._token_bytes.bytes)

    def compatible_tokens(self, typed: bytes) -> list[int]:
        return self._compatible.of(typed)
