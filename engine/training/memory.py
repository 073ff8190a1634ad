"""`midspan train memory`: trains the gate that mixes the model's predictions with the memory's.

A package of the corpus is a workspace. A hole is cut into one of its files, and that file is left out of the workspace.
The model does not change, so its predictions are computed once.
"""

import hashlib
import random
import time
from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.corpus.languages import MARKUP, File
from engine.evaluation.calibration import Judged
from engine.fill.predictions import Predictions
from engine.fill.stream import StreamPass
from engine.memory.file_scan import FileScan
from engine.memory.followers import RUNS
from engine.memory.gate import HIDDEN, MemoryGate
from engine.memory.index import MOST_PLACES, RunIndex
from engine.memory.mixture import Mixture
from engine.memory.row_memory import SCOPES, RowFollowers
from engine.memory.row_statistics import FEATURES, Statistics, count_of
from engine.models.embedded.layout import Limits, lay_out
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.token_healing import unfinished
from engine.models.predict import NEVER
from engine.training.collator import LineEncoder

HOLES_A_FILE = 4
FILES_A_PACKAGE = 12
MOST_CHARACTERS = 2_000_000
"""Of a package; the files after these are left out."""
PREFIX_ROWS = 40
"""Rows above the cursor that are learned from, the last ones."""
FEWEST_TOKENS = 300
FEWEST_FILES = 5
"""A smaller package is no workspace."""
STEPS = 3000
BATCH = 4096
RATE = 3e-3
LEAST = 1e-7


@attrs.frozen(eq=False)
class Rows:
    """Rows with a known next token, the target; n of them.

    statistics: of the followers. first, highest, of_tops: see Statistics.features.
    target: fp32 [n], the model's probability of the target. target_counts: fp32 [n, SCOPES, runs], the target's counts.
    """

    statistics: Statistics
    first: NDArray[np.int64]
    highest: NDArray[np.float32]
    of_tops: NDArray[np.float32]
    target: NDArray[np.float32]
    target_counts: NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """Return the rows of all parts."""
        columns = ([getattr(part, field.name) for part in parts] for field in attrs.fields(cls)[1:])
        inner = ([getattr(part.statistics, field.name) for part in parts] for field in attrs.fields(Statistics))
        return cls(Statistics(*map(np.concatenate, inner)), *map(np.concatenate, columns))

    def only(self, scope: int) -> "Rows":
        """Return the rows as they would be if only one scope were known."""
        statistics = self.statistics
        known = np.arange(SCOPES) == scope
        changed = Statistics(
            totals=statistics.totals * known[:, None],
            kinds=statistics.kinds * known[:, None],
            top_counts=statistics.top_counts * known[:, None],
            tops=np.where(known, statistics.tops, -1),
            newest=statistics.newest & known,
            longest=statistics.longest * known,
        )
        return attrs.evolve(self, statistics=changed, target_counts=self.target_counts * known[:, None])

    def features(self) -> NDArray[np.float32]:
        return self.statistics.features(self.first, self.highest, self.of_tops)


def packages(files: Sequence[File]) -> Iterator[list[File]]:
    """Yield the files of each package with at least FEWEST_FILES. A corpus keeps them together, each package in the
    order of the paths' hashes."""
    part: list[File] = []
    last = ("", b"")
    for file in files:
        key = (file.path.split("/")[0], hashlib.sha1(file.path.encode()).digest())
        if key[0] != last[0] or key[1] < last[1]:
            if len(part) >= FEWEST_FILES:
                yield part
            part = []
        part.append(file)
        last = key
    if len(part) >= FEWEST_FILES:
        yield part


@attrs.frozen(eq=False)
class HoleRows:
    """Rows above and in one hole: their followers, the model's probabilities [n, vocabulary], and the next tokens."""

    followers: list[RowFollowers]
    probabilities: NDArray[np.float32]
    targets: NDArray[np.int64]


