"""`midspan train memory`: trains the network that mixes the model's predictions with the memory's."""

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import numpy as np
import torch
from torch import Tensor, nn

from engine.corpus import corpus
from engine.corpus.corpus import packages
from engine.corpus.languages import File
from engine.errors import ModelError
from engine.evaluation.calibration import Bin, Judged, calibration_error, reliability
from engine.fill.sampler import NEVER, Predictions
from engine.memory.followers import RUN_LENGTHS
from engine.memory.mixing_network import FEATURES, HIDDEN, MixingNetwork
from engine.memory.mixture import Mixture
from engine.memory.row_memory import SCOPES
from engine.models.embedded.model import EmbeddedModel
from engine.models.load import load
from engine.training.memory_rows import HoleReader, Rows, collect
from engine.training.tuned_mixing import LEAST, nats, nats_alone

STEPS = 12_000
BATCH = 4096
RATE = 3e-3
AGAIN_RATE, AGAIN_STEPS = 3e-4, 4000
"""For training that goes on from another mixing network, whose knowledge stays where the rows say nothing."""
JUDGED_FILES = 3
"""Files of each held-out package whose rows the reliability is measured on."""
TRAIN_SHARE = 0.55
"""The share of the minutes that collecting rows of train packages takes; the rest is for the held-out ones."""


@attrs.frozen(eq=False)
class TrainingBatch:
    """Rows as tensors."""

    features: Tensor
    totals: Tensor
    kinds: Tensor
    target: Tensor
    target_counts: Tensor

    @classmethod
    def of(cls, rows: Rows) -> "TrainingBatch":
        statistics = rows.statistics
        columns = (rows.features(), statistics.totals, statistics.kinds, rows.target, rows.target_counts)
        return cls(*(torch.from_numpy(np.ascontiguousarray(column, np.float32)) for column in columns))

    def part(self, numbers: Tensor) -> "TrainingBatch":
        return TrainingBatch(*(column[numbers] for column in attrs.astuple(self, recurse=False)))


