"""What the memory says of the targets of a training sequence, so that the network learns what the memory cannot know.

The loss of a row is then of the mixture (TRIME, arXiv 2205.12674), not of the network alone. The mixture's weights come
from a blind gate: it does not look at the network's prediction, because rows are laid out before that exists. `midspan
train memory --blind` trains one.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.memory.file_scan import FileScan
from engine.memory.followers import RUNS
from engine.memory.gate import MemoryGate
from engine.memory.row_memory import SCOPES, followers_of_rows
from engine.memory.row_statistics import Statistics, counts_of
from engine.training.memory_rows import NO_FIRST
from engine.training.workspace_holes import Workspace

BLIND_GATE = "blind-gate.safetensors"
"""The blind gate's file in the work folder."""


class MemoryOdds:
    """The memory's share of a target's probability, by the weights of a blind gate."""

    def __init__(self, gate: Path) -> None:
        self._gate = MemoryGate.load(gate)

    def of(
        self, workspace: Workspace, above: Sequence[int], below: Sequence[int], known: int, targets: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return for each target the memory's weighted probability, divided by the weight of the network; 0 if unknown.

        above: the tokens above the cursor. below: those below it. targets: the last tokens of `above` from number
        `known` on, and the tokens of the middle after them. A token of `above` is looked up in what is above it.
        """
        written = [*above, *targets[len(above) - known :]]
        ends = [min(known + number, len(above)) for number in range(len(targets))]
        stops = range(known, known + len(targets))
        histories = [written[max(0, stop - RUNS[-1]) : stop] for stop in stops]
        scan = FileScan(above, below)
        found = followers_of_rows(scan, workspace.index, workspace.file, histories, {}, ends)
        statistics, numbers = Statistics.of(found.joined), np.array(targets, np.int64)
        weights = self._gate.weights(blind_features(statistics), statistics.present)
        counts = np.stack([counts_of(scope, numbers) for scope in found.scopes], 1)
        runs = self._gate.run_weights(statistics)
        shares = (runs * counts / np.maximum(statistics.totals, 1)).sum(-1)
        odds: NDArray[np.float32] = (weights[:, 1:] * shares).sum(1) / np.maximum(weights[:, 0], 1e-6)
        return odds


def blind_features(statistics: Statistics) -> NDArray[np.float32]:
    """Return the gate's input without the network's prediction."""
    rows = len(statistics.tops)
    return statistics.features(
        np.full(rows, NO_FIRST, np.int64), np.zeros(rows, np.float32), np.zeros((rows, SCOPES), np.float32)
    )
