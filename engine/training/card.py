"""The model card: a model's data, cost and quality. `midspan train` writes it; nobody edits it by hand."""

import json
from collections import Counter
from pathlib import Path

import torch

from engine.corpus.corpus import Package, read_manifest
from engine.evaluation.calibration import calibration_error, gate_table, judged_fills
from engine.evaluation.rows import read_rows
from engine.evaluation.summary import Summary, summarize
from engine.training.config import Config

_HEAD = """\
# {name}

The model that Midspan fills holes with out of the box: {parameters:.1f} million parameters, {licence}, made by
`midspan train` from the packages below and nothing else. It reads code causally and fills canvases of {canvas} masked
positions bidirectionally; the same weights also write left to right. ARCHITECTURE.md explains how.

## Data

{packages} packages of the training split, by registry: {registries}. By licence as each package states it: {licences}.
`engine/training/manifest.toml` lists every package with its version and licence. Generated, vendored, minified and test
files are left out, equal files are kept once, and files that share lines with HumanEval-Infilling are dropped.
Never trained on: {held_out}.

## Compute

{steps} steps in {minutes:.0f} minutes on {threads} CPU cores: {tokens:.1f} million tokens read, {rows:.1f} million
canvas positions denoised. Loss on held-out packages at the end, in nats a token: {losses}.

## Measured

Holes in packages that it never saw. Exact: the fill equals the author's code, without white space at the end. First
line: its first line does. Similarity: 1 minus the edit distance divided by the length of the longer text. Valid: the
file has no more syntax errors than with the author's code. Pass@1: the tests of HumanEval-Infilling pass. Milliseconds
are those of a single user with a cached context.
"""

_GATE = """\
### How far its confidence can be trusted

Python, rest of line, default strategy: the share of first lines that a gate shows, and how many of those are exactly
right. The gate asks for a confidence, the product of the first line's token probabilities. The expected calibration
error is {error:.3f}.

| gate | shown | right among shown |
| --- | --- | --- |
"""

_LIMITS = """\
## What it is bad at

It is very small and has read little. It knows the form of code far better than its meaning: names from the lines around
the hole are right more often than the logic. It is best at the rest of a line, weak at several lines, and knows Python
much better than the other languages. It invents names and calls that do not exist. It can repeat short parts of its
training data. Read its suggestions before you keep them.
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
        held_out=", ".join(package.name for package in packages if package.split != "train"),
        steps=progress["step"],
        minutes=progress["minutes"],
        threads=torch.get_num_threads(),
        tokens=progress["stream_tokens"] / 1e6,
        rows=progress["canvas_rows"] / 1e6,
        losses=_last_losses(work / "metrics.jsonl"),
    )
    rows = [row for path in sorted((work / "evaluation").glob("*.jsonl")) for row in read_rows(path)]
    summaries = summarize(rows)
    groups = dict.fromkeys((summary.language, summary.kind) for summary in summaries)
    tables = [
        _table([summary for summary in summaries if (summary.language, summary.kind) == group]) for group in groups
    ]
    trust = ""
    python = judged_fills([row for row in rows if row.language == "python"])
    if python:
        trust = _GATE.format(error=calibration_error(python)) + "".join(
            f"| {gate.threshold:.2f} | {gate.shown:.0%} | {gate.right:.0%} |\n" for gate in gate_table(python)
        )
    card = target / "README.md"
    card.write_text("\n".join([head, *tables, trust, _LIMITS]))
    return card


def _last_losses(metrics: Path) -> str:
    """Return the last held-out losses of a run, by row_losses.LEVELS."""
    noted = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
    last: dict[str, float] = next((row["levels"] for row in reversed(noted) if "levels" in row), {})
    return ", ".join(f"{loss:.3f} {level}" for level, loss in last.items()) or "not measured"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def _licence(package: Package) -> str:
    return package.licence if len(package.licence) < 40 else "several"


def _table(group: list[Summary]) -> str:
    lines = [
        f"### {group[0].language}, {group[0].kind}, {group[0].holes} holes\n",
        "| strategy | exact | first line | similarity | valid | pass@1 | tokens | passes | ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(summary) for summary in group]
    return "\n".join(lines) + "\n"


def _row(summary: Summary) -> str:
    shares = [summary.exact, summary.first_line, summary.valid, summary.passed]
    exact, first_line, valid, passed = ("-" if each is None else f"{each:.1%}" for each in shares)
    ms = f"{summary.ms:.1f}" if summary.ms else "-"
    numbers = f"{passed} | {summary.tokens:.1f} | {summary.steps:.1f} | {ms}"
    return f"| {summary.strategy} | {exact} | {first_line} | {summary.similarity:.2f} | {valid} | {numbers} |"
