"""Compares leads: every lead continues from the same checkpoint, for the same steps, on the same holes.

A run from nothing that is short enough to repeat fills no hole exactly, so only its loss says something. A checkpoint
that fills some holes shows within a few hundred steps how a change affects exact matches and accepted drafts.
"""

import json
import shutil
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import cattrs
from rich.table import Table

from engine.corpus import corpus
from engine.evaluation.measure import measure_held_out
from engine.evaluation.rows import Row, write_rows
from engine.evaluation.strategies import DENOISE, TWIN, VERIFY
from engine.evaluation.summary import accepted_an_iteration, summarize
from engine.models import load as registry
from engine.training import objective, row_losses
from engine.training.checkpoint import NEWEST
from engine.training.config import Config, ConfigError
from engine.training.export import export_checkpoint
from engine.training.loader import Source
from engine.training.memory_odds import BLIND_GATE
from engine.training.train import Run

RATE = 0.3
"""Share of the peak learning rates at the first step. They fall to zero from there: losses compare only at zero."""
HELD_OUT = 24
"""Batches for the held-out losses, the same ones for every lead."""


@attrs.frozen
class Compared:
    """The result of one lead. `losses` are in nats, by row_losses.LEVELS; `exact` and `similarity` are by strategy."""

    change: str
    steps: int
    seconds: float
    losses: dict[str, float]
    exact: dict[str, float]
    similarity: dict[str, float]
    accepted: float


def changed(config: Config, change: str) -> Config:
    """Return a config with one number changed, as "objective.distilled = 0"; "" changes nothing.

    Raises ConfigError if `change` names no number of the config.
    """
    fields: dict[str, Any] = cattrs.unstructure(config)
    if change:
        try:
            _merge(fields, tomllib.loads(change))
            return cattrs.Converter(forbid_extra_keys=True, detailed_validation=False).structure(fields, Config)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(f'{change!r} changes no number of the config: {reason}; try "section.name = 1"') from None
    return config


def _merge(fields: dict[str, Any], change: dict[str, Any]) -> None:
    """Overwrite a config's values with those of a change; tables of odds are replaced as a whole."""
    for name, value in change.items():
        if isinstance(value, dict) and name not in ("canvas_lengths", "weights", "shares"):
            _merge(fields[name], value)
        else:
            fields[name] = value


def compare(
    config: Config,
    checkpoint: Path,
    work: Path,
    change: str,
    steps: int,
    folder: Path,
    count: int,
    compiled: bool = True,
) -> Compared:
    """Continue from `checkpoint` for `steps` with `change`, and fill `count` held-out Python holes with the result.

    `work` holds corpus/ and tokenizer.json. `folder` gets the checkpoint and the fills, fills.jsonl.
    """
    original, config = config, changed(config, change)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint, folder / NEWEST)
    shutil.copyfile(work / "tokenizer.json", folder / "tokenizer.json")
    if (work / BLIND_GATE).exists():
        shutil.copyfile(work / BLIND_GATE, folder / BLIND_GATE)
    if not (folder / "corpus").exists():
        (folder / "corpus").symlink_to((work / "corpus").resolve())
    run = Run(config, folder, compiled)
    rows, distilled = objective.phase(config.objective, 1.0)
    batches = run.source.batches(config.optimizer.seed + run.progress.step, rows, 1, run.device)
    started = time.process_time()
    for step in range(steps):
        run.step(next(batches), distilled, RATE * (1 - step / steps))
    seconds = time.process_time() - started
    run.save()
    held_out = Source(original, folder).held_out(HELD_OUT, original.objective.canvas_rows_late, run.device)
    losses = row_losses.levels(run.network, held_out)
    export_checkpoint(config, folder, folder / "model")
    fills = _fills(folder / "model", work, count)
    write_rows(fills, folder / "fills.jsonl")
    by_strategy = {summary.strategy: summary for summary in summarize(fills)}
    strategies = [strategy.name for strategy in (TWIN, DENOISE)]
    compared = Compared(
        change=change or "nothing",
        steps=steps,
        seconds=round(seconds, 1),
        losses=dict(zip(row_losses.LEVELS, (round(loss, 4) for loss in losses), strict=True)),
        exact={strategy: by_strategy[strategy].exact for strategy in strategies},
        similarity={strategy: by_strategy[strategy].similarity for strategy in strategies},
        accepted=accepted_an_iteration(fills),
    )
    (folder / "compared.json").write_text(json.dumps(attrs.asdict(compared), indent=2) + "\n")
    return compared


def _fills(model: Path, work: Path, count: int) -> list[Row]:
    files = corpus.load(work / "corpus", "held-out")
    strategies = (TWIN, VERIFY, DENOISE)
    return measure_held_out(registry.load(str(model)), files, ["python"], ["rest of line"], count, strategies)


def compared_table(leads: Sequence[Compared]) -> Table:
    """Return a table of leads; losses in nats a token, CPU seconds of all steps."""
    table = Table("change", *row_losses.LEVELS, "exact", "similarity", "accepted", "CPU s", title="Leads")
    for lead in leads:
        losses = [f"{loss:.3f}" for loss in lead.losses.values()]
        quality = [
            " / ".join(f"{100 * share:.1f}" for share in shares.values()) for shares in (lead.exact, lead.similarity)
        ]
        table.add_row(lead.change, *losses, *quality, f"{lead.accepted:.2f}", f"{lead.seconds:.0f}")
    return table
