"""A memory that only drafts: what it knows is not mixed with the model's predictions."""

from collections.abc import Iterable, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.sampler import SOURCES, Predictions, RowSources

_LEAST = np.float32(1e-30)


@attrs.frozen
class DraftingMemory:
    """Implements interface.FillMemory. Says that every history goes on with `tokens`."""

    tokens: Sequence[int]

    def rows(self, histories: Sequence[Sequence[int]], compatible: Sequence[int]) -> "Unmixed":
        return Unmixed(len(histories))

    def continuation(
        self, history: Sequence[int], most: int, compatible: Sequence[int] = ()
    ) -> Iterable[tuple[int, float]]:
        return [(token, 0.9) for token in self.tokens[:most]]


class Unmixed:
    """Implements interface.RowMixture for rows of which nothing is known."""

    def __init__(self, rows: int) -> None:
        self.named: NDArray[np.int64] = np.zeros((rows, 0), np.int64)

    def weights(self, predictions: Predictions) -> NDArray[np.float32]:
        return np.ones((len(predictions), 1), np.float32)

    def mix(self, predictions: Predictions, weights: NDArray[np.float32] | None = None) -> Predictions:
        return predictions

    def sources(self, predictions: Predictions, weights: NDArray[np.float32], tokens: Sequence[int]) -> RowSources:
        rows = len(tokens)
        chosen = predictions.tokens[:rows] == np.asarray(tokens, np.int64)[:, None]
        alone = np.maximum((chosen * predictions.probabilities[:rows]).sum(1), _LEAST)
        shares = np.zeros((rows, len(SOURCES)), np.float32)
        shares[:, 0] = 1
        return RowSources(alone, shares)