class TorchMixing(nn.Module):
    """The mixing network while it is trained: MixingNetwork in torch."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.mean, self.spread = features.mean(0), features.std(0).clamp_min(0.05)
        self.hidden, self.output = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, 1 + SCOPES)
        self.back_off = nn.Parameter(torch.zeros(SCOPES, len(RUN_LENGTHS), 2))

    @torch.no_grad()
    def go_on_from(self, mixing: MixingNetwork) -> None:
        """Take over what another mixing network has learned; the reverse of `export`."""
        hidden = torch.from_numpy(mixing.hidden).T
        self.hidden.weight.copy_(hidden * self.spread)
        self.hidden.bias.copy_(torch.from_numpy(mixing.hidden_bias) + hidden @ self.mean)
        self.output.weight.copy_(torch.from_numpy(mixing.output).T)
        self.output.bias.copy_(torch.from_numpy(mixing.output_bias))
        self.back_off.copy_(torch.from_numpy(mixing.back_off).log())

    def forward(self, batch: TrainingBatch) -> Tensor:
        """Return the probability [n] that the mixture gives to the targets."""
        scores = self.output(torch.relu(self.hidden((batch.features - self.mean) / self.spread)))
        present = torch.cat((torch.ones_like(scores[:, :1]), (batch.totals > 0).any(-1)), 1) > 0
        weights = scores.masked_fill(~present, NEVER).softmax(-1)
        factor, constant = self.back_off.exp().unbind(-1)
        strength = batch.kinds * factor + constant
        kept = batch.totals / (batch.totals + strength)
        left = (1 - kept).flip(-1).cumprod(-1).flip(-1)
        of_runs = torch.cat((kept[..., :-1] * left[..., 1:], kept[..., -1:]), -1)
        of_runs = of_runs / of_runs.sum(-1, keepdim=True).clamp_min(1e-9)
        shares = (of_runs * batch.target_counts / batch.totals.clamp_min(1)).sum(-1)
        mixed: Tensor = weights[:, 0] * batch.target + (weights[:, 1:] * shares).sum(-1)
        return mixed

    @torch.no_grad()
    def export(self) -> MixingNetwork:
        """Return the mixing network for the engine, with the scaling of the features folded in."""
        hidden = self.hidden.weight / self.spread
        return MixingNetwork(
            hidden=hidden.T.contiguous().numpy(),
            hidden_bias=(self.hidden.bias - hidden @ self.mean).numpy(),
            output=self.output.weight.T.contiguous().numpy(),
            output_bias=self.output.bias.numpy(),
            back_off=self.back_off.exp().numpy(),
        )


def fit(rows: Rows, seed: int, steps: int | None = None, start: MixingNetwork | None = None) -> TorchMixing:
    """Train a mixing network on rows, so that it works with both scopes known and with one.

    start: the one to go on from, of other weights; None for a new one.
    """
    torch.manual_seed(seed)
    batch = TrainingBatch.of(Rows.joined([rows, rows.only(0), rows.only(1)]))
    mixing = TorchMixing(batch.features)
    rate, usual = (RATE, STEPS) if start is None else (AGAIN_RATE, AGAIN_STEPS)
    if start is not None:
        mixing.go_on_from(start)
    steps = steps or usual
    optimizer = torch.optim.AdamW(mixing.parameters(), rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for _ in range(steps):
        loss = -mixing(batch.part(torch.randint(len(batch.target), (BATCH,)))).clamp_min(LEAST).log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return mixing


@attrs.frozen
class Nats:
    """Mean loss in nats a token, by what is known besides the model."""

    rows: int
    model: float
    file: float
    workspace: float
    both: float


def measure(mixing: MixingNetwork, rows: Rows) -> Nats:
    """Return what each scope gives on rows."""
    known = (nats(mixing, each) for each in (rows.only(0), rows.only(1), rows))
    return Nats(len(rows.target), nats_alone(rows), *known)


def judge(
    reader: HoleReader, mixing: MixingNetwork, workspaces: Iterable[Sequence[File]], most_files: int
) -> list[Judged]:
    """Return how likely the mixture's first choice is at each row, and whether it is right, as a fill would see it."""
    judged: list[Judged] = []
    for files in workspaces:
        for hole in reader.read(files, most_files):
            mixture = Mixture.of(hole.followers, mixing)
            tokens = hole.probabilities.argmax(1)[:, None]
            highest = np.take_along_axis(hole.probabilities, tokens, 1)
            zeros = np.zeros(len(tokens), np.float32)
            named = np.take_along_axis(hole.probabilities, mixture.named, 1)
            mixed = mixture.mix(Predictions(tokens, highest, zeros, named, zeros))
            right = (mixed.tokens[:, 0] == hole.targets).tolist()
            judged += map(Judged, mixed.probabilities[:, 0].tolist(), right)
    return judged


@attrs.frozen
class Report:
    """What a trained mixing network gives on held-out packages, and how reliable the mixture's first choice is."""

    train: Nats
    held_out: Nats
    bins: list[Bin]
    calibration_error: float
    right: float


def train_mixing(
    model_name: str, corpus_folder: Path, target: Path, minutes: float, start: Path | None = None, seed: int = 0
) -> Report:
    """Train a mixing network for a model's weights, from `start` if that is given, and write it to `target`.

    Raises ModelError for a model that is not embedded or an unfit `start`, and CorpusError where there is no corpus.
    """
    model = _embedded(model_name)
    known = MixingNetwork.load(start) if start is not None else None
    held_out = list(packages(corpus.load(corpus_folder, "held-out")))
    rows = _train_rows(model, corpus_folder, minutes * TRAIN_SHARE, seed)
    mixing = fit(rows, seed, start=known).export()
    mixing.save(target)
    unseen = collect(HoleReader(model, seed + 1), held_out, minutes * (1 - TRAIN_SHARE))
    judged = judge(HoleReader(model, seed + 2), mixing, held_out, JUDGED_FILES)
    return Report(
        train=measure(mixing, rows),
        held_out=measure(mixing, unseen),
        bins=reliability(judged),
        calibration_error=calibration_error(judged),
        right=sum(each.right for each in judged) / len(judged),
    )


def _embedded(name: str) -> EmbeddedModel:
    model = load(name)
    if not isinstance(model, EmbeddedModel):
        raise ModelError(f"{name} is not an embedded model; the mixing network is trained for one")
    return model


def _train_rows(model: EmbeddedModel, corpus_folder: Path, minutes: float, seed: int) -> Rows:
    train = list(packages(corpus.load(corpus_folder, "train")))
    random.Random(seed).shuffle(train)
    return collect(HoleReader(model, seed), train, minutes)
