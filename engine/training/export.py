"""Exports a checkpoint as a model's folder: safetensors in 4 bits, tokenizer, config, and a card with its figures."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import cattrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from engine.corpus.corpus import Package, read_manifest
from engine.evaluation.calibration import calibration_error, gate_table, judged_fills
from engine.evaluation.rows import read_rows
from engine.evaluation.summary import Summary, summarize
from engine.models.embedded.model import FAMILY, Card, config_of
from engine.models.embedded.network import Network
from engine.models.embedded.weights import CENTRE, SCALE, STEPS, in_steps, packed_pairs, quantize_int8
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.checkpoint import NEWEST, PARENT, load_network, progress_of
from engine.training.config import Config
from engine.training.convert import WHEEL, WHEEL_SHA256
from engine.training.loader import special_tokens_of
from engine.training.rounded import round_linears, rounded_linears, weights_of

ORIGIN = "parent.txt"
"""A file in a run's folder that names its parent, unless that is WHEEL."""

_HEAD = """\
# {name}

The model that Midspan fills holes with out of the box: {parameters:.1f} million parameters, Apache-2.0. It reads code
causally and denoises canvases of up to {canvas} masks that see each other; the same weights also write left to right.
docs/embedded-model.md explains how.

## Where the weights come from

{origin}

Changed here, by `midspan train` (docs/training.md):

- The vocabulary was trimmed to {vocabulary:,} tokens: those that source code needs, and marks for the suffix, the
  prefix, the rest of the line, the middle, the end, a mask and a file.
- The network was trained to fill holes, also after code of other files that resembles them, and to denoise canvases of
  masks after random places of the code.
- The trained weights were rounded to 4-bit numbers with a scale and a centre for each 32 of them, as the parent's are.
  The embedding was rounded to int8.

## Data

For the data of the parent see its own card. Our training read {packages} packages. `engine/training/manifest.toml`
lists each with its version and licence. Generated, vendored, minified and test files are left out, equal files are kept
once, and files that share lines with HumanEval-Infilling are dropped.

- By registry: {registries}.
- By licence, as each package states it: {licences}.
- Our training never read: {held_out}.

## Compute

{compute}

Loss on held-out packages, which the parent may have read, in nats a token before rounding: {losses}.
"""
_COMPUTE = """\
{steps:,} steps, {minutes:.0f} minutes of one run: {tokens:.1f} million tokens read, {middle:.1f} million of them in the
middles of holes, and {rows:.1f} million canvas rows denoised."""
_NO_COMPUTE = "Converted, and not trained yet: it fills badly."
_WITH_OTHERS = """\
{runs} runs side by side that averaged their weights: {steps:,} steps and {minutes:.0f} minutes in all, {tokens:.1f}
million tokens read, {middle:.1f} million of them in middles of holes, and {rows:.1f} million canvas rows denoised."""
_SMOLLM2 = f"""\
They are a changed version of SmolLM2-135M-Instruct by Hugging Face (Apache-2.0; NOTICE names its authors), which read
two trillion tokens from left to right. Taken as GGUF in Q4_1 from the wheel {WHEEL} of PyPI (sha256
{WHEEL_SHA256})."""
_OTHER_PARENT = """\
They are a changed version of {parent}. Its own card says who made it, of what data, and under which licence; correct
this card and config.json by it."""
_LEVELS = {
    "middle": "in the middles of holes",
    "above": "in the code above them",
    "full": "on canvases with all masked",
    "partial": "on the other canvases",
}
"""The losses of objective.MEANS in words."""
_MEASURED = """\
## Measured

Exact: the fill equals the author's code, without white space at the end. First line: its first line does. Similarity:
1 minus the edit distance divided by the length of the longer text. Valid: the file has no more syntax errors than with
the author's code. Pass@1: the tests of HumanEval-Infilling pass; the parent may know its solutions. Milliseconds are
those of a single user with a cached context.
"""
_SETS = {
    "judge": "Packages first released in 2025 or later: the parent cannot have read them",
    "held-out": "Older packages: our training left them out, but the parent may have read them",
}
"""Headings of the files in WORK/evaluation, by their names."""

_GATE = """\
## How far its confidence can be trusted

Python, rest of line, default strategy: the share of first lines that a gate shows, and how many of those are exactly
right. The gate asks for a confidence, the product of the first line's token probabilities. The expected calibration
error is {error:.3f}.

| gate | shown | right among shown |
| --- | --- | --- |
"""

_LIMITS = """\
## What it is bad at

It is small. It knows the form of code better than its meaning: names from the lines around the hole are right more
often than the logic. It is best at the rest of a line, weak at several lines, and trained on more Python than on any
other language. It invents names and calls that do not exist. It can repeat short parts of the code that it or its
parent has read. Read its suggestions before you keep them.
"""


