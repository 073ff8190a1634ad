"""`midspan models tune`: fits how much the memory is believed, for a model that the shipped network does not know.

The workspace itself is read, and each of its files as a new one: what it says of itself above and of the others counts.
In NumPy, because this is for users: a minute on a processor, most of it passes of the model. Files are held out whole.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.corpus.languages import LANGUAGES, MARKUP, File
from engine.errors import ModelError
from engine.fill.interface import HISTORY
from engine.fill.sampler import Query
from engine.fill.stream import StreamPass
from engine.memory.index import RunIndex
from engine.memory.mixing_network import Floats, MixingNetwork, Statistics, counts_of
from engine.memory.row_memory import FILE_SCOPE, SCOPES, FileScan, followers_of_rows
from engine.models.left_to_right.model import LeftToRightModel
from engine.reading import is_generated, read_text, walk
from engine.training.memory_rows import MOST_CHARACTERS, Rows

WINDOW, WINDOW_ROWS, BEGUN_ROWS = 384, 192, 12
"""Tokens that the model reads, how many of the last ones are predicted, and how many of these with typed text."""
FEWEST_TOKENS, FEWEST_FILES = 64, 5
HELD_OUT, CHOOSING = 0, 1
"""Which of five files in a row is held out, and which says when to stop."""
STEPS, BATCH, RATE, DECAY = 2000, 512, 1e-3, 1e-4
_EVERY = 50
LEAST = 1e-7
"""Probabilities below count as this one."""


@attrs.frozen
class Tuned:
    """The best one of the fitted network, the shipped one, and none.

    alone, shipped, tuned: nats a token on the held-out files, of the model alone and with each network.
    """

    mixing: MixingNetwork
    rows: int
    alone: float
    shipped: float
    tuned: float

    @property
    def helps(self) -> bool:
        return min(self.tuned, self.shipped) < self.alone


def tune(model: LeftToRightModel, folder: Path, minutes: float, seed: int = 0) -> Tuned:
    """Fit a mixing network on a workspace. Raises ModelError where it has too few files."""
    workspace = _Workspace(model, list(files_of(folder)), seed)
    parts: dict[int, list[Rows]] = {}
    deadline = time.monotonic() + 60 * minutes
    while time.monotonic() < deadline or len(parts) < FEWEST_FILES:
        number = workspace.next_file()
        parts.setdefault(number % FEWEST_FILES, []).append(workspace.rows(number))
    held_out, choosing = Rows.joined(parts.pop(HELD_OUT)), Rows.joined(parts.pop(CHOOSING))
    learned = Rows.joined([rows for each in parts.values() for rows in each])
    shipped = MixingNetwork.shipped()
    mixing = fit(shipped, learned, choosing, seed)
    alone, before, after = nats_alone(held_out), nats(shipped, held_out), nats(mixing, held_out)
    best = min((after, mixing), (before, shipped), (alone, MixingNetwork.without()), key=lambda each: each[0])[1]
    return Tuned(best, len(held_out.target), alone, before, after)


def fit(start: MixingNetwork, learned: Rows, choosing: Rows, seed: int = 0) -> MixingNetwork:
    """Return the network that does best on `choosing`, of those on the way from `start` (Adam, arXiv 1412.6980).

    What the runs of a scope count for stays as it is.
    """
    batch = _Batch.of(start, Rows.joined([learned, learned.only(FILE_SCOPE), learned.only(1 - FILE_SCOPE)]))
    weights = [start.hidden.copy(), start.hidden_bias.copy(), start.output.copy(), start.output_bias.copy()]
    moments = [(np.zeros_like(each), np.zeros_like(each)) for each in weights]
    rng, best, least = np.random.default_rng(seed), start, nats(start, choosing)
    for step in range(1, STEPS + 1):
        rate = RATE * (1 - step / STEPS)
        slopes = batch.slopes(weights, rng.integers(0, len(batch.features), BATCH))
        for each, slope, (mean, square) in zip(weights, slopes, moments, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            moved = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            each -= rate * (moved + DECAY * each)
        if step % _EVERY == 0:
            hidden, hidden_bias, output, output_bias = (each.copy() for each in weights)
            now = MixingNetwork(hidden, hidden_bias, output, output_bias, start.back_off)
            if (found := nats(now, choosing)) < least:
                best, least = now, found
    return best


def nats(mixing: MixingNetwork, rows: Rows) -> float:
    """Return the mean loss of the mixture in nats a token."""
    batch = _Batch.of(mixing, rows)
    weights = mixing.weights(batch.features, batch.present)
    return float(-np.log(np.maximum((weights * batch.shares).sum(1), LEAST)).mean())


def nats_alone(rows: Rows) -> float:
    """Return the mean loss of the model without the memory in nats a token."""
    return float(-np.log(np.maximum(rows.target, LEAST)).mean())


@attrs.frozen(eq=False)
class _Batch:
    """Rows as the mixture sees them. shares: [n, 1 + SCOPES], what the model and each scope give to the target."""

    features: Floats
    present: NDArray[np.bool_]
    shares: Floats

    @classmethod
    def of(cls, mixing: MixingNetwork, rows: Rows) -> "_Batch":
        statistics = rows.statistics
        known = rows.target_counts / np.maximum(statistics.totals, 1)
        scopes = (mixing.run_weights(statistics) * known).sum(-1)
        shares = np.concatenate((rows.target[:, None], scopes), 1, dtype=np.float32)
        return cls(rows.features(), statistics.present, shares)

    def slopes(self, weights: list[Floats], chosen: NDArray[np.int64]) -> list[Floats]:
        """Return the gradients of the mean loss of the chosen rows."""
        hidden, hidden_bias, output, output_bias = weights
        features, shares = self.features[chosen], self.shares[chosen]
        inner = np.maximum(features @ hidden + hidden_bias, 0)
        network = MixingNetwork(hidden, hidden_bias, output, output_bias, np.zeros(0, np.float32))
        own = network.weights(features, self.present[chosen])
        mixed = np.maximum((own * shares).sum(1, keepdims=True), LEAST)
        of_scores = own * (1 - shares / mixed) / len(chosen)
        of_inner = (of_scores @ output.T) * (inner > 0)
        return [features.T @ of_inner, of_inner.sum(0), inner.T @ of_scores, of_scores.sum(0)]


class _Workspace:
    """Cuts windows out of random files, and runs the model over them."""

    def __init__(self, model: LeftToRightModel, files: list[File], seed: int) -> None:
        self._model, self._rng, self._index = model, random.Random(seed), RunIndex()
        self._tokens: list[list[int]] = []
        for file in files:
            tokens = model.tokenizer.encode(file.text, add_special_tokens=False).ids
            if len(tokens) >= FEWEST_TOKENS and file.language not in MARKUP:
                self._index.add(len(self._tokens), np.array(tokens, np.int32))
                self._tokens.append(tokens)
        if len(self._tokens) < FEWEST_FILES:
            raise ModelError(
                f"{len(self._tokens)} files of code are too few to tune on; at least {FEWEST_FILES} are needed"
            )
        self._waiting: list[int] = []

    def next_file(self) -> int:
        """Return the number of a file: all of them in a random order, and then again."""
        if not self._waiting:
            self._waiting = self._rng.sample(range(len(self._tokens)), len(self._tokens))
        return self._waiting.pop()

    def rows(self, number: int) -> Rows:
        """Return the rows of a random window of a file, which is not part of the workspace for them."""
        model, tokens = self._model, self._tokens[number]
        end = self._rng.randrange(FEWEST_TOKENS // 2, len(tokens))
        first, count = max(0, end - WINDOW), min(WINDOW_ROWS, end - 1)
        places = [*range(end - count, end)]  # of the targets
        begun = sorted(self._rng.sample(places, min(BEGUN_ROWS, count)), reverse=True)
        histories = [tokens[max(0, place - HISTORY) : place] for place in (*places, *begun)]
        compatible = {count + row: self._compatible(tokens[place]) for row, place in enumerate(begun)}
        scan = FileScan(tokens[:end], tokens[end:])
        found = followers_of_rows(scan, self._index, number, histories, compatible, [*places, *begun])
        targets = np.array([tokens[place] for place in (*places, *begun)])
        statistics = Statistics.of(found.joined)
        named = np.concatenate((np.maximum(statistics.tops, 0), targets[:, None]), 1)

        begin = [] if model.specials.begin is None else [model.specials.begin]
        context, lead = model.new_context(), first - len(begin)
        read = [*begin, *tokens[first : end - 1]]
        passes = [
            StreamPass(context, read, [], range(len(read) - count, len(read)), Query(1, False, (), named[:count]))
        ]
        predicted = [model.run(passes)[0].predictions]
        for row, place in enumerate(begun):
            context.truncate(place - 1 - lead)
            query = Query(1, False, compatible[count + row], named[count + row : count + row + 1])
            predicted.append(model.run([StreamPass(context, [tokens[place - 1]], [], [0], query)])[0].predictions)
        of_named = np.concatenate([each.named for each in predicted])
        return Rows(
            statistics=statistics,
            first=np.concatenate([each.tokens[:, 0] for each in predicted]),
            highest=np.concatenate([each.probabilities[:, 0] for each in predicted]),
            of_tops=of_named[:, :SCOPES],
            target=of_named[:, SCOPES],
            target_counts=np.stack([counts_of(counts, targets) for counts in found.scopes], 1),
        )

    def _compatible(self, token: int) -> list[int]:
        text = self._model.bytes_of(token)
        return self._model.compatible_tokens(text[: self._rng.randrange(1, max(2, len(text)))])


def files_of(folder: Path) -> Iterator[File]:
    """Yield the source files of a folder, as far as their characters are few enough."""
    room, real = MOST_CHARACTERS, str(folder.resolve())
    for path in walk(real, is_generated):
        language = LANGUAGES.get(PurePosixPath(path).suffix)
        text = read_text(real, path) if language is not None else None
        if language is None or text is None:
            continue
        room -= len(text)
        if room < 0:
            return
        yield File(path, language, text)
