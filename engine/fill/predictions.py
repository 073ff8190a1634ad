"""What a model predicts at the rows of a pass, as plain arrays. On a GPU they are made there (models/predict.py)."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

NEVER = -1e9
"""The logit of a token that must not come. Finite, so that no product with it is NaN."""


@attrs.frozen(eq=False)
class Query:
    """What a fill asks about the rows of a pass whose predictions it wants.

    top: how many of the most likely tokens.
    entropy: whether the entropy of each row is wanted.
    compatible_tokens: where not empty, the only tokens that the first of these rows may propose.
    named: token ids [rows, n] whose probabilities are wanted, or None.
    """

    top: int = 1
    entropy: bool = False
    compatible_tokens: Sequence[int] = ()
    named: NDArray[np.int64] | None = None


@attrs.frozen(eq=False)
class Predictions:
    """What a model predicts at n rows, as plain arrays.

    tokens: int64 [n, top], the most likely first.
    probabilities: fp32 [n, top], of these tokens.
    entropy: fp32 [n], nats; zeros where it was not asked for.
    named: fp32 [n, m], the probabilities of the tokens that the query named.
    continues: fp32 [n], how likely the next token goes on with the word before it; zeros where the model does not say.
    """

    tokens: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    entropy: NDArray[np.float32]
    named: NDArray[np.float32]
    continues: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.tokens)

    def part(self, start: int, stop: int) -> "Predictions":
        """Return the predictions of rows `start` up to `stop`."""
        return self._at(slice(start, stop))

    def rows(self, rows: Sequence[int]) -> "Predictions":
        """Return the predictions of some rows."""
        return self._at(list(rows))

    def _at(self, rows: slice | list[int]) -> "Predictions":
        return Predictions(
            self.tokens[rows], self.probabilities[rows], self.entropy[rows], self.named[rows], self.continues[rows]
        )

    def with_rows(self, rows: Sequence[int], other: "Predictions") -> "Predictions":
        """Return these predictions with the tokens of `other`, as many a row, and their probabilities at some rows."""
        tokens, probabilities, index = self.tokens.copy(), self.probabilities.copy(), list(rows)
        tokens[index], probabilities[index] = other.tokens, other.probabilities
        return attrs.evolve(self, tokens=tokens, probabilities=probabilities)

    @staticmethod
    def of_both(first: "Predictions", second: "Predictions") -> "Predictions":
        """Return the rows of both, one after the other. They have the same number of tokens a row."""
        return Predictions(
            np.concatenate((first.tokens, second.tokens)),
            np.concatenate((first.probabilities, second.probabilities)),
            np.concatenate((first.entropy, second.entropy)),
            np.concatenate((first.named, second.named)),
            np.concatenate((first.continues, second.continues)),
        )

    def without(self, token: int) -> "Predictions":
        """Return what is predicted if `token` must not come: each row has one token less.

        Exact for a row that has `token` among its top. Elsewhere the token is no more likely than the last of the top,
        and its small probability stays in the sum.
        """
        kept = np.argsort(self.tokens == token, axis=1, kind="stable")[:, :-1]
        removed = np.where(self.tokens == token, self.probabilities, 0).sum(1)
        left = np.maximum(1 - removed, 1e-9)
        probabilities = np.take_along_axis(self.probabilities, kept, 1) / left[:, None]
        entropy = (self.entropy + removed * np.log(np.maximum(removed, 1e-30))) / left + np.log(left)
        return Predictions(np.take_along_axis(self.tokens, kept, 1), probabilities, entropy, self.named, self.continues)


def continues_word(text: bytes) -> bool:
    """Return whether a token's bytes go on with a word. Bytes of other alphabets count as letters."""
    return bool(text) and (text[:1].isalnum() or text[0] == ord("_") or text[0] >= 128)


def keep_only(logits: NDArray[np.float32], tokens: Sequence[int]) -> None:
    """Rule out all tokens of a row but `tokens`. logits: fp32 [vocabulary], changed in place."""
    kept = np.asarray(tokens, np.int64)
    of_kept = logits[kept]
    logits[:] = NEVER
    logits[kept] = of_kept


@attrs.frozen
class PassResult:
    """What a model returns for a pass: predictions of its wanted rows. Some models add to it."""

    predictions: Predictions