def write_card(config: Config, config_folder: Path, work: Path, target: Path, beside: Path | None = None) -> Path:
    """Write README.md into the model's folder, from the run's checkpoint, manifest and evaluation rows.

    `beside` is the work folder of the run that weights were averaged with. Raises CheckpointError and CorpusError.
    """
    packages = read_manifest(config_folder / config.corpus.manifest)
    trained = [package for package in packages if package.split == "train"]
    network = load_network(_newest(work))
    head = _HEAD.format(
        name=config.name,
        parameters=weights_of(network) / 1e6,
        canvas=network.shape.canvas_tokens,
        origin=_origin(work),
        vocabulary=network.shape.vocabulary,
        packages=len(trained),
        registries=_counted(Counter(package.registry for package in trained)),
        licences=_counted(Counter(_licence(package) for package in trained)),
        held_out=", ".join(package.name for package in packages if package.split != "train"),
        compute=_compute([work] if beside is None else [work, beside]),
        losses=_last_losses(work / "metrics.jsonl"),
    )
    target.mkdir(parents=True, exist_ok=True)
    card = target / "README.md"
    card.write_text("\n".join([head, *_measured(work / "evaluation"), _LIMITS]))
    return card


def _newest(work: Path) -> Path:
    return work / (NEWEST if (work / NEWEST).exists() else PARENT)


def _origin(work: Path) -> str:
    """Return where the weights come from: the default parent, or the one that ORIGIN in a run's folder names."""
    named = work / ORIGIN
    return _OTHER_PARENT.format(parent=named.read_text().strip()) if named.exists() else _SMOLLM2


def _compute(runs: Sequence[Path]) -> str:
    done = [progress_of(_newest(run)) for run in runs]
    if not any(progress.step for progress in done):
        return _NO_COMPUTE
    return (_COMPUTE if len(runs) == 1 else _WITH_OTHERS).format(
        runs=len(runs),
        steps=sum(progress.step for progress in done),
        minutes=sum(progress.earlier + progress.minutes for progress in done),
        tokens=sum(progress.stream_tokens for progress in done) / 1e6,
        middle=sum(progress.middle_tokens for progress in done) / 1e6,
        rows=sum(progress.canvas_rows for progress in done) / 1e6,
    )


def _last_losses(metrics: Path) -> str:
    """Return the last held-out losses of a run."""
    noted = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
    last: dict[str, float] = next((row["held_out"] for row in reversed(noted) if "held_out" in row), {})
    return ", ".join(f"{loss:.3f} {_LEVELS.get(name, name)}" for name, loss in last.items()) or "not measured"


def _measured(folder: Path) -> list[str]:
    """Return the tables of each evaluation of a run, the judge's first, and how far confidence can be trusted."""
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: (path.stem != "judge", path.stem))
    if not paths:
        return []
    parts, rows = [_MEASURED], [read_rows(path) for path in paths]
    for path, each in zip(paths, rows, strict=True):
        parts.append(f"### {_SETS.get(path.stem, path.stem)}\n")
        summaries = summarize(each)
        groups = dict.fromkeys((summary.language, summary.kind) for summary in summaries)
        parts += [
            _table([summary for summary in summaries if (summary.language, summary.kind) == group]) for group in groups
        ]
    if python := judged_fills([row for row in rows[0] if row.language == "python"]):
        shares = (f"| {gate.threshold:.2f} | {gate.shown:.0%} | {gate.right:.0%} |\n" for gate in gate_table(python))
        parts.append(_GATE.format(error=calibration_error(python)) + "".join(shares))
    return parts


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def _licence(package: Package) -> str:
    return package.licence if len(package.licence) < 40 else "several"


def _table(group: list[Summary]) -> str:
    lines = [
        f"#### {group[0].language}, {group[0].kind}, {group[0].holes} holes\n",
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


LICENCE = "Apache-2.0"
"""The licence of the default parent and of what is made of it."""


def card_of(folder: Path) -> Card | None:
    """Return the card of a model that `export` wrote, or None for anything else."""
    try:
        config = json.loads((folder / "config.json").read_text())
        return (
            cattrs.Converter(detailed_validation=False).structure(config, Card) if config["family"] == FAMILY else None
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def export(config: Config, network: Network, tokenizer_path: Path, folder: Path, licence: str = LICENCE) -> None:
    """Write a folder that the engine can load: the blocks' matrices in 4 bits, the embedding in int8.

    The network's matrices are rounded to the nearest, in place, unless they are rounded already.
    """
    round_linears(network)
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, linear in rounded_linears(network).items():
        scale, centre = (each.detach().float().cpu().numpy() for each in (linear.scale, linear.centre))
        stored[name] = packed_pairs(linear.numbers.detach().round().cpu().numpy().astype(np.uint8))
        stored[name + SCALE], stored[name + CENTRE], stored[name + STEPS] = in_steps(scale, centre)
    for name, weight in network.state_dict().items():
        if weight.dim() == 1:
            stored[name] = weight.float().cpu().numpy()
    stored["embed.weight"], stored["embed.weight" + SCALE] = quantize_int8(network.embed.weight.detach().cpu().numpy())
    save_file(stored, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(tokenizer_path.read_bytes())
    card = Card(
        family=FAMILY,
        name=config.name,
        licence=licence,
        shape=network.shape,
        marks=special_tokens_of(load_tokenizer(tokenizer_path)),
        below_tokens=config.holes.suffix_tokens,
        related_tokens=config.model.related_tokens,
        anchor=config.model.anchor,
    )
    (folder / "config.json").write_text(config_of(card))


def export_checkpoint(config: Config, work: Path, folder: Path, checkpoint: Path) -> None:
    """Export a checkpoint of a run. Raises CheckpointError."""
    # Another parent's licence is not ours to state: its own card has it.
    licence = "as its parent's" if (work / ORIGIN).exists() else LICENCE
    export(config, load_network(checkpoint), work / "tokenizer.json", folder, licence)