class HoleReader:
    """Cuts holes into the files of a workspace and runs the model over them, laid out as the engine does."""

    def __init__(self, model: EmbeddedModel, seed: int) -> None:
        self._model, self._rng = model, random.Random(seed)
        self._encode = LineEncoder(model.tokenizer)
        self._never = [token for token in attrs.astuple(model.card.marks) if token != model.end]

    def read(self, files: Sequence[File], most_files: int = FILES_A_PACKAGE) -> Iterator[HoleRows]:
        """Yield holes of random files of a workspace."""
        index, room = RunIndex(), MOST_CHARACTERS
        known: list[tuple[int, File]] = []
        for number, file in enumerate(files):
            room -= len(file.text)
            if room < 0:
                break
            tokens = self._encode(file.text)
            index.add(number, np.array(tokens, np.int32))
            if len(tokens) >= FEWEST_TOKENS and file.language not in MARKUP:
                known.append((number, file))
        for number, file in self._rng.sample(known, min(most_files, len(known))):
            for _ in range(HOLES_A_FILE):
                yield self._hole(index, number, file)

    @torch.inference_mode()
    def _hole(self, index: RunIndex, number: int, file: File) -> HoleRows:
        """Cut the rest of a line, or up to three lines."""
        rng, marks, card = self._rng, self._model.card.marks, self._model.card
        start = rng.randrange(len(file.text) // 8, len(file.text))
        stop = start
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            stop = file.text.find("\n", stop + 1)
            stop = len(file.text) if stop < 0 else stop
        start -= len(unfinished(self._model.tokenizer, file.text[:start]))
        prefix, suffix = file.text[:start], file.text[stop:]
        above, middle = self._encode(prefix), self._encode(file.text[start:stop])
        middle = [*middle, marks.end][: card.shape.canvas_tokens]
        room = card.shape.context_tokens - card.shape.canvas_tokens - 1
        limits = Limits(room, below=card.below_tokens, tail=card.tail_tokens)
        layout = lay_out(self._encode, marks, limits, prefix, suffix, file.path, [])
        stream = [*layout.tokens, marks.middle, *middle[:-1]]
        # A row of the prefix predicts the next token of the prefix; the last row of it predicts none.
        rows = min(PREFIX_ROWS, max(0, layout.prefix.stop - layout.prefix.start - 1))
        prefix_rows = range(layout.prefix.stop - 1 - rows, layout.prefix.stop - 1)
        middle_rows = range(len(layout.tokens), len(stream))
        ends = [*range(len(above) - rows, len(above)), *[len(above)] * len(middle_rows)]
        histories = [above[max(0, end - RUNS[-1]) : end] for end in ends[:rows]]
        histories += [[*above[-RUNS[-1] :], *middle[:count]] for count in range(len(middle_rows))]
        scan = FileScan(above, self._encode(suffix))
        in_file = [scan.followers(history, MOST_PLACES, end) for history, end in zip(histories, ends, strict=True)]
        elsewhere = index.followers_of_rows(histories, without=number)
        followers = [RowFollowers(*row) for row in zip(in_file, elsewhere, strict=True)]
        wanted = [*prefix_rows, *middle_rows]
        logits = self._model.logits([StreamPass(self._model.new_context(), stream, [], wanted)])[0]
        logits[:, self._never] = NEVER
        return HoleRows(followers, logits.softmax(-1).numpy(), np.array([*above[len(above) - rows :], *middle]))


def rows_of(hole: HoleRows) -> Rows:
    """Return what the gate learns from a hole."""
    statistics, first = Statistics.of(hole.followers), hole.probabilities.argmax(1)
    numbers = np.arange(len(first))
    target_counts = np.zeros((len(first), SCOPES, len(RUNS)), np.float32)
    for number, (row, target) in enumerate(zip(hole.followers, hole.targets.tolist(), strict=True)):
        for scope, runs in enumerate(row.scopes):
            for followers in runs:
                target_counts[number, scope, RUNS.index(followers.run)] = count_of(followers, target)
    return Rows(
        statistics=statistics,
        first=first,
        highest=hole.probabilities[numbers, first],
        of_tops=hole.probabilities[numbers[:, None], statistics.tops],
        target=hole.probabilities[numbers, hole.targets],
        target_counts=target_counts,
    )


def collect(reader: HoleReader, workspaces: Iterable[Sequence[File]], minutes: float) -> Rows:
    """Return the rows of random holes in each workspace, until `minutes` are over."""
    parts: list[Rows] = []
    started = time.monotonic()
    for files in workspaces:
        parts += map(rows_of, reader.read(files))
        if time.monotonic() - started > 60 * minutes:
            break
    return Rows.joined(parts)


class TorchGate(nn.Module):
    """The gate while it is trained: MemoryGate in torch."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.mean, self.spread = features.mean(0), features.std(0).clamp_min(0.05)
        self.hidden, self.output = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, 1 + SCOPES)
        self.back_off = nn.Parameter(torch.zeros(SCOPES, len(RUNS), 2))

    def forward(self, batch: "TrainingBatch") -> Tensor:
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
        return weights[:, 0] * batch.target + (weights[:, 1:] * shares).sum(-1)

    @torch.no_grad()
    def export(self) -> MemoryGate:
        """Return the gate for the engine, with the scaling of the features folded in."""
        hidden = self.hidden.weight / self.spread
        return MemoryGate(
            hidden=hidden.T.contiguous().numpy(),
            hidden_bias=(self.hidden.bias - hidden @ self.mean).numpy(),
            output=self.output.weight.T.contiguous().numpy(),
            output_bias=self.output.bias.numpy(),
            back_off=self.back_off.exp().numpy(),
        )


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


def fit(rows: Rows, seed: int, steps: int = STEPS) -> TorchGate:
    """Train a gate on rows, so that it works with both scopes known and with one."""
    torch.manual_seed(seed)
    batch = TrainingBatch.of(Rows.joined([rows, rows.only(0), rows.only(1)]))
    gate = TorchGate(batch.features)
    optimizer = torch.optim.AdamW(gate.parameters(), RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for _ in range(steps):
        loss = -gate(batch.part(torch.randint(len(batch.target), (BATCH,)))).clamp_min(LEAST).log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return gate


@attrs.frozen
class Nats:
    """Mean loss in nats a token, by what is known besides the model."""

    rows: int
    model: float
    file: float
    workspace: float
    both: float


@torch.no_grad()
def measure(gate: TorchGate, rows: Rows) -> Nats:
    """Return what each scope gives on rows."""

    def mean(each: Rows) -> float:
        return float(-gate(TrainingBatch.of(each)).clamp_min(LEAST).log().mean())

    alone = float(-np.log(np.maximum(rows.target, LEAST)).mean())
    return Nats(len(rows.target), alone, mean(rows.only(0)), mean(rows.only(1)), mean(rows))


def judge(reader: HoleReader, gate: MemoryGate, workspaces: Iterable[Sequence[File]], most_files: int) -> list[Judged]:
    """Return how likely the mixture's first choice is at each row, and whether it is right, as a fill would see it."""
    judged: list[Judged] = []
    for files in workspaces:
        for hole in reader.read(files, most_files):
            mixture = Mixture.of(hole.followers, gate)
            tokens = hole.probabilities.argmax(1)[:, None]
            highest = np.take_along_axis(hole.probabilities, tokens, 1)
            named = np.take_along_axis(hole.probabilities, mixture.named, 1)
            mixed = mixture.mix(Predictions(tokens, highest, np.zeros(len(tokens), np.float32), named))
            right = (mixed.tokens[:, 0] == hole.targets).tolist()
            judged += map(Judged, mixed.probabilities[:, 0].tolist(), right)
    return judged
