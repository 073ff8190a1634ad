"""The model card: what a model was made of, at what cost, how good it is. Written by the chain, not by hand."""

import json
from collections import Counter
from pathlib import Path

import torch

from engine.training.config import Config
from engine.training.corpus import Package, read_manifest
from engine.training.evaluate import Row, Summary, gate_table, summarize

_HEAD = """\
# {name}

The model that Midspan fills holes with out of the box: {parameters:.1f} million parameters, {licence}, made by
`midspan train` from the packages below and nothing else. It reads code causally and fills canvases of {canvas} masked
positions bidirectionally; the same weights also write left to right. ARCHITECTURE.md tells how.

## Data

{packages} packages of the training split, by registry: {registries}. By licence as each package states it: {licences}.
Every package, its version and its licence stand in `engine/training/manifest.toml`. Generated, vendored, minified and
test files are left out, equal files are kept once, and files that share lines with HumanEval-Infilling are dropped.
Never trained on: {held_out}.

## Compute

{steps} steps in {minutes:.0f} minutes on {threads} CPU cores: {tokens:.1f} million tokens read, {rows:.1f} million
canvas positions denoised.

## Measured

Holes of packages that it never saw. Exact: the fill is what stood there, white space at its end aside. Milliseconds are
one user's, with a warm context.
"""

_GATE = """\
### How far its confidence can be trusted

Python, rest of line, by the default rule: what a gate at a confidence (the geometric mean of a line's token
probabilities) shows, and how much of it is exactly right.

| gate | shown | right among shown |
| --- | --- | --- |
"""

_LIMITS = """\
## What it is bad at

It is very small and has read little. It knows the shape of code far better than its meaning: names from the lines
around the hole come out right more often than the logic. It is best at the rest of a line, weak at several lines, and
knows Python much better than the other languages. It invents names and calls that do not exist. It can repeat short
stretches of its training data. Read what it offers before you keep it.
"""


def write_card(config: Config, config_folder: Path, work: Path, target: Path) -> Path:
    """Write README.md into the model's folder, from the run's checkpoint, manifest and evaluation rows."""
    packages = read_manifest(config_folder / config.corpus.manifest)
    trained = [package for package in packages if package.split == "train"]
    saved = torch.load(work / "checkpoint.pt", map_location="cpu", weights_only=True)
    progress = saved["progress"]
    head = _HEAD.format(
        name=config.name,
        parameters=sum(weight.numel() for weight in saved["network"].values()) / 1e6,
        licence="Apache-2.0",
        canvas=config.model.canvas_tokens,
        packages=len(trained),
        registries=_counted(Counter(package.registry for package in trained)),
        licences=_counted(Counter(_licence(package) for package in trained)),
        held_out=", ".join(package.name for package in packages if package.split == "held-out"),
        steps=progress["step"],
        minutes=progress["minutes"],
        threads=torch.get_num_threads(),
        tokens=progress["stream_tokens"] / 1e6,
        rows=progress["canvas_rows"] / 1e6,
    )
    parts = [head]
    gate = ""
    for path in sorted((work / "evaluation").glob("*.jsonl")):
        rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
        parts.append(_table(rows))
        if (rows[0].language, rows[0].kind) == ("python", "rest of line"):
            gate = _GATE + "".join(
                f"| {threshold:.2f} | {shown:.0%} | {right:.0%} |\n" for threshold, shown, right in gate_table(rows)
            )
    card = target / "README.md"
    card.write_text("\n".join([*parts, gate, _LIMITS]))
    return card


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def _licence(package: Package) -> str:
    return package.licence if len(package.licence) < 40 else "several"


def _table(rows: list[Row]) -> str:
    lines = [
        f"### {rows[0].language}, {rows[0].kind}, {summarize(rows)[0].holes} holes\n",
        "| way | exact | similarity | tokens | passes | ms |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(summary) for summary in summarize(rows)]
    return "\n".join(lines) + "\n"


def _row(summary: Summary) -> str:
    numbers = f"{summary.similarity:.2f} | {summary.tokens:.1f} | {summary.steps:.1f} | {summary.ms:.1f}"
    return f"| {summary.way} | {summary.exact:.1%} | {numbers} |"
