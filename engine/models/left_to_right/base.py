"""What all left-to-right models do alike: they tokenize, read context, name their tokens, and have two rules."""

from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.fill.interface import Context
from engine.fill.stream import StreamPass
from engine.models.stock.token_bytes import LineTokens, OfTokenBytes, TokenBytes, parts_of
from engine.protocol.messages import ModelInfo, RuleName

_RULES: tuple[RuleName, ...] = ("verify", "left-to-right")


class LeftToRightBase(OfTokenBytes):
    """The part of interface.Model that needs no network."""

    def __init__(self, info: ModelInfo, tokenizer: Tokenizer, token_bytes: TokenBytes, threads: int) -> None:
        self.info, self.tokenizer, self.threads, self._token_bytes = info, tokenizer, threads, token_bytes
        self._lines, self._parts_of = LineTokens(self._encode_alone), parts_of(tokenizer)

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
