"""The plot of quality: over the tokens that a run has read, and over the denoising steps of a fill."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.evaluation.rows import Row
from engine.evaluation.strategies import DENOISE, STRATEGIES, TWIN
from engine.evaluation.summary import Summary, summarize


def draw(measured: Mapping[int, Sequence[Row]], target: Path) -> None:
    """Write a PNG of exact matches and similarity; `measured` maps stream tokens read to rows of one kind of hole."""
    import matplotlib  # it belongs to the extra "train"

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(9, 6), sharey="row", layout="constrained")
    by_tokens = {
        tokens: {summary.strategy: summary for summary in summarize(rows)} for tokens, rows in sorted(measured.items())
    }
    newest = by_tokens[max(by_tokens)]
    denoising = [
        strategy
        for strategy in STRATEGIES
        if strategy.rule == DENOISE.rule and strategy.steps and strategy.name in newest
    ]
    for (left, right), field in zip(panels, ("exact", "similarity"), strict=True):
        for strategy in (TWIN, DENOISE):
            points_read = [
                (tokens / 1e6, _value(summaries[strategy.name], field)) for tokens, summaries in by_tokens.items()
            ]
            left.plot(*zip(*points_read, strict=True), marker="o", markersize=4, label=strategy.name)
        steps = [strategy.steps for strategy in denoising]
        right.plot(
            steps,
            [_value(newest[strategy.name], field) for strategy in denoising],
            marker="o",
            markersize=4,
            label="denoising",
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
    panels[1][1].set_xlabel(f"steps, after {max(by_tokens) / 1e6:.1f} million tokens")
    holes = newest[TWIN.name]
    figure.suptitle(f"{holes.kind}, held-out {holes.language}, {holes.holes} holes", fontsize=10)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=120)
    plt.close(figure)


def _value(summary: Summary, field: str) -> float:
    return 100 * float(getattr(summary, field))
