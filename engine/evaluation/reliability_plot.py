"""The plot of calibration: share of right fills over confidence, and what each gate would show."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from engine.evaluation.calibration import BINS, WANTED, Judged, calibration_error, gate_for, gate_table, reliability


def draw(judged: Sequence[Judged], title: str, path: Path) -> None:
    """Write a PNG with two plots: the reliability diagram, and the shares shown and right over the gate."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    bins = reliability(judged)
    left.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    left.bar([each.low + 0.5 / BINS for each in bins], [each.right for each in bins], 0.9 / BINS, alpha=0.6)
    left.plot([each.confidence for each in bins], [each.right for each in bins], marker="o", markersize=4)
    for each in bins:
        left.annotate(str(each.count), (each.low + 0.5 / BINS, 0.01), ha="center", fontsize=7)
    left.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="first line right")
    left.set_title(f"{len(judged)} fills, calibration error {calibration_error(judged):.3f}", fontsize=10)
    gates = gate_table(judged)
    right.plot([gate.threshold for gate in gates], [gate.shown for gate in gates], label="shown")
    right.plot([gate.threshold for gate in gates], [gate.right for gate in gates], label="right among shown")
    right.axhline(WANTED, color="0.7", linewidth=1)
    wanted = gate_for(judged)
    if wanted is not None:
        right.axvline(wanted.threshold, color="0.7", linewidth=1, linestyle="--", label=f"gate {wanted.threshold:.2f}")
    right.set(xlim=(0, 1), ylim=(0, 1), xlabel="gate")
    right.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
