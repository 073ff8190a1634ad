"""A link for weights that have none yet: the trunk stays as it is, so batches are only read forwards."""

import time
from pathlib import Path

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.embedded.network import Network
from engine.training import link_loss, objective
from engine.training.checkpoint import NEWEST, give_link, restore
from engine.training.config import Config, ConfigError
from engine.training.loader import Source
from engine.training.objective import Batch

HELD_OUT = 6
"""Batches that the losses are told of."""
PART = 512
"""Rows that a step of the link takes at once; a batch holds two or three times as many."""
DISTANCES = ((2, 2), (3, 3), (4, 5), (6, 9), (10, 17), (18, 33))


@attrs.frozen
class Gain:
    """Mean losses in nats of fully masked canvas rows that predict a token `low` to `high` places behind the anchor."""

    low: int
    high: int
    rows: int
    alone: float
    linked: float


@torch.no_grad()
def gains(network: Network, batches: list[Batch]) -> list[Gain]:
    """Return what the link gains by distance, all of them first; a row without a token to link is left out."""
    found: list[Tensor] = []
    for batch in batches:
        rows = objective.forward(network, batch, objective.visibility(batch))
        pairs = link_loss.every(batch)
        full = batch.masked[pairs.sequence, pairs.row - batch.stream_rows] == 1
        pairs = link_loss.Pairs(*(part[full] for part in attrs.astuple(pairs, recurse=False)))
        distance = pairs.stream - batch.anchors[pairs.sequence, pairs.row - batch.stream_rows] + 1
        hints, strengths = pairs.of(batch.hints), pairs.of(batch.strengths)
        logits = network.logits(pairs.of(rows), hints, strengths)
        alone = F.cross_entropy(logits, pairs.of(batch.targets), reduction="none")
        linked = link_loss.each(network, rows, batch, pairs, taught=0.0)
        found.append(torch.stack((distance.float(), alone, linked)))
    distance, alone, linked = torch.cat(found, 1)
    told = []
    for low, high in ((DISTANCES[0][0], DISTANCES[-1][1]), *DISTANCES):
        inside = (distance >= low) & (distance <= high)
        if inside.any():
            told.append(Gain(low, high, int(inside.sum()), float(alone[inside].mean()), float(linked[inside].mean())))
    return told


def fit_link(config: Config, work: Path, minutes: float, workers: int) -> list[Gain]:
    """Train the link of the newest checkpoint in `work` from its start for `minutes`, and write the checkpoint anew.

    Returns what it gains on held-out files. Raises ConfigError for a config without a link.
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
    chain = torch.optim.Adam(link.parameters(), lr=rate, betas=(0.9, 0.99))
    source = Source(config, work)
    rows_asked = config.objective.canvas_rows_late
    batches = source.batches(config.optimizer.seed + progress.step, rows_asked, workers, device)
    begun = time.monotonic()
    while (done := (time.monotonic() - begun) / (60 * minutes)) < 1:
        for group in chain.param_groups:
            group["lr"] = rate * min(1.0, 2 * (1 - done))
        batch = source.unfold(next(batches), device)
        with torch.no_grad():
            rows = objective.forward(network, batch, objective.visibility(batch))
        pairs = link_loss.every(batch)
        for part in torch.split(torch.randperm(len(pairs.row), device=device), PART):
            some = link_loss.Pairs(*(column[part] for column in attrs.astuple(pairs, recurse=False)))
            torch.autograd.backward(link_loss.each(network, rows, batch, some).mean())
            chain.step()
            chain.zero_grad()
    give_link(work / NEWEST, link)
    return gains(network, source.held_out(HELD_OUT, rows_asked, device))
