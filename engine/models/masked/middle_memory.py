"""What is known of the workspace, mixed into the predictions of a middle."""

from collections.abc import Sequence

import attrs
import numpy as np

from engine.fill.interface import HISTORY, FillTask, RowMixture
from engine.fill.predictions import Predictions, Query


class MiddleMemory:
    """Mixes the rows that predict a token whose left side is known: that of the first masked position.

    What follows a mask is not known, so all other rows stay as they are.
    """

    def __init__(self, task: FillTask) -> None:
        self._memory, self._above = task.memory, task.layout.above[-HISTORY:]
        self._mixture: RowMixture | None = None
        self._rows: list[int] = []

    def query(self, query: Query, rows: int, firsts: Sequence[int], written: Sequence[int]) -> Query:
        """Return `query`, about `rows` rows, with the tokens that the mixture needs.

        firsts: which of the rows predict the first masked position, each in a middle of its own. written: the tokens of
        the middle before it.
        """
        if self._memory is None or not firsts:
            self._mixture = None
            return query
        history = [*self._above, *written][-HISTORY:]
        self._rows = list(firsts)
        self._mixture = self._memory.rows([history] * len(firsts), ())
        known = self._mixture.named
        named = np.zeros((rows, known.shape[1]), np.int64)
        named[self._rows] = known
        return attrs.evolve(query, named=named)

    def mixed(self, predictions: Predictions) -> Predictions:
        """Return the predictions of the last query's rows with the memory's share."""
        if self._mixture is None:
            return predictions
        return predictions.with_rows(self._rows, self._mixture.mix(predictions.rows(self._rows)))
