"""Trains a link for weights that have none yet. The trunk does not change, so it needs no gradients."""

import time
from pathlib import Path

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.embedded.network import Network
from engine.training import link_loss, objective
from engine.training.batch import Batch
from engine.training.checkpoint import NEWEST, give_link, restore
from engine.training.config import Config, ConfigError
from engine.training.loader import Source

HELD_OUT = 6
"""Held-out batches for the reported losses."""
PART = 512
"""Rows in one step of the link; a batch holds two or three times as many."""
DISTANCES = ((2, 2), (3, 3), (4, 5), (6, 9), (10, 17), (18, 33))


@attrs.frozen
class Gain:
    """Mean losses in nats, with the link and without, of fully masked canvas rows.

    The rows predict a token `low` to `high` positions after the anchor.
    """

    low: int
    high: int
    rows: int
    alone: float
    linked: float


@torch.no_grad()
def gains(network: Network, batches: list[Batch]) -> list[Gain]:
    """Return the gains by distance, the one over all distances first; rows without a token to link are left out."""
    measured: list[Tensor] = []
    for batch in batches:
        rows = objective.forward(network, batch, objective.visibility(batch))
        pairs = link_loss.every(batch)
        full = batch.masked[pairs.sequence, pairs.row - batch.stream_rows] == 1
        pairs = link_loss.Pairs(*(column[full] for column in attrs.astuple(pairs, recurse=False)))
        distance = pairs.stream - batch.anchors[pairs.sequence, pairs.row - batch.stream_rows] + 1
        hints, strengths = pairs.of(batch.hints), pairs.of(batch.strengths)
        logits = network.logits(pairs.of(rows), hints, strengths)
        alone = F.cross_entropy(logits, pairs.of(batch.targets), reduction="none")
        linked = link_loss.each(network, rows, batch, pairs, taught=0.0)
        measured.append(torch.stack((distance.float(), alone, linked)))
    distance, alone, linked = torch.cat(measured, 1)
    result = []
    for low, high in ((DISTANCES[0][0], DISTANCES[-1][1]), *DISTANCES):
        inside = (distance >= low) & (distance <= high)
        if inside.any():
            result.append(Gain(low, high, int(inside.sum()), float(alone[inside].mean()), float(linked[inside].mean())))
    return result


def fit_link(config: Config, work: Path, minutes: float, workers: int) -> list[Gain]:
    """Train the link of the newest checkpoint in `work` from its start for `minutes`, and rewrite the checkpoint.

    Returns the link's gains on held-out files. Raises ConfigError for a config without a link.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(config.optimizer.seed)
    network = Network(config.model).to(device)
    link = network.link
    if link is None:
        raise ConfigError("the config has no link to train; set link_width under [model], 512 for instance")
    network.initialize()
    progress = restore(work / NEWEST, network, [])
    link.initialize()
    rate = config.optimizer.link_lr
    optimizer = torch.optim.Adam(link.parameters(), lr=rate, betas=(0.9, 0.99))
    source = Source(config, work)
    canvas_rows = config.objective.canvas_rows_late
    batches = source.batches(config.optimizer.seed + progress.step, canvas_rows, workers, device)
    started = time.monotonic()
    while (done := (time.monotonic() - started) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, 2 * (1 - done))
        batch = source.unpack(next(batches), device)
        with torch.no_grad():
            rows = objective.forward(network, batch, objective.visibility(batch))
        pairs = link_loss.every(batch)
        for part in torch.split(torch.randperm(len(pairs.row), device=device), PART):
            chosen = link_loss.Pairs(*(column[part] for column in attrs.astuple(pairs, recurse=False)))
            torch.autograd.backward(link_loss.each(network, rows, batch, chosen).mean())
            optimizer.step()
            optimizer.zero_grad()
    give_link(work / NEWEST, link)
    return gains(network, source.held_out(HELD_OUT, canvas_rows, device))
