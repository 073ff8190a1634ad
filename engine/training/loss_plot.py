"""The plot of a run's losses, if matplotlib is installed (it belongs to the extra "train")."""

import json
from pathlib import Path


def draw(metrics: Path, target: Path) -> bool:
    """Draw a run's held-out losses over its stream tokens; return False if there is nothing to draw."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in map(json.loads, metrics.read_text().splitlines()) if "held_out" in row]
    if not rows:
        return False
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    tokens = [row["stream_tokens"] / 1e6 for row in rows]
    for name in rows[-1]["held_out"]:
        axes.plot(tokens, [row["held_out"].get(name) for row in rows], marker=".", label=name)
    axes.set_xlabel("stream tokens, millions")
    axes.set_ylabel("held-out cross entropy, nats a token")
    figure.legend(loc="outside right upper")
    axes.grid(alpha=0.3)
    figure.savefig(target, dpi=120)
    plt.close(figure)
    return True
