"""The plot of quality: over what a run had read, and over the denoising steps that a fill may take."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.evaluation.measure import Row
from engine.evaluation.summary import Summary, summarize
from engine.evaluation.ways import DENOISE, TWIN, WAYS


def draw(measured: Mapping[int, Sequence[Row]], target: Path) -> None:
    """Write a PNG of exact matches and similarity; `measured` has one kind of hole, by stream tokens read."""
    import matplotlib  # it belongs to the extra "train"

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(9, 6), sharey="row", layout="constrained")
    points = {tokens: {one.way: one for one in summarize(rows)} for tokens, rows in sorted(measured.items())}
    newest = points[max(points)]
    stepped = [way for way in WAYS if way.rule == DENOISE.rule and way.steps and way.name in newest]
    for (left, right), field in zip(panels, ("exact", "similarity"), strict=True):
        for way in (TWIN, DENOISE):
            known = [(tokens / 1e6, _value(found[way.name], field)) for tokens, found in points.items()]
            left.plot(*zip(*known, strict=True), marker="o", markersize=4, label=way.name)
        steps = [way.steps for way in stepped]
        right.plot(
            steps, [_value(newest[way.name], field) for way in stepped], marker="o", markersize=4, label="denoising"
        )
        right.axhline(_value(newest[TWIN.name], field), color="0.5", linestyle="--", linewidth=1, label=TWIN.name)
        right.set_xscale("log", base=2, subs=[])
        right.set_xticks(steps, [str(count) for count in steps])
        left.set_ylabel("exact, %" if field == "exact" else "edit similarity, %")
        for axes in (left, right):
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
    panels[1][0].set_xlabel("stream tokens read, millions")
    panels[1][1].set_xlabel(f"steps, after {max(points) / 1e6:.1f} million tokens")
    holes = newest[TWIN.name]
    figure.suptitle(f"{holes.kind}, held-out {holes.language}, {holes.holes} holes", fontsize=10)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=120)
    plt.close(figure)


def _value(summary: Summary, field: str) -> float:
    return 100 * float(getattr(summary, field))
